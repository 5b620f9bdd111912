"""Trainer arguments: what fine-tuning the retriever and the cross-encoder have in common, on one process or more."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, Protocol

import torch
from accelerate import PartialState
from accelerate.state import AcceleratorState
from accelerate.utils import broadcast_object_list
from transformers import TrainerCallback

from data.errors import InputError
from training.batches import Plan, planned

CHECKPOINTS = 20
"""How many times a fine-tuning is written down on its way: an interruption costs a twentieth of it at most..."""
LEAST_STEPS = 10
"""...or so many steps, where that is more."""
WHOLE = "whole"
"""The file that makes a checkpoint whole: how many processes wrote it."""


class Tuning(Protocol):
    """The settings that both models have."""

    @property
    def epochs(self) -> float: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def seed(self) -> int: ...
    @property
    def bf16(self) -> bool: ...


def processes() -> PartialState:
    """This process among those that `accelerate launch` started: its number, and how many there are.

    Without an accelerator the processes must be told that they work on the CPU, or each believes to be alone.
    """
    return PartialState(cpu=not torch.cuda.is_available())


def go_on_alone() -> bool:
    """End the shared part of a training: True for the first process, which goes on by itself, False for the others."""
    state = processes()
    first = bool(state.is_main_process)
    if state.num_processes > 1:
        state.wait_for_everyone()
        torch.distributed.destroy_process_group()
        for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
            os.environ.pop(name, None)
        AcceleratorState._reset_state(reset_partial_state=True)
    return first


def common_arguments(scratch: Path, settings: Tuning, plan: Plan, *, keep: bool) -> dict[str, Any]:
    """Keyword arguments of a trainer that warms up over a tenth of its steps and takes its batches from a plan.

    With `keep` it writes checkpoints into `scratch` on its way, of which the last two stay; else nothing.
    """
    steps = len(plan) // processes().num_processes
    return {
        "output_dir": str(scratch),
        "num_train_epochs": 1,  # the plan holds all passes
        "batch_sampler": planned(plan),
        "per_device_train_batch_size": max(1, settings.batch_size // processes().num_processes),
        "learning_rate": settings.learning_rate,
        "warmup_steps": 0.1,
        "seed": settings.seed,
        "data_seed": settings.seed,
        "bf16": settings.bf16,
        "use_cpu": not torch.cuda.is_available(),
        "save_strategy": "steps" if keep else "no",
        "save_steps": max(LEAST_STEPS, math.ceil(steps / CHECKPOINTS)),
        "save_total_limit": 2,
        "eval_strategy": "no",
        "logging_strategy": "no",
        "report_to": "none",
        "dataloader_num_workers": 0,
        "dataloader_pin_memory": False,
    }


class WholeCheckpoints(TrainerCallback):  # type: ignore[misc]
    """Marks a checkpoint once every process has written its part: a torn one is never gone on from."""

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        processes().wait_for_everyone()
        if processes().is_main_process:
            mark = Path(args.output_dir) / f"checkpoint-{state.global_step}" / WHOLE
            mark.write_text(str(processes().num_processes), encoding="utf-8")


def last_checkpoint(folder: Path) -> str | None:
    """The newest whole checkpoint in `folder` that as many processes wrote as there are now; None: start at the start.

    The first process looks, and the others believe it. Raises InputError in one that cannot see what the first sees.
    """
    found: list[str | None] = [None]
    if processes().is_main_process:
        ours = str(processes().num_processes)
        marks = [mark for mark in folder.glob(f"checkpoint-*/{WHOLE}") if mark.read_text(encoding="utf-8") == ours]
        marks.sort(key=lambda mark: int(mark.parent.name.rpartition("-")[2]))
        found = [str(marks[-1].parent) if marks else None]
    found = broadcast_object_list(found)
    if found[0] is not None and not Path(found[0]).is_dir():
        raise InputError(
            "the first process goes on from a checkpoint that this one cannot see",
            source=found[0],
            hint="train into a folder that all hosts share",
        )
    return found[0]

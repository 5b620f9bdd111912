"""Trainer arguments: what fine-tuning the retriever and the cross-encoder have in common, on one process or more."""

from __future__ import annotations

import os
from typing import Any, Protocol

import torch
from accelerate import PartialState
from accelerate.state import AcceleratorState


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


def common_arguments(scratch: str, settings: Tuning) -> dict[str, Any]:
    """Keyword arguments of a trainer that warms up over a tenth of its steps and writes nothing but its progress bar.

    `scratch` is the folder that every trainer wants and this one does not use.
    """
    return {
        "output_dir": scratch,
        "num_train_epochs": settings.epochs,
        "per_device_train_batch_size": settings.batch_size,
        "learning_rate": settings.learning_rate,
        "warmup_steps": 0.1,
        "seed": settings.seed,
        "data_seed": settings.seed,
        "bf16": settings.bf16,
        "use_cpu": not torch.cuda.is_available(),
        "save_strategy": "no",
        "eval_strategy": "no",
        "logging_strategy": "no",
        "report_to": "none",
        "dataloader_num_workers": 0,
        "dataloader_pin_memory": False,
    }

"""Batches: a whole training's batches, planned ahead, no two rows of which share a tool, an equivalent, or a request.

Under an in-batch loss every other row's card counts as wrong for this row's request. With 200 tools and batches of 64,
the same tool twice in a batch would happen at every step, and each time teach the model that the right tool is wrong.

The plan is made before the first step: how many steps there are is known to the batch, every pass sees every row, and a
training that was stopped goes on at the batch where it stood.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from sentence_transformers.base.sampler import DefaultBatchSampler

Plan = list[list[int]]
"""Rows of each batch, in order. Several processes take turns: the batch of a step is as many entries, of one size."""


def plan_batches(
    keys: Sequence[frozenset[Hashable]], batch_size: int, epochs: float, *, seed: int = 0, processes: int = 1
) -> Plan:
    """`epochs` shuffled passes over the rows, in batches whose rows' key sets are disjoint.

    A row that clashes waits for the next batch in which it does not; the last batches of a pass may be smaller. Of
    half an epoch the first half of its batches is taken.

    `batch_size` is that of a step, whatever the number of processes: each of them takes the same number of rows, so a
    row may have to wait for the next batch, and one that finds too few others to stand beside is left out of the pass
    (a row alone has nothing to be told from).
    """
    plan: Plan = []
    most = batch_size - batch_size % processes or processes
    whole = math.ceil(epochs)
    for number in range(whole):
        batches = list(_one_pass(keys, most, seed + number, processes))
        share = epochs - number
        if share < 1.0:
            batches = batches[: math.ceil(share * len(batches))]
        for batch in batches:
            each = len(batch) // processes
            plan += [batch[start : start + each] for start in range(0, len(batch), each)]
    return plan


def _one_pass(keys: Sequence[frozenset[Hashable]], most: int, seed: int, processes: int) -> Iterator[list[int]]:
    waiting = torch.randperm(len(keys), generator=torch.Generator().manual_seed(seed)).tolist()
    while waiting:
        batch: list[int] = []
        taken: set[Hashable] = set()
        later: list[int] = []
        for place, row in enumerate(waiting):
            if keys[row].isdisjoint(taken):
                batch.append(row)
                taken |= keys[row]
                if len(batch) == most:
                    later.extend(waiting[place + 1 :])
                    break
            else:
                later.append(row)
        kept = len(batch) - len(batch) % processes
        if kept:
            waiting = [*batch[kept:], *later]
            yield batch[:kept]
        else:
            waiting = waiting[1:]


class PlannedBatches(DefaultBatchSampler):  # type: ignore[misc]
    """The batches of a plan as the trainers take them: one long epoch."""

    def __init__(self, plan: Plan, dataset: Any, **_: Any) -> None:
        super().__init__(dataset, batch_size=1, drop_last=False)
        self.batch_size = None  # accelerate drops batches that are not of the size that a sampler names
        self._plan = plan

    def __iter__(self) -> Iterator[list[int]]:
        yield from self._plan

    def __len__(self) -> int:
        return len(self._plan)


def planned(plan: Plan) -> Callable[..., PlannedBatches]:
    """What the trainers' `batch_sampler` argument takes."""
    return partial(PlannedBatches, plan)

"""Batches for in-batch losses: no two rows of a batch share a tool, an equivalent of it, or a request.

Under an in-batch loss every other row's card counts as wrong for this row's request. With 200 tools and batches of 64,
the same tool twice in a batch would happen at every step, and each time teach the model that the right tool is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import torch
from sentence_transformers.base.sampler import DefaultBatchSampler


class DistinctBatchSampler(DefaultBatchSampler):  # type: ignore[misc]
    """Shuffled batches in which the key sets of all rows are disjoint. Every row appears once an epoch.

    A row that clashes waits for the next batch in which it does not; the last batches may be smaller. The length is the
    number of batches of the present epoch: the trainer ends an epoch by it, and whatever came after would go unseen.
    """

    def __init__(self, keys: Sequence[frozenset[Hashable]], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._keys = keys

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        waiting = torch.randperm(len(self._keys), generator=generator).tolist()
        while waiting:
            batch: list[int] = []
            taken: set[Hashable] = set()
            later: list[int] = []
            for place, row in enumerate(waiting):
                if self._keys[row].isdisjoint(taken):
                    batch.append(row)
                    taken |= self._keys[row]
                    if len(batch) == self.batch_size:
                        later.extend(waiting[place + 1 :])
                        break
                else:
                    later.append(row)
            waiting = later
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        return sum(1 for _ in self)


def distinct_batches(keys: Sequence[frozenset[Hashable]]) -> Callable[..., DistinctBatchSampler]:
    """What the trainers' `batch_sampler` argument takes; `keys[i]` belongs to row i of the dataset."""

    def build(dataset: Any, batch_size: int, drop_last: bool, **rest: Any) -> DistinctBatchSampler:
        return DistinctBatchSampler(
            keys,
            dataset,
            batch_size=batch_size,
            drop_last=drop_last,
            **{k: rest[k] for k in ("generator", "seed") if k in rest},
        )

    return build

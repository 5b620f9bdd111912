"""Batches: no two rows of a batch share a key, and an epoch is every row once."""

from __future__ import annotations

from collections.abc import Hashable

from hypothesis import given, settings
from hypothesis import strategies as st

from training.batches import DistinctBatchSampler, distinct_batches

Keys = list[frozenset[Hashable]]

keys = st.lists(st.frozensets(st.integers(0, 5), max_size=3), max_size=30)


def sampler(rows: Keys, batch_size: int, *, drop_last: bool = False, seed: int = 0) -> DistinctBatchSampler:
    return distinct_batches(rows)(range(len(rows)), batch_size, drop_last, seed=seed)


@settings(max_examples=200, deadline=None)
@given(keys, st.integers(1, 8), st.integers(0, 3), st.integers(0, 2))
def test_an_epoch_is_every_row_once_in_batches_without_a_clash(
    rows: Keys, batch_size: int, seed: int, epoch: int
) -> None:
    batches = sampler(rows, batch_size, seed=seed)
    batches.set_epoch(epoch)
    made = list(batches)
    assert sorted(row for batch in made for row in batch) == list(range(len(rows)))
    for batch in made:
        assert 1 <= len(batch) <= batch_size
        assert sum(len(rows[row]) for row in batch) == len(frozenset().union(*(rows[row] for row in batch)))
    assert len(batches) == len(made), "the trainer ends an epoch after so many batches"


@settings(max_examples=50, deadline=None)
@given(keys, st.integers(1, 8))
def test_dropping_the_last_leaves_full_batches_only(rows: Keys, batch_size: int) -> None:
    batches = sampler(rows, batch_size, drop_last=True)
    assert all(len(batch) == batch_size for batch in batches)
    assert len(batches) == len(list(batches))


def test_seed_and_epoch_decide_the_order_and_nothing_else_does() -> None:
    rows: Keys = [frozenset([row % 7]) for row in range(60)]
    first, again, other = sampler(rows, 5), sampler(rows, 5), sampler(rows, 5, seed=1)
    assert list(first) == list(again)
    assert list(first) != list(other)
    before = list(first)
    first.set_epoch(1)
    assert list(first) != before


def test_rows_that_all_clash_make_batches_of_one() -> None:
    assert [len(batch) for batch in sampler([frozenset(["tool"])] * 4, 32)] == [1, 1, 1, 1]

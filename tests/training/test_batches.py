"""Batches: no two rows of a batch share a key, and a pass is every row once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from itertools import chain, combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from training.batches import Plan, plan_batches, planned

Keys = list[frozenset[Hashable]]

keys = st.lists(st.frozensets(st.integers(0, 5), max_size=3), max_size=30)


def steps(plan: Plan, processes: int) -> Plan:
    """The rows that all processes see in each step."""
    return [list(chain(*plan[start : start + processes])) for start in range(0, len(plan), processes)]


@settings(max_examples=100, deadline=None)
@given(keys, st.integers(1, 8), st.integers(0, 3), st.integers(1, 3))
def test_a_pass_is_every_row_once_in_batches_without_a_clash(
    rows: Keys, batch_size: int, seed: int, epochs: int
) -> None:
    plan = plan_batches(rows, batch_size, epochs, seed=seed)
    assert Counter(row for batch in plan for row in batch) == dict.fromkeys(range(len(rows)), epochs)
    for batch in plan:
        assert 1 <= len(batch) <= batch_size
        assert sum(len(rows[row]) for row in batch) == len(frozenset().union(*(rows[row] for row in batch)))


@settings(max_examples=100, deadline=None)
@given(keys, st.integers(1, 8), st.integers(2, 3))
def test_processes_share_one_step_without_a_clash_in_equal_parts(rows: Keys, batch_size: int, processes: int) -> None:
    plan = plan_batches(rows, batch_size, 1, processes=processes)
    assert len(plan) % processes == 0
    for start in range(0, len(plan), processes):
        assert len({len(part) for part in plan[start : start + processes]}) == 1
    for batch in steps(plan, processes):
        assert sum(len(rows[row]) for row in batch) == len(frozenset().union(*(rows[row] for row in batch)))
    seen = Counter(row for batch in plan for row in batch)
    assert set(seen.values()) <= {1}
    left = [rows[row] for row in range(len(rows)) if row not in seen]
    for first, second in combinations(left, 2):
        assert processes > 2 or not first.isdisjoint(second), "only rows that have nobody to stand beside are left out"


def test_two_processes_take_the_steps_that_one_takes() -> None:
    rows: Keys = [frozenset([row]) for row in range(64)]
    assert steps(plan_batches(rows, 16, 2, processes=2), 2) == plan_batches(rows, 16, 2)


def test_half_an_epoch_is_half_of_its_batches_and_every_pass_has_an_order_of_its_own() -> None:
    rows: Keys = [frozenset([row]) for row in range(40)]
    half, one, more = (plan_batches(rows, 4, epochs) for epochs in (0.5, 1, 2.5))
    assert (len(half), len(one), len(more)) == (5, 10, 25)
    assert half == one[:5]
    assert more[:10] == one
    assert more[10:20] != one
    assert plan_batches(rows, 4, 0) == []


def test_the_seed_decides_the_order_and_nothing_else_does() -> None:
    rows: Keys = [frozenset([row % 7]) for row in range(60)]
    assert plan_batches(rows, 5, 1) == plan_batches(rows, 5, 1)
    assert plan_batches(rows, 5, 1) != plan_batches(rows, 5, 1, seed=1)


def test_rows_that_all_clash_make_batches_of_one_and_none_for_two_processes() -> None:
    alike: Keys = [frozenset(["tool"])] * 4
    assert [len(batch) for batch in plan_batches(alike, 32, 1)] == [1, 1, 1, 1]
    assert plan_batches(alike, 32, 1, processes=2) == []


def test_the_sampler_hands_out_the_plan() -> None:
    plan = plan_batches([frozenset([row % 3]) for row in range(10)], 4, 2)
    sampler = planned(plan)(dataset=range(10), batch_size=4, drop_last=False, seed=3)
    assert list(sampler) == plan
    assert len(sampler) == len(plan)

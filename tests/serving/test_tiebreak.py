"""The tiebreak by example: cheaper, then faster, then more relevant, then registry order; only inside the margin."""

from __future__ import annotations

import numpy as np
import pytest

from data.errors import InputError
from serving.tiebreak import tiebreak

UNKNOWN = float("nan")


def order(
    relevance: list[float],
    cost: list[float] | None = None,
    p50: list[float] | None = None,
    row: list[int] | None = None,
    margin: float = 0.05,
) -> list[int]:
    k = len(relevance)
    result: list[int] = tiebreak(
        np.array(relevance),
        np.array(cost or [UNKNOWN] * k),
        np.array(p50 or [UNKNOWN] * k),
        np.array(row if row is not None else range(k)),
        margin,
    ).tolist()
    return result


def test_outside_the_margin_only_relevance_counts() -> None:
    assert order([0.5, 0.9, 0.7], cost=[0.0, 9.0, 1.0]) == [1, 2, 0]


def test_inside_the_margin_the_cheaper_tool_comes_first() -> None:
    assert order([0.90, 0.87], cost=[1.0, 0.1]) == [1, 0]


def test_at_equal_cost_the_faster_tool_comes_first() -> None:
    assert order([0.90, 0.87], cost=[1.0, 1.0], p50=[300.0, 20.0]) == [1, 0]


def test_at_equal_cost_and_speed_the_more_relevant_tool_comes_first() -> None:
    assert order([0.87, 0.90, 0.88], cost=[1.0] * 3, p50=[5.0] * 3, row=[3, 7, 5]) == [1, 2, 0]


def test_without_cost_and_latency_the_tail_of_small_relevances_keeps_its_order() -> None:
    assert order([0.001, 0.004, 0.9, 0.015], margin=0.02) == [2, 3, 1, 0]


def test_between_equals_the_registry_decides() -> None:
    assert order([0.9, 0.9, 0.9], cost=[1.0] * 3, p50=[5.0] * 3, row=[7, 3, 5]) == [1, 2, 0]


def test_an_unknown_cost_comes_after_a_known_one_and_is_not_free() -> None:
    assert order([0.90, 0.87], cost=[UNKNOWN, 100.0]) == [1, 0]


def test_two_unknown_costs_are_told_apart_by_latency() -> None:
    assert order([0.90, 0.88, 0.87], p50=[UNKNOWN, 90.0, 30.0]) == [2, 1, 0]


def test_groups_do_not_chain_from_neighbour_to_neighbour() -> None:
    # 0.86 is within the margin of 0.90, and 0.82 of 0.86, but the cheapest is not within it of the leader.
    assert order([0.90, 0.86, 0.82], cost=[3.0, 2.0, 1.0]) == [1, 0, 2]


def test_a_margin_of_zero_still_breaks_exact_ties() -> None:
    assert order([0.5, 0.5, 0.6], cost=[2.0, 1.0, 9.0], margin=0.0) == [2, 1, 0]


def test_nothing_to_order_gives_an_empty_order() -> None:
    result = tiebreak(np.empty(0), np.empty(0), np.empty(0), np.empty(0, dtype=np.int64), 0.1)
    assert result.dtype == np.int64
    assert result.shape == (0,)


@pytest.mark.parametrize("margin", [-0.1, UNKNOWN])
def test_a_margin_that_is_no_margin_is_refused(margin: float) -> None:
    with pytest.raises(InputError, match="margin"):
        order([0.5], margin=margin)


def test_a_candidate_without_relevance_is_refused_by_its_row() -> None:
    with pytest.raises(InputError, match="catalog row 8"):
        order([0.5, UNKNOWN], row=[4, 8])

"""Retrieval: the best rows of a ranking, and rankings put together."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.retrieval import RRF_K, fuse, in_turns, serving_any, top

scores = st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.5, 1.0]), max_size=20)
rankings = st.lists(st.lists(st.integers(0, 9), unique=True, max_size=8), max_size=4)


def rows(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


@settings(max_examples=200, deadline=None)
@given(scores, st.integers(1, 8), st.lists(st.booleans(), min_size=20, max_size=20))
def test_top_is_a_full_sort_cut_at_k(values: list[float], k: int, mask: list[bool]) -> None:
    allowed = [row for row in range(len(values)) if mask[row]]
    expected = sorted((row for row in allowed if values[row] > 0), key=lambda row: (-values[row], row))[:k]
    assert top(np.array(values, np.float32), k, rows(*allowed)).tolist() == expected


def test_top_of_all_rows_leaves_out_what_has_no_score() -> None:
    assert top(np.array([0.0, 2.0, -1.0, 3.0], np.float32), 10).tolist() == [3, 1]


@settings(max_examples=200, deadline=None)
@given(rankings, st.integers(1, 12))
def test_fusion_sums_reciprocal_ranks(lists: list[list[int]], k: int) -> None:
    fused, score = fuse([rows(*ranking) for ranking in lists], k)
    expected = {
        row: sum(1 / (RRF_K + ranking.index(row) + 1) for ranking in lists if row in ranking)
        for row in {row for ranking in lists for row in ranking}
    }
    assert fused.tolist() == sorted(expected, key=lambda row: (-expected[row], row))[:k]
    np.testing.assert_allclose(score, [expected[row] for row in fused.tolist()])


def test_a_weight_of_zero_leaves_a_ranking_without_a_say() -> None:
    fused, _ = fuse([rows(1, 2), rows(2, 1)], 2, weights=[1.0, 0.0])
    assert fused.tolist() == [1, 2]


def test_a_weight_for_every_ranking_is_needed() -> None:
    with pytest.raises(ValueError, match="shorter"):
        fuse([rows(1), rows(2)], 2, weights=[1.0])


@settings(max_examples=200, deadline=None)
@given(rankings, st.integers(1, 12))
def test_taking_turns_gives_every_ranking_its_share(lists: list[list[int]], k: int) -> None:
    taken = in_turns([rows(*ranking) for ranking in lists], k).tolist()
    known = {row for ranking in lists for row in ranking}
    assert len(taken) == len(set(taken)) == min(k, len(known))
    share = k // max(len(lists), 1)
    for ranking in lists:
        assert set(ranking[:share]) <= set(taken)


def test_a_tool_that_may_serve_two_steps_stands_before_one_that_serves_one_a_little_better() -> None:
    order = serving_any([rows(3, 1), rows(2, 1)], [np.array([0.6, 0.5]), np.array([0.55, 0.5])], 4)
    assert order.tolist() == [1, 3, 2]  # 0.75, 0.6, 0.55


def test_equal_chances_and_steps_without_a_relevance_stand_in_turns() -> None:
    rankings, unknown = [rows(3, 1), rows(2, 0)], np.array([np.nan, np.nan])
    turns = in_turns(rankings, 4).tolist()
    assert serving_any(rankings, [np.array([0.5, 0.5])] * 2, 4).tolist() == turns
    assert serving_any(rankings, [unknown, np.array([0.9, 0.1])], 4).tolist() == turns


@settings(max_examples=200, deadline=None)
@given(rankings, st.integers(0, 2**32 - 1))
def test_the_chance_to_serve_any_step_orders_every_candidate_once(lists: list[list[int]], seed: int) -> None:
    draw, given_rows = np.random.default_rng(seed), [rows(*ranking) for ranking in lists]
    chances = [draw.random(len(ranking)) for ranking in lists]
    missed = {row: 1.0 for ranking in lists for row in ranking}
    for ranking, chance in zip(lists, chances, strict=True):
        for row, one in zip(ranking, chance, strict=True):
            missed[row] *= 1.0 - one
    order = serving_any(given_rows, chances, 1 + max(missed, default=0)).tolist()
    assert sorted(order) == sorted(missed)
    assert all(missed[first] <= missed[second] + 1e-12 for first, second in pairwise(order))

"""Retrieval: the best rows of a ranking, and rankings put together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.retrieval import RRF_K, fuse, in_turns, top

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

"""Contract: cost and latency never move a tool above one that is more relevant by over the margin."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.tiebreak import tiebreak

figure = st.one_of(st.just(float("nan")), st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 10))
candidate = st.tuples(st.one_of(st.sampled_from([0.1, 0.15, 0.2, 0.25]), st.floats(0, 1)), figure, figure)
margins = st.one_of(st.just(0.0), st.sampled_from([0.05, 0.1]), st.floats(0, 1))


@settings(max_examples=300, deadline=None)
@given(st.lists(candidate, max_size=12), margins, st.randoms(use_true_random=False))
def test_the_margin_holds_and_the_input_order_does_not_matter(
    candidates: list[tuple[float, float, float]], margin: float, random: object
) -> None:
    relevance, cost, p50 = (np.array([c[i] for c in candidates], dtype=np.float64) for i in range(3))
    rows = np.arange(len(candidates)) * 3 + 1
    order = tiebreak(relevance, cost, p50, rows, margin)

    assert sorted(order.tolist()) == list(range(len(candidates)))
    ordered = relevance[order]
    for above in range(len(ordered)):
        assert not np.any(ordered[above + 1 :] - ordered[above] > margin)

    shuffled = list(range(len(candidates)))
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    index = np.array(shuffled, dtype=np.int64)
    again = tiebreak(relevance[index], cost[index], p50[index], rows[index], margin)
    assert rows[index][again].tolist() == rows[order].tolist()


@settings(max_examples=100, deadline=None)
@given(st.lists(candidate, min_size=2, max_size=12), margins)
def test_among_candidates_within_the_margin_of_the_best_the_cheapest_known_leads(
    candidates: list[tuple[float, float, float]], margin: float
) -> None:
    relevance, cost, p50 = (np.array([c[i] for c in candidates], dtype=np.float64) for i in range(3))
    first = tiebreak(relevance, cost, p50, np.arange(len(candidates)), margin)[0]
    known = cost[(relevance.max() - relevance <= margin) & ~np.isnan(cost)]
    assert np.isnan(cost[first]) if not len(known) else cost[first] == known.min()

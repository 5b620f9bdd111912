"""Comparison on the same queries: a loss is refused, noise is not, and what cannot be told is said to be so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from training.comparison import Compared, compare, compare_no_tool, compare_side_by_side, refusals


def rows(n: int, *, hit: float = 0.8, seed: int = 0, prefix: str = "q", **figures: Any) -> list[dict[str, Any]]:
    """Rows of n queries of which a share `hit` finds its tool; the same seed misses the same queries."""
    right = np.random.default_rng(seed).permutation(n) < hit * n
    return [
        {
            "question": f"{prefix}{i}",
            "warm": i % 4 > 0,
            "ndcg@10": float(r),
            "retrieved": 1.0,
            "shown": 1.0,
            "first": float(r),
            "stated": hit,
            "right": bool(r),
            "turned": 0.0,
            "ms": 10.0,
            **figures,
        }
        for i, r in enumerate(right)
    ]


def of(found: list[Compared], figure: str) -> Compared:
    return next(one for one in found if one.figure == figure)


def test_the_same_figures_are_not_worse_in_anything() -> None:
    found = compare(rows(200), rows(200))
    assert {one.verdict for one in found} == {"not worse"}
    assert refusals(found) == []


def test_a_clear_loss_is_worse_and_its_refusal_has_both_figures() -> None:
    found = compare(rows(400, hit=0.6), rows(400))
    lost = of(found, "ndcg@10")
    assert (lost.verdict, lost.n) == ("worse", 400)
    assert (lost.ours, lost.theirs) == (pytest.approx(0.6), pytest.approx(0.8))
    assert any(reason.startswith("ndcg@10 worse: 0.6 against 0.8") for reason in refusals(found))


def test_pairing_sees_what_two_means_of_the_same_queries_would_hide() -> None:
    better = rows(400)
    worse = [dict(row) for row in better]
    for row in [row for row in worse if row["ndcg@10"] == 1.0][:24]:
        row["ndcg@10"] = 0.4
    interval = of(compare(worse, better), "ndcg@10").interval
    assert interval is not None
    assert interval[1] < -0.01, "one mean alone is known to 0.04"


def test_a_loss_that_may_be_noise_is_not_known_and_refused() -> None:
    found = compare(rows(60, seed=1), rows(60, seed=2))
    assert of(found, "ndcg@10").verdict == "not known"
    assert any("not known" in reason for reason in refusals(found))


def test_a_loss_on_cold_tools_is_seen_behind_a_better_mean() -> None:
    theirs = rows(400, hit=0.7)
    ours = [{**row, "ndcg@10": 1.0 if row["warm"] else 0.0} for row in theirs]
    found = compare(ours, theirs)
    assert of(found, "ndcg@10").verdict == "not worse"
    cold = of(found, "ndcg@10 of cold tools")
    assert (cold.verdict, cold.n) == ("worse", 100)


def test_relevance_that_says_too_much_is_a_worse_calibration() -> None:
    found = compare(rows(300, stated=0.99), rows(300))
    assert of(found, "calibration error").verdict == "worse"
    assert of(found, "ndcg@10").verdict == "not worse"


@pytest.mark.parametrize(("ms", "verdict"), [(14.0, "not worse"), (20.0, "worse")])
def test_latency_may_be_half_as_long_again(ms: float, verdict: str) -> None:
    assert of(compare(rows(100, ms=ms), rows(100)), "p95 latency").verdict == verdict


def test_a_bundle_without_a_head_has_no_calibration_to_compare() -> None:
    found = compare(rows(100, stated=None), rows(100))
    assert of(found, "calibration error").verdict == "not measured"
    assert refusals(found) == []


def test_only_queries_of_both_count_in_any_order() -> None:
    ours = [*rows(100), *rows(100, hit=0.0, prefix="other")]
    found = compare(list(reversed(ours)), rows(100))
    assert of(found, "ndcg@10").n == 100
    assert of(found, "ndcg@10").difference == pytest.approx(0.0)


def test_few_queries_decide_nothing() -> None:
    assert refusals(compare(rows(12), rows(12))) == [
        "only 12 queries were answered by both: 30 are the least that tell"
    ]


def test_requests_turned_away_though_a_tool_fits_are_a_loss() -> None:
    found = compare(rows(200, turned=0.2), rows(200))
    turned = of(found, "turned away though a tool fits")
    assert (turned.verdict, turned.difference) == ("worse", pytest.approx(0.2))
    assert "turned away though a tool fits worse: 0.2 against 0" in "; ".join(refusals(found))


def test_traces_are_drawn_whole_since_their_queries_fail_together() -> None:
    theirs = [{**row, "ndcg@10": 0.5} for row in rows(400)]
    ours = [{**row, "ndcg@10": 0.5 + (0.1 if i < 200 else -0.1)} for i, row in enumerate(theirs)]
    alone = of(compare(ours, theirs), "ndcg@10")
    of_four = [{**row, "trace": i // 100} for i, row in enumerate(ours)]
    together = of(compare(of_four, theirs), "ndcg@10")
    assert alone.interval is not None
    assert together.interval is not None
    assert alone.difference == together.difference
    assert alone.verdict == "not worse"
    assert together.verdict == "not known"
    assert np.ptp(together.interval) > 5 * np.ptp(alone.interval)


def no_tool(n: int, turned: float) -> list[dict[str, Any]]:
    return [{"question": f"n{i}", "trace": f"n{i}", "turned": float(i < turned * n)} for i in range(n)]


def test_to_stop_turning_away_what_nothing_fits_is_worse() -> None:
    (found,) = compare_no_tool(no_tool(100, 0.2), no_tool(100, 0.6))
    assert (found.verdict, found.ours, found.theirs) == ("worse", 0.2, 0.6)
    (few,) = compare_no_tool(no_tool(10, 0.2), no_tool(10, 0.6))
    assert few.verdict == "not measured"


def beside(n: int, ms: float = 10.0, poisoned: float = 0.0, first: float = 0.0) -> list[dict[str, Any]]:
    figures = {"ms": ms, "poisoned": poisoned, "poisoned_first": first}
    return [{"question": f"s{i}", "trace": f"s{i}", **figures} for i in range(n)]


def test_more_poisoned_cards_on_the_menu_are_worse_and_fewer_are_not() -> None:
    found = compare_side_by_side(beside(60, poisoned=0.2, first=0.1), beside(60))
    assert [one.verdict for one in found] == ["not worse", "worse", "worse"]
    assert {one.verdict for one in compare_side_by_side(beside(60), beside(60, poisoned=0.2))} == {"not worse"}


def test_side_by_side_the_ratio_of_the_medians_decides() -> None:
    slow = compare_side_by_side(beside(60, ms=40.0), beside(60, ms=20.0))[0]
    assert (slow.figure, slow.verdict) == ("median latency, side by side", "worse")
    assert slow.sentence().endswith("40 against 20, 2.00 [2.00, 2.00] times; it may be 1.5 times as long")


def test_no_query_of_both_is_an_error() -> None:
    with pytest.raises(ValueError, match="share no query"):
        compare(rows(10), rows(10, prefix="other"))

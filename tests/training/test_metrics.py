"""Metrics against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from data.queries import Query
from training.metrics import (
    auroc,
    bootstrap_interval,
    calibration_bins,
    expected_calibration_error,
    ips_weighted_mean,
    mean_metrics,
    ndcg_at_k,
    paired_difference_interval,
    precision_recall,
    ranked_gains,
    ranking_metrics,
    recall_at_k,
    reciprocal_rank,
)


def query(*gold: str, **alternatives: tuple[str, ...]) -> Query:
    return Query(qid="q", text="t", gold=gold, gold_alt=alternatives)


def test_a_gold_tool_gains_where_it_stands() -> None:
    assert ranked_gains(["x", "a", "y"], query("a")).tolist() == [0, 1, 0]


def test_an_equivalent_counts_as_its_gold_once() -> None:
    assert ranked_gains(["a2", "a", "a3"], query("a", a=("a2", "a3"))).tolist() == [1, 0, 0]


def test_a_repeated_id_gains_nothing_the_second_time() -> None:
    assert ranked_gains(["a", "a"], query("a", "b", b=("a",))).tolist() == [1, 0]


@pytest.mark.parametrize("gold", [("a", "b"), ("b", "a")])
def test_a_shared_equivalent_stands_for_the_gold_that_is_still_missing(gold: tuple[str, ...]) -> None:
    shared = query(*gold, a=("c",), b=("c",))
    assert ranked_gains(["c", "a"], shared).tolist() == [1, 1]
    assert ranked_gains(["c", "b"], shared).tolist() == [1, 1]
    assert ranked_gains(["a", "b", "c"], shared).tolist() == [1, 1, 0]


def test_recall_is_the_share_of_the_gold_tools() -> None:
    ranking = ["a", "x", "b", "y"]
    assert recall_at_k(ranking, query("a", "b", "c"), 1) == pytest.approx(1 / 3)
    assert recall_at_k(ranking, query("a", "b", "c"), 3) == pytest.approx(2 / 3)
    assert recall_at_k(ranking, query("a", "b", "c"), 40) == pytest.approx(2 / 3)
    assert recall_at_k([], query("a"), 5) == 0.0


def test_a_gold_tool_listed_twice_is_one_tool() -> None:
    assert recall_at_k(["a"], query("a", "a"), 1) == 1.0


def test_ndcg_discounts_by_position_over_the_ideal_of_all_gold_tools() -> None:
    dcg, ideal = 1 + 1 / math.log2(4), 1 + 1 / math.log2(3)
    assert ndcg_at_k(["a", "x", "b"], query("a", "b"), 10) == pytest.approx(dcg / ideal)
    assert ndcg_at_k(["b", "a"], query("a", "b"), 10) == pytest.approx(1.0)
    assert ndcg_at_k(["x", "a"], query("a"), 1) == 0.0


def test_ndcg_at_k_is_perfect_when_k_gold_tools_of_more_fill_the_top() -> None:
    assert ndcg_at_k(["a", "b"], query("a", "b", "c"), 2) == pytest.approx(1.0)


def test_reciprocal_rank_is_that_of_the_first_hit() -> None:
    assert reciprocal_rank(["x", "y", "b", "a"], query("a", "b")) == pytest.approx(1 / 3)
    assert reciprocal_rank(["x"], query("a")) == 0.0


def test_a_query_without_gold_has_no_ranking_metric() -> None:
    with pytest.raises(ValueError, match="query 'q' has no gold tool"):
        ranking_metrics(["a"], query())


def test_all_metrics_of_a_query_agree_with_the_single_ones() -> None:
    ranking, both = ["x", "a", "y", "b"], query("a", "b")
    row = ranking_metrics(ranking, both)
    assert set(row) == {"recall@1", "recall@3", "recall@5", "recall@10", "recall@40", "ndcg@10", "mrr"}
    assert row["recall@3"] == recall_at_k(ranking, both, 3)
    assert row["ndcg@10"] == ndcg_at_k(ranking, both, 10)
    assert row["mrr"] == 0.5


def test_means_are_taken_metric_by_metric() -> None:
    assert mean_metrics([{"mrr": 1.0, "x": 0.0}, {"mrr": 0.0, "x": 0.5}]) == {"mrr": 0.5, "x": 0.25}
    assert mean_metrics([]) == {}


def test_auroc_counts_pairs_and_a_tie_as_half() -> None:
    assert auroc([0.9, 0.8, 0.1], [1, 1, 0]) == 1.0
    assert auroc([0.1, 0.9], [1, 0]) == 0.0
    assert auroc([0.5, 0.5], [1, 0]) == 0.5
    # pairs: 0.8>0.5, 0.8>0.2, 0.5=0.5, 0.5>0.2
    assert auroc([0.8, 0.5, 0.5, 0.2], [1, 1, 0, 0]) == pytest.approx(3.5 / 4)


def test_auroc_of_one_class_is_undefined() -> None:
    assert auroc([0.1, 0.2], [1, 1]) is None
    assert auroc([], []) is None


def test_precision_and_recall_take_the_threshold_itself_as_positive() -> None:
    assert precision_recall([0.9, 0.5, 0.4], [1, 0, 1], 0.5) == (0.5, 0.5)
    assert precision_recall([0.1], [1], 0.5) == (None, 0.0)
    assert precision_recall([0.9], [0], 0.5) == (0.0, None)


def test_calibration_error_of_honest_probabilities_is_zero() -> None:
    assert expected_calibration_error([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1]) == 0.0


def test_calibration_error_weighs_bins_by_their_cases() -> None:
    # two bins: (0.2, 0.2, 0.2) with 1 of 3 true, (0.9,) with 0 of 1 true
    said, true = [0.2, 0.2, 0.2, 0.9], [1, 0, 0, 0]
    expected = (3 * abs(0.2 - 1 / 3) + 1 * 0.9) / 4
    assert expected_calibration_error(said, true) == pytest.approx(expected)


def test_calibration_bins_hold_equal_shares_of_distinct_probabilities() -> None:
    said = np.linspace(0.0, 0.99, 30)
    bins = calibration_bins(said, np.zeros(30))
    assert [b.count for b in bins] == [2] * 15
    assert bins[0].predicted < bins[-1].predicted


def test_calibration_does_not_depend_on_the_order_of_ties() -> None:
    said = [0.5] * 20
    labels = [1] * 10 + [0] * 10
    assert expected_calibration_error(said, labels) == expected_calibration_error(said, labels[::-1]) == 0.0


def test_scores_and_labels_must_match_and_be_numbers() -> None:
    with pytest.raises(ValueError, match="one length"):
        auroc([0.1], [1, 0])
    with pytest.raises(ValueError, match="NaN"):
        expected_calibration_error([float("nan")], [1])


def test_a_bootstrap_interval_surrounds_the_mean_and_repeats_under_its_seed() -> None:
    values = [0.0, 1.0] * 100
    low, high = bootstrap_interval(values, seed=3)
    assert low < 0.5 < high
    # standard error 0.5 / sqrt(200) = 0.0354, so about 0.43 to 0.57
    assert (low, high) == (pytest.approx(0.43, abs=0.02), pytest.approx(0.57, abs=0.02))
    assert bootstrap_interval(values, seed=3) == (low, high)
    assert bootstrap_interval([0.7, 0.7], seed=1) == (0.7, 0.7)


def test_a_paired_interval_is_narrower_than_the_spread_of_either_side() -> None:
    theirs = np.tile([0.0, 1.0], 50)
    low, high = paired_difference_interval(theirs + 0.1, theirs, seed=0)
    assert low == pytest.approx(0.1)
    assert high == pytest.approx(0.1)
    with pytest.raises(ValueError, match="same queries"):
        paired_difference_interval([1.0], [1.0, 0.0], seed=0)


def test_an_interval_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="non-empty"):
        bootstrap_interval([], seed=0)


def test_rare_decisions_weigh_more_up_to_the_clip() -> None:
    # weights 1, 4 -> (1*0 + 4*1) / 5
    assert ips_weighted_mean([0.0, 1.0], [1.0, 0.25]) == pytest.approx(0.8)
    # 1/0.01 = 100 is cut at 10 -> 10 / 11
    assert ips_weighted_mean([0.0, 1.0], [1.0, 0.01]) == pytest.approx(10 / 11)
    assert ips_weighted_mean([], []) is None
    with pytest.raises(ValueError, match="propensities"):
        ips_weighted_mean([1.0], [0.0])

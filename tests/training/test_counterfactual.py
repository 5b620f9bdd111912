"""Counterfactual estimates: right where the truth is known, and doubted where the log cannot know it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from data.errors import InputError
from training.counterfactual import (
    ESTIMATORS,
    NOTHING,
    UNSHOWN,
    LoggedDecisions,
    Terms,
    asymptotic_interval,
    bootstrap_interval,
    counterfactual_report,
    doubly_robust,
    doubts,
    inverse_propensity,
    logged_success,
    overlap,
    self_normalised,
)


def two_tools(n: int, seed: int = 0, prediction: tuple[float, float] = (0.5, 0.5)) -> LoggedDecisions:
    """A log that showed a good tool (0.9) in a fifth and a poor one (0.3) in the rest; the new one turns that round."""
    random = np.random.default_rng(seed)
    good = random.random(n) < 0.2
    return LoggedDecisions(
        group=np.arange(n),
        called=np.arange(n),
        reward=(random.random(n) < np.where(good, 0.9, 0.3)).astype(float),
        direct=np.full(n, 0.8 * prediction[0] + 0.2 * prediction[1]),
        first=np.arange(n),
        decision=np.arange(n),
        logged=np.where(good, 0.2, 0.8),
        target=np.where(good, 0.8, 0.2),
        predicted=np.where(good, *prediction),
    )


TRUTH = 0.8 * 0.9 + 0.2 * 0.3


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimate_finds_what_the_new_selector_would_earn(name: str) -> None:
    log = two_tools(20_000)
    terms = ESTIMATORS[name](log)
    assert terms.value == pytest.approx(TRUTH, abs=0.02)
    low, high = asymptotic_interval(terms, log.group) or (1.0, 0.0)
    assert low < TRUTH < high
    assert logged_success(log).value == pytest.approx(0.2 * 0.9 + 0.8 * 0.3, abs=0.01)


def test_the_same_policy_is_worth_what_the_log_earned() -> None:
    log = replace(two_tools(500), target=two_tools(500).logged)
    for estimator in (inverse_propensity, self_normalised):
        assert estimator(log).value == pytest.approx(logged_success(log).value)
    report = counterfactual_report(log)
    assert report["estimates"]["inverse_propensity"]["gain"] == pytest.approx(0.0)


def test_a_right_prediction_makes_up_for_wrong_propensities_and_right_propensities_for_a_wrong_prediction() -> None:
    wrong_propensities = replace(two_tools(20_000, prediction=(0.9, 0.3)), logged=np.full(20_000, 0.5))
    assert inverse_propensity(wrong_propensities).value != pytest.approx(TRUTH, abs=0.1)
    assert doubly_robust(wrong_propensities).value == pytest.approx(TRUTH, abs=0.02)
    assert doubly_robust(two_tools(20_000, prediction=(0.1, 0.9))).value == pytest.approx(TRUTH, abs=0.03)


def test_a_good_prediction_narrows_the_interval() -> None:
    log = two_tools(2_000, prediction=(0.9, 0.3))
    narrow, wide = (asymptotic_interval(f(log), log.group) for f in (doubly_robust, inverse_propensity))
    assert narrow is not None
    assert wide is not None
    assert narrow[1] - narrow[0] < 0.8 * (wide[1] - wide[0])


def test_decisions_of_one_trace_are_no_independent_witnesses() -> None:
    log = two_tools(200)
    copied = Terms(np.repeat(log.reward, 25), np.ones(5000))
    alone = asymptotic_interval(logged_success(log), log.group)
    repeated = asymptotic_interval(copied, np.repeat(log.group, 25))
    assert repeated == pytest.approx(alone)
    assert bootstrap_interval(copied, np.repeat(log.group, 25), 0) == pytest.approx(
        bootstrap_interval(logged_success(log), log.group, 0)
    )


def test_both_intervals_agree_on_a_large_log() -> None:
    log = two_tools(5_000)
    for estimator in ESTIMATORS.values():
        terms = estimator(log)
        assert asymptotic_interval(terms, log.group) == pytest.approx(bootstrap_interval(terms, log.group, 0), abs=0.01)


def test_overlap_counts_what_an_estimate_rests_on() -> None:
    log = replace(
        two_tools(4),
        logged=np.array([0.01, 0.5, 1.0, 1.0]),
        target=np.array([1.0, 1.0, 0.0, 1.0]),
        first=np.array([0, NOTHING, UNSHOWN, UNSHOWN]),
        reward=np.array([0.0, 1.0, 1.0, 1.0]),
        group=np.array([0, 0, 1, 2]),
    )
    assert overlap(log) == {
        "decisions": 4,
        "traces": 3,
        "effective": pytest.approx(103**2 / (100**2 + 2**2 + 1)),
        "largest_weight": 100.0,
        "heaviest": pytest.approx(2 / 3),
        "clipped": 0.25,
        "unmatched": 0.25,
        "novel": 0.5,
        "covered": pytest.approx((100 + 1) / 4),
        "witnesses": 1,
        "randomised": 0.5,
    }


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {
                "logged": np.r_[0.001, np.full(199, 0.9)],
                "target": np.full(200, 0.9),
                "reward": np.r_[1.0, np.ones(150), np.zeros(49)],
            },
            "one decision brings",
        ),
        ({"target": np.r_[np.zeros(120), np.full(80, 0.9)]}, "in 60% of the decisions the new model does not show"),
        (
            {"first": np.r_[np.full(80, UNSHOWN), np.arange(80, 200)], "target": np.full(200, 0.3)},
            "in 40% of the decisions the new model's first tool was not shown then, and the others, weighted",
        ),
        ({"logged": np.ones(200)}, "every logged propensity is 1"),
        ({"reward": np.ones(200)}, "every logged call succeeded"),
        (
            {"logged": np.r_[np.full(20, 0.02), np.full(180, 0.9)], "target": np.full(200, 0.9)},
            "10% of the weights are over 20",
        ),
    ],
)
def test_a_doubt_is_said_in_plain_words(changes: dict[str, Any], said: str) -> None:
    sound = replace(two_tools(200), target=two_tools(200).logged)
    assert doubts(overlap(sound), sound.reward) == []
    report = counterfactual_report(replace(sound, **changes))
    assert not report["believe"]
    assert any(said in reason for reason in report["because"]), report["because"]


def test_what_was_shown_seldom_is_covered_by_the_few_times_that_it_was() -> None:
    random = np.random.default_rng(0)
    shown = random.random(4000) < 0.25
    log = replace(
        two_tools(4000),
        first=np.where(shown, np.arange(4000), UNSHOWN),
        logged=np.full(4000, 0.25),
        target=np.ones(4000),
    )
    found = overlap(log)
    assert found["novel"] == pytest.approx(0.75, abs=0.03)
    assert found["covered"] == pytest.approx(1.0, abs=0.1)


def test_a_few_lucky_witnesses_are_a_doubt_even_where_their_weight_is_right() -> None:
    n, seldom = 1000, 10
    log = replace(
        two_tools(n),
        first=np.r_[np.arange(seldom), np.full(490, UNSHOWN), np.arange(500, n)],
        logged=np.r_[np.full(seldom, 0.02), np.full(490, 0.9), np.ones(500)],
        target=np.r_[np.ones(seldom), np.full(490, 0.9), np.ones(500)],
    )
    found = overlap(log)
    assert (found["witnesses"], found["covered"]) == (10, pytest.approx(1.0))
    assert any("10 that showed it by chance are too few" in reason for reason in doubts(found, log.reward))


def test_few_decisions_are_a_doubt_and_one_has_no_interval() -> None:
    report = counterfactual_report(two_tools(1))
    assert "there are only 1 decisions" in report["because"]
    assert report["estimates"]["inverse_propensity"]["interval"] is None


def test_nothing_that_the_new_selector_shows_was_called_so_there_is_no_success_per_call() -> None:
    log = replace(two_tools(60), target=np.zeros(60))
    report = counterfactual_report(log)
    assert report["estimates"]["self_normalised"]["value"] is None
    assert report["estimates"]["self_normalised"]["gain_interval"] is None
    assert not report["believe"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"logged": np.array([0.0, 1.0])}, "propensity"),
        ({"logged": np.array([1.2, 1.0])}, "propensity"),
        ({"logged": np.array([np.nan, 1.0])}, "propensity"),
        ({"target": np.array([1.1, 1.0])}, "target"),
        ({"reward": np.array([np.nan, 1.0])}, "reward"),
        ({"called": np.array([1, 0])}, "called"),
        ({"predicted": np.zeros(3)}, "decisions"),
    ],
)
def test_arrays_that_cannot_be_are_refused_by_name(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as refused:
        replace(two_tools(2), **changes)
    assert refused.value.field == field


def test_no_decision_is_refused() -> None:
    with pytest.raises(InputError, match="no decision"):
        two_tools(0)

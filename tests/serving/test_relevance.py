"""Relevance and abstention: the served head is the fitted one, and a no says what to do instead."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from tiny import Trained

from data.errors import BundleError
from serving.bundle import RELEVANCE
from serving.features import FEATURES, Signals
from serving.relevance import FIT_FEATURES, SHORT_GOAL_WORDS, Head, abstention, fit_features, relevance

LONG = "reserve a table for six people on friday evening"
SHORT = "list issues"


def some_signals(k: int) -> Signals:
    rng = np.random.default_rng(3)
    arrays = {field.name: rng.random(k).astype(np.float32) for field in fields(Signals) if field.name != "reach"}
    return Signals(**arrays, reach=0.25)


def test_a_head_gives_one_probability_a_candidate(trained: Trained) -> None:
    head = Head(trained.bundle / RELEVANCE)
    shares = head.probabilities(np.random.default_rng(0).normal(size=(9, len(FEATURES))).astype(np.float32))
    assert shares.shape == (9,)
    assert ((shares >= 0) & (shares <= 1)).all()
    assert len(set(shares.tolist())) > 1


def test_no_candidates_need_no_head_run(trained: Trained) -> None:
    assert relevance(Head(trained.bundle / RELEVANCE), some_signals(0)).shape == (0,)


def test_a_graph_that_is_none_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "relevance.onnx").write_bytes(b"not a graph")
    with pytest.raises(BundleError, match=r"relevance\.onnx: ONNX Runtime cannot load"):
        Head(tmp_path / "relevance.onnx")


def test_fit_features_have_a_column_a_name_and_do_not_read_the_order_of_candidates() -> None:
    best = np.array([0.2, 0.9, 0.6])
    row = fit_features(best, some_signals(3), 0.1)
    assert row.shape == (1, len(FIT_FEATURES))
    assert row[0, :2].tolist() == pytest.approx([0.9, 0.3])
    np.testing.assert_array_equal(row, fit_features(best[::-1], some_signals(3), 0.1))


@pytest.mark.parametrize("best", [[], [0.0], [1.0]])
def test_fit_features_are_finite_at_the_ends(best: list[float]) -> None:
    assert np.isfinite(fit_features(np.array(best), some_signals(len(best)), 0.0)).all()


@pytest.mark.parametrize(
    ("fit", "goal", "named", "outcome"),
    [
        (0.05, LONG, False, "missing_capability"),
        (0.05, SHORT, False, "ask"),
        (0.05, LONG, True, "menu"),
        (0.05, SHORT, True, "menu"),
        (0.2, LONG, False, "widen"),
        (0.2, LONG, True, "menu"),
        (0.3, LONG, False, "menu"),
        (0.1, LONG, False, "widen"),
    ],
)
def test_what_is_said_when_the_fit_is_low(fit: float, goal: str, named: bool, outcome: str) -> None:
    said = abstention(fit, goal, missing_below=0.1, widen_below=0.3, named=named)
    assert said.outcome == outcome
    assert said.fit == fit
    assert bool(said.advice) == (outcome != "menu")


def test_short_is_counted_in_words_of_the_identifier_kind() -> None:
    at_most = " ".join(["w"] * SHORT_GOAL_WORDS)
    assert abstention(0.0, at_most, 0.1, 0.1, named=False).outcome == "ask"
    assert abstention(0.0, f"{at_most} w", 0.1, 0.1, named=False).outcome == "missing_capability"


def test_thresholds_of_zero_turn_nobody_away() -> None:
    assert abstention(0.0, LONG, 0.0, 0.0, named=False).outcome == "menu"

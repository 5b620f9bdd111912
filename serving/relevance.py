"""Relevance and abstention: the learned heads, as probabilities; and what to say when nothing fits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data.words import split_identifier
from serving.encoder import session
from serving.features import Signals, features
from serving.slice import Abstention

FIT_FEATURES: tuple[str, ...] = (
    "best",
    "lead",
    "best_log_odds",
    "cosine",
    "bm25",
    "name",
    "reach",
    "nothing",
    "nearest",
    "vote",
)
"""Columns of `fit_features`, in order."""

SHORT_GOAL_WORDS = 4
"""A goal of at most so many words says too little to be told that nothing fits."""


class Head:
    """A calibrated classifier in ONNX: features (k, f) -> probability (k,) of the positive class."""

    def __init__(self, graph: Path, threads: int = 1) -> None:
        self._session = session(graph, threads)
        self._output = self._session.get_outputs()[-1].name

    def probabilities(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        if not len(rows):
            return np.zeros(0)
        pairs = self._session.run([self._output], {"features": rows})[0]
        return np.asarray(pairs, np.float64)[:, 1]


def relevance(head: Head, signals: Signals) -> NDArray[np.float64]:
    """P(this tool serves this subgoal) for each candidate (k,)."""
    return head.probabilities(features(signals))


def fit_features(best: NDArray[np.float64], signals: Signals, nothing: float) -> NDArray[np.float32]:
    """(1, len(FIT_FEATURES)) float32: what speaks for there being a tool that fits at all.

    `best` is the candidates' relevance (k,), in any order; `nothing` the share of the nearest past subgoals that
    nothing fitted.
    """
    order = np.sort(best)[::-1]
    first = float(order[0]) if len(order) else 0.0
    second = float(order[1]) if len(order) > 1 else 0.0
    bounded = min(max(first, 1e-4), 1 - 1e-4)
    values = (
        first,
        first - second,
        np.log(bounded / (1 - bounded)),
        signals.cosine.max(initial=0.0),
        np.log1p(signals.bm25.max(initial=0.0)),
        signals.name.max(initial=0.0),
        signals.reach,
        nothing,
        signals.nearest.max(initial=0.0),
        signals.vote.max(initial=0.0),
    )
    return np.array([values], np.float32)


def abstention(fit: float, goal: str, missing_below: float, widen_below: float, *, named: bool) -> Abstention:
    """The decision from `fit`, the probability that some tool fits.

    Below `missing_below` nothing fits: a short goal is asked about, a longer one names a missing capability. A goal
    that `named` a tool (its whole name) is never turned away. Below `widen_below` the menu stands, with a warning.
    """
    if fit < missing_below and not named:
        if len(split_identifier(goal)) <= SHORT_GOAL_WORDS:
            return Abstention(
                outcome="ask", fit=fit, threshold=missing_below, advice="The goal is too short to tell: say more."
            )
        return Abstention(
            outcome="missing_capability",
            fit=fit,
            threshold=missing_below,
            advice="No available tool fits this step. Do not retry with other words; say what is missing.",
        )
    if fit < widen_below and not named:
        return Abstention(
            outcome="widen",
            fit=fit,
            threshold=widen_below,
            advice="The fit is uncertain: check the descriptions, or search again with a narrower step.",
        )
    return Abstention(outcome="menu", fit=fit, threshold=widen_below)

"""Comparison: whether a challenger is no worse than the champion on the same queries, by a paired bootstrap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from training.metrics import expected_calibration_error, paired_difference_interval

SAMPLES = 500
FEW_QUERIES = 30
"""Fewer than this decide nothing: their interval leaves any answer open."""
CALIBRATION_BINS = 10
LATENCY_FACTOR = 1.5

Row = Mapping[str, Any]
Rows = Sequence[Row]
Verdict = Literal["not worse", "worse", "not known", "not measured"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Compared:
    """One figure on both sides. `difference`: ours minus theirs with its 95% interval (latency: ours over theirs)."""

    figure: str
    n: int
    ours: float | None
    theirs: float | None
    difference: float | None
    interval: tuple[float, float] | None
    bound: float
    verdict: Verdict

    def sentence(self) -> str:
        """The comparison in words."""
        if self.ours is None or self.theirs is None or self.interval is None:
            return f"{self.figure}: {self.verdict} ({self.n} queries)"
        low, high = self.interval
        latency = self.figure == "p95 latency"
        rule = f"it may be {self.bound:g} times as long" if latency else f"it may lose {self.bound:g}"
        change = f"{self.difference:.2f} [{low:.2f}, {high:.2f}] times" if latency else f"[{low:+.4f}, {high:+.4f}]"
        return f"{self.figure} {self.verdict}: {self.ours:.4g} against {self.theirs:.4g}, {change}; {rule}"


@dataclass(frozen=True)
class _Rule:
    figure: str
    column: str
    loss: float
    cold: bool = False


RULES = (
    _Rule("retrieved", "retrieved", 0.02),
    _Rule("shown", "shown", 0.02),
    _Rule("first", "first", 0.03),
    _Rule("ndcg@10", "ndcg@10", 0.02),
    _Rule("ndcg@10 of cold tools", "ndcg@10", 0.05, cold=True),
)
"""Means that are compared, and the loss that is allowed; `cold`: on queries whose tools our bundle has no past of."""
CALIBRATION_LOSS = 0.03


def compare(ours: Rows, theirs: Rows, seed: int = 0) -> list[Compared]:
    """Each rule's figure on the queries that both sides answered, with the paired interval over queries.

    `not worse`: the interval's bad end is within the loss that is allowed. `worse`: it is not, and the whole interval
    is a loss. Otherwise `not known`, or `not measured` with fewer than FEW_QUERIES. Latency, which neighbours on a
    machine disturb, is worse only where it surely is too long. Raises ValueError where both sides share no query.
    """
    known = {row["question"]: row for row in theirs}
    pairs = [(row, known[row["question"]]) for row in ours if row["question"] in known]
    if not pairs:
        raise ValueError("the two evaluations share no query")
    found = [_mean(rule, [p for p in pairs if not (rule.cold and p[0]["warm"])], seed) for rule in RULES]
    return [*found, _calibration(pairs, seed), _latency(pairs, seed)]


def refusals(found: Sequence[Compared]) -> list[str]:
    """Why not to promote, a sentence each; empty: nothing speaks against it.

    Few cold queries refuse nobody: a log may hold none. Few queries in all do.
    """
    quality = next(one for one in found if one.figure == "ndcg@10")
    if quality.verdict == "not measured":
        return [f"only {quality.n} queries were answered by both: {FEW_QUERIES} are the least that tell"]
    return [one.sentence() for one in found if one.verdict in ("worse", "not known")]


def _mean(rule: _Rule, pairs: Sequence[tuple[Row, Row]], seed: int) -> Compared:
    ours, theirs = _columns(pairs, rule.column)
    if len(pairs) < FEW_QUERIES:
        return _too_few(rule.figure, len(pairs), rule.loss)
    interval = paired_difference_interval(ours, theirs, seed, SAMPLES)
    verdict = _verdict(-interval[1], -interval[0], rule.loss)
    a, b = float(ours.mean()), float(theirs.mean())
    return Compared(rule.figure, len(pairs), a, b, a - b, interval, rule.loss, verdict)


def _calibration(pairs: Sequence[tuple[Row, Row]], seed: int) -> Compared:
    name, stating = "calibration error", [p for p in pairs if p[0]["stated"] is not None and p[1]["stated"] is not None]
    if len(stating) < FEW_QUERIES:
        return _too_few(name, len(stating), CALIBRATION_LOSS)
    stated, right = _columns(stating, "stated"), _columns(stating, "right")

    def errors(rows: Ints) -> tuple[float, float]:
        ours, theirs = (
            expected_calibration_error(stated[side][rows], right[side][rows], CALIBRATION_BINS) for side in (0, 1)
        )
        return ours or 0.0, theirs or 0.0

    random = np.random.default_rng(seed)
    draws = [np.subtract(*errors(random.integers(0, len(stating), len(stating)))) for _ in range(SAMPLES)]
    low, high = (float(value) for value in np.quantile(draws, [0.025, 0.975]))
    a, b = errors(np.arange(len(stating)))
    verdict = _verdict(low, high, CALIBRATION_LOSS)
    return Compared(name, len(stating), a, b, a - b, (low, high), CALIBRATION_LOSS, verdict)


def _latency(pairs: Sequence[tuple[Row, Row]], seed: int) -> Compared:
    name, (ours, theirs) = "p95 latency", _columns(pairs, "ms")
    if len(pairs) < FEW_QUERIES:
        return _too_few(name, len(pairs), LATENCY_FACTOR)
    random = np.random.default_rng(seed)

    def p95(rows: Ints) -> tuple[float, float]:
        return float(np.percentile(ours[rows], 95)), max(float(np.percentile(theirs[rows], 95)), 1e-9)

    draws = [np.divide(*p95(random.integers(0, len(pairs), len(pairs)))) for _ in range(SAMPLES)]
    low, high = (float(value) for value in np.quantile(draws, [0.025, 0.975]))
    a, b = p95(np.arange(len(pairs)))
    verdict: Verdict = "worse" if low > LATENCY_FACTOR else "not worse"
    return Compared(name, len(pairs), a, b, a / b, (low, high), LATENCY_FACTOR, verdict)


def _verdict(least: float, most: float, allowed: float) -> Verdict:
    """From the interval of a loss."""
    return "not worse" if most <= allowed else "worse" if least > 0.0 else "not known"


def _too_few(figure: str, n: int, bound: float) -> Compared:
    return Compared(figure, n, None, None, None, None, bound, "not measured")


def _columns(pairs: Sequence[tuple[Row, Row]], name: str) -> tuple[Floats, Floats]:
    ours, theirs = (np.array([pair[side][name] for pair in pairs], np.float64) for side in (0, 1))
    return ours, theirs

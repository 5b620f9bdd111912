"""Comparison: whether a challenger is no worse than the champion on the same queries, by a bootstrap over traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from training.metrics import expected_calibration_error, middle

SAMPLES = 500
FEW_QUERIES = 30
"""Fewer than this decide nothing: their interval leaves any answer open."""
CALIBRATION_BINS = 10
LATENCY_FACTOR = 1.5

Row = Mapping[str, Any]
Rows = Sequence[Row]
Pairs = Sequence[tuple[Row, Row]]
Verdict = Literal["not worse", "worse", "not known", "not measured"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Compared:
    """One figure on both sides. `difference`: ours minus theirs with its 95% interval; of times, ours over theirs."""

    figure: str
    n: int
    ours: float | None
    theirs: float | None
    difference: float | None
    interval: tuple[float, float] | None
    bound: float
    verdict: Verdict
    more_is_worse: bool = False
    ratio: bool = False

    @property
    def change(self) -> str:
        """The difference and its interval in words; a dash where nothing was measured."""
        if self.difference is None or self.interval is None:
            return "-"
        low, high = self.interval
        if self.ratio:
            return f"{self.difference:.2f} [{low:.2f}, {high:.2f}] times"
        return f"{self.difference:+.4f} [{low:+.4f}, {high:+.4f}]"

    @property
    def rule(self) -> str:
        """What is allowed, in words."""
        if self.ratio:
            return f"it may be {self.bound:g} times as long"
        return f"it may {'gain' if self.more_is_worse else 'lose'} {self.bound:g}"

    def sentence(self) -> str:
        """The comparison in words."""
        if self.ours is None or self.theirs is None:
            return f"{self.figure}: {self.verdict} ({self.n} queries)"
        return f"{self.figure} {self.verdict}: {self.ours:.4g} against {self.theirs:.4g}, {self.change}; {self.rule}"


@dataclass(frozen=True)
class _Rule:
    figure: str
    column: str
    loss: float
    more_is_worse: bool = False
    cold: bool = False


RULES = (
    _Rule("retrieved", "retrieved", 0.02),
    _Rule("shown", "shown", 0.02),
    _Rule("first", "first", 0.03),
    _Rule("ndcg@10", "ndcg@10", 0.02),
    _Rule("ndcg@10 of cold tools", "ndcg@10", 0.05, cold=True),
    _Rule("turned away though a tool fits", "turned", 0.03, more_is_worse=True),
)
"""Means that are compared, and the loss that is allowed; `cold`: on queries whose tools our bundle has no past of."""
NO_TOOL_RULES = (_Rule("turned away where nothing fits", "turned", 0.05),)
POISON_RULES = (
    _Rule("poisoned cards on the menu", "poisoned", 0.02, more_is_worse=True),
    _Rule("a poisoned card first", "poisoned_first", 0.02, more_is_worse=True),
)
CALIBRATION_LOSS = 0.03


def compare(ours: Rows, theirs: Rows, seed: int = 0) -> list[Compared]:
    """Each rule's figure on the queries that both sides answered, with the paired interval over traces.

    Rows are those of `per_query`. `not worse`: the interval's bad end is within the loss that is allowed. `worse`: it
    is not, and the whole interval is a loss. Otherwise `not known`, or `not measured` with fewer than FEW_QUERIES.
    Latency, which neighbours on a machine disturb, is worse only where it surely is too long. Raises ValueError where
    both sides share no query.
    """
    pairs = paired(ours, theirs)
    if not pairs:
        raise ValueError("the two evaluations share no query")
    found = [_mean(rule, [p for p in pairs if not (rule.cold and p[0]["warm"])], seed) for rule in RULES]
    return [*found, _calibration(pairs, seed), latency("p95 latency", pairs, seed, lambda ms: _percentile(ms, 95))]


def compare_no_tool(ours: Rows, theirs: Rows, seed: int = 0) -> list[Compared]:
    """The same for the queries that nothing fits, by the rows of `per_no_tool`; one that is `not measured` if few."""
    return [_mean(rule, paired(ours, theirs), seed) for rule in NO_TOOL_RULES]


def compare_side_by_side(ours: Rows, theirs: Rows, seed: int = 0) -> list[Compared]:
    """Times and poisoned cards, by the rows of `training.side_by_side`: ratio of the medians, and shares."""
    pairs = paired(ours, theirs)
    times = latency("median latency, side by side", pairs, seed, lambda ms: _percentile(ms, 50))
    return [times, *(_mean(rule, pairs, seed) for rule in POISON_RULES)]


def refusals(found: Sequence[Compared]) -> list[str]:
    """Why not to promote, a sentence each; empty: nothing speaks against it.

    Few cold queries refuse nobody: a log may hold none. Few queries in all do.
    """
    quality = next(one for one in found if one.figure == "ndcg@10")
    if quality.verdict == "not measured":
        return [f"only {quality.n} queries were answered by both: {FEW_QUERIES} are the least that tell"]
    return [one.sentence() for one in found if one.verdict in ("worse", "not known")]


def paired(ours: Rows, theirs: Rows) -> list[tuple[Row, Row]]:
    """Rows of the questions that both sides were asked, in our order."""
    known = {row["question"]: row for row in theirs}
    return [(row, known[row["question"]]) for row in ours if row["question"] in known]


def _mean(rule: _Rule, pairs: Pairs, seed: int) -> Compared:
    if len(pairs) < FEW_QUERIES:
        return _too_few(rule.figure, len(pairs), rule.loss, rule.more_is_worse)
    ours, theirs = _columns(pairs, rule.column)
    gain = ours - theirs
    interval = middle([float(gain[rows].mean()) for rows in _draws(pairs, seed)])
    lost = interval if rule.more_is_worse else (-interval[1], -interval[0])
    a, b = float(ours.mean()), float(theirs.mean())
    verdict = _verdict(*lost, rule.loss)
    return Compared(rule.figure, len(pairs), a, b, a - b, interval, rule.loss, verdict, rule.more_is_worse)


def _calibration(pairs: Pairs, seed: int) -> Compared:
    name, stating = "calibration error", [p for p in pairs if p[0]["stated"] is not None and p[1]["stated"] is not None]
    if len(stating) < FEW_QUERIES:
        return _too_few(name, len(stating), CALIBRATION_LOSS, True)
    stated, right = _columns(stating, "stated"), _columns(stating, "right")

    def errors(rows: Ints) -> tuple[float, float]:
        ours, theirs = (
            expected_calibration_error(stated[side][rows], right[side][rows], CALIBRATION_BINS) for side in (0, 1)
        )
        return ours or 0.0, theirs or 0.0

    low, high = middle([float(np.subtract(*errors(rows))) for rows in _draws(stating, seed)])
    a, b = errors(np.arange(len(stating)))
    verdict = _verdict(low, high, CALIBRATION_LOSS)
    return Compared(name, len(stating), a, b, a - b, (low, high), CALIBRATION_LOSS, verdict, more_is_worse=True)


def latency(name: str, pairs: Pairs, seed: int, of: Callable[[Floats], float]) -> Compared:
    """The ratio of one figure `of` the times on both sides; worse where its whole interval is beyond the factor."""
    if len(pairs) < FEW_QUERIES:
        return _too_few(name, len(pairs), LATENCY_FACTOR, True)
    ours, theirs = _columns(pairs, "ms")
    low, high = middle([of(ours[rows]) / max(of(theirs[rows]), 1e-9) for rows in _draws(pairs, seed)])
    a, b = of(ours), max(of(theirs), 1e-9)
    verdict: Verdict = "worse" if low > LATENCY_FACTOR else "not worse"
    return Compared(name, len(pairs), a, b, a / b, (low, high), LATENCY_FACTOR, verdict, True, True)


def _draws(pairs: Pairs, seed: int) -> list[Ints]:
    """SAMPLES resamples as positions of `pairs`: traces are drawn whole, since their queries fail together."""
    names: dict[str, int] = {}
    trace = np.array([names.setdefault(row.get("trace", row["question"]), len(names)) for row, _ in pairs], np.int64)
    order = np.argsort(trace, kind="stable")
    sizes = np.bincount(trace, minlength=len(names))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    random = np.random.default_rng(seed)
    draws: list[Ints] = []
    for _ in range(SAMPLES):
        drawn = random.integers(0, len(names), len(names))
        many = sizes[drawn]
        within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        draws.append(order[np.repeat(starts[drawn], many) + within])
    return draws


def _percentile(values: Floats, q: float) -> float:
    return float(np.percentile(values, q))


def _verdict(least: float, most: float, allowed: float) -> Verdict:
    """From the interval of a loss."""
    return "not worse" if most <= allowed else "worse" if least > 0.0 else "not known"


def _too_few(figure: str, n: int, bound: float, more_is_worse: bool) -> Compared:
    return Compared(figure, n, None, None, None, None, bound, "not measured", more_is_worse)


def _columns(pairs: Pairs, name: str) -> tuple[Floats, Floats]:
    ours, theirs = (np.array([pair[side][name] for pair in pairs], np.float64) for side in (0, 1))
    return ours, theirs

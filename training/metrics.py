"""Metrics of a ranking, a probability and a paired comparison, as pure functions over arrays.

A query without gold has no recall: its ranking metrics raise ValueError, and abstention is what measures it.
A rate without a denominator is None, never 0 or NaN, so that reports stay valid JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from data.queries import Query

RECALL_CUTOFFS = (1, 3, 5, 10, 40)
CALIBRATION_BINS = 15

Floats = NDArray[np.float64]


# --- rankings ---------------------------------------------------------------------------------------------------


def gold_count(query: Query) -> int:
    """How many distinct gold tools the query has; an equivalent is not one more."""
    return len(set(query.gold))


def ranked_gains(ranking: Sequence[str], query: Query) -> Floats:
    """Gain of each position, shape (len(ranking),): 1.0 where one more gold tool is found, otherwise 0.0.

    A gold tool is found by itself or by one of its `gold_alt`, once: its second equivalent gains nothing, and neither
    does a repeated id. Where an equivalent could stand for several gold tools, the assignment that finds the most
    counts (a maximum matching, grown position by position), so the gains do not depend on the order of `gold`.
    """
    found_by: dict[str, str] = {}  # gold tool -> the ranked tool that stands for it
    stands_for: dict[str, list[str]] = {}
    for gold in dict.fromkeys(query.gold):
        for tool in dict.fromkeys(query.as_good_as(gold)):
            stands_for.setdefault(tool, []).append(gold)

    def place(tool: str, tried: set[str]) -> bool:
        for gold in stands_for.get(tool, ()):
            if gold in tried:
                continue
            tried.add(gold)
            if gold not in found_by or place(found_by[gold], tried):
                found_by[gold] = tool
                return True
        return False

    gains = np.zeros(len(ranking))
    seen: set[str] = set()
    for position, tool in enumerate(ranking):
        if tool not in seen:
            seen.add(tool)
            gains[position] = place(tool, set())
    return gains


def recall_at_k(ranking: Sequence[str], query: Query, k: int) -> float:
    """Share of the gold tools found among the first k. ValueError without gold."""
    return _recall(ranked_gains(ranking, query), _some_gold(query), k)


def ndcg_at_k(ranking: Sequence[str], query: Query, k: int) -> float:
    """DCG with binary gains and log2(position + 1) discounts, over that of |gold| tools in front (Jarvelin 2002)."""
    return _ndcg(ranked_gains(ranking, query), _some_gold(query), k)


def reciprocal_rank(ranking: Sequence[str], query: Query) -> float:
    """1 / position (from 1) of the first gold tool, 0.0 if none is ranked. ValueError without gold."""
    _some_gold(query)
    return _reciprocal(ranked_gains(ranking, query))


def ranking_metrics(ranking: Sequence[str], query: Query) -> dict[str, float]:
    """All ranking metrics of one query: recall@1, @3, @5, @10, @40, ndcg@10, mrr. ValueError without gold."""
    gains, gold = ranked_gains(ranking, query), _some_gold(query)
    row = {f"recall@{k}": _recall(gains, gold, k) for k in RECALL_CUTOFFS}
    return {**row, "ndcg@10": _ndcg(gains, gold, 10), "mrr": _reciprocal(gains)}


def mean_metrics(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each metric over queries; {} for no query. Every row must hold the same metrics."""
    table = list(rows)
    return {name: float(np.mean([row[name] for row in table])) for name in table[0]} if table else {}


def _some_gold(query: Query) -> int:
    count = gold_count(query)
    if not count:
        raise ValueError(
            f"query '{query.qid}' has no gold tool: no ranking metric is defined, measure abstention instead"
        )
    return count


def _recall(gains: Floats, gold: int, k: int) -> float:
    return float(gains[:k].sum() / gold)


def _ndcg(gains: Floats, gold: int, k: int) -> float:
    discounts = 1.0 / np.log2(np.arange(2, k + 2))
    top = gains[:k]
    return float(top @ discounts[: len(top)] / discounts[:gold].sum())


def _reciprocal(gains: Floats) -> float:
    hits = np.flatnonzero(gains)
    return 1.0 / (int(hits[0]) + 1) if len(hits) else 0.0


# --- scores against labels ----------------------------------------------------------------------------------------


def auroc(scores: ArrayLike, labels: ArrayLike) -> float | None:
    """Chance that a random positive scores above a random negative, a tie counting half; None if a class is absent."""
    s, y = _pair(scores, labels)
    positives = y > 0.5
    n_positive, n_negative = int(positives.sum()), int((~positives).sum())
    if not n_positive or not n_negative:
        return None
    _, group, sizes = np.unique(s, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(sizes) - (sizes - 1) / 2.0  # of each group of ties, ranks from 1
    rank_sum = float(mean_rank[group][positives].sum())
    return (rank_sum - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative)


def precision_recall(scores: ArrayLike, labels: ArrayLike, threshold: float) -> tuple[float | None, float | None]:
    """Precision and recall of `score >= threshold`; None for the one whose denominator is 0."""
    s, y = _pair(scores, labels)
    said, true = s >= threshold, y > 0.5
    hits = int((said & true).sum())
    return (hits / int(said.sum()) if said.any() else None), (hits / int(true.sum()) if true.any() else None)


@dataclass(frozen=True)
class CalibrationBin:
    """One bin of a reliability diagram: mean probability said, share that came true, number of cases."""

    predicted: float
    observed: float
    count: int


def calibration_bins(probabilities: ArrayLike, labels: ArrayLike, bins: int = CALIBRATION_BINS) -> list[CalibrationBin]:
    """Equal-mass bins, lowest probabilities first; at most `bins`, since equal probabilities share one bin.

    Keeping ties together makes the result independent of the order of the cases.
    """
    p, y = _pair(probabilities, labels)
    if not len(p):
        return []
    ordered = np.sort(p)
    edges = np.unique(ordered[np.arange(1, bins) * len(p) // bins])
    member = np.searchsorted(edges, p, side="right")
    return [
        CalibrationBin(float(p[member == b].mean()), float(y[member == b].mean()), int((member == b).sum()))
        for b in np.unique(member)
    ]


def expected_calibration_error(
    probabilities: ArrayLike, labels: ArrayLike, bins: int = CALIBRATION_BINS
) -> float | None:
    """Mean |said - came true| over 15 equal-mass bins, weighted by cases (Naeini 2015); None for no case."""
    table = calibration_bins(probabilities, labels, bins)
    total = sum(b.count for b in table)
    return sum(b.count * abs(b.predicted - b.observed) for b in table) / total if total else None


def _pair(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    s, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if s.shape != y.shape or s.ndim != 1:
        raise ValueError(f"scores and labels must be two lists of one length, got shapes {s.shape} and {y.shape}")
    if np.isnan(s).any() or np.isnan(y).any():
        raise ValueError("scores and labels must not hold NaN")
    return s, y


# --- uncertainty --------------------------------------------------------------------------------------------------


def bootstrap_interval(values: ArrayLike, seed: int, samples: int = 1000, level: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean of `values`, shape (n,). ValueError for no value."""
    v = np.asarray(values, dtype=np.float64)
    if v.ndim != 1 or not len(v):
        raise ValueError(f"a bootstrap needs a non-empty list of values, got shape {v.shape}")
    draw = np.random.default_rng(seed)
    return middle([v[draw.integers(0, len(v), len(v))].mean() for _ in range(samples)], level)


def middle(drawn: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """The percentile interval of figures of bootstrap samples, shape (n,)."""
    low, high = np.quantile(np.asarray(drawn, np.float64), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def paired_difference_interval(
    ours: ArrayLike, theirs: ArrayLike, seed: int, samples: int = 1000, level: float = 0.95
) -> tuple[float, float]:
    """Bootstrap interval of mean(ours - theirs) over the same queries in the same order, shape (n,) each.

    "Not worse" is a low end at or above minus the tolerated loss. ValueError when the lengths differ.
    """
    a, b = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    if a.shape != b.shape:
        raise ValueError(f"a paired comparison needs the same queries on both sides, got {a.shape} and {b.shape}")
    return bootstrap_interval(a - b, seed, samples, level)


def ips_weighted_mean(rewards: ArrayLike, propensities: ArrayLike, clip: float = 10.0) -> float | None:
    """Self-normalised inverse-propensity mean (Swaminathan & Joachims 2015), weights 1/p cut at `clip`.

    `rewards` (n,) are outcomes of logged decisions, `propensities` (n,) in (0, 1] their chance of having been taken.
    Clipping trades bias for variance; None for no decision, ValueError for a propensity outside (0, 1].
    """
    r, p = _pair(rewards, propensities)
    if not len(r):
        return None
    if (p <= 0).any() or (p > 1).any():
        raise ValueError("propensities must lie in (0, 1]")
    weights = np.minimum(1.0 / p, clip)
    return float(weights @ r / weights.sum())

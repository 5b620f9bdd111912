"""Retrieval: the rankings that gather candidates, fused by reciprocal rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RRF_K = 60
"""Constant of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""


def top(scores: NDArray[np.float32], k: int, allowed: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Rows of the k largest scores above zero, best first, equal scores in row order; only `allowed` rows if given."""
    rows = allowed if allowed is not None else np.arange(len(scores))
    values = scores[rows]
    if len(rows) > k:
        bar = np.partition(values, len(values) - k)[len(values) - k]
        rows, values = rows[values >= bar], values[values >= bar]
    order = np.lexsort((rows, -values))
    best = order[values[order] > 0][:k]
    return rows[best]


def fuse(
    rankings: Sequence[NDArray[np.int64]], k: int, weights: Sequence[float] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rankings of rows -> the k rows with the largest sum of weight / (RRF_K + rank), and those sums."""
    score: dict[int, float] = {}
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, row in enumerate(ranking.tolist(), 1):
            score[row] = score.get(row, 0.0) + weight / (RRF_K + rank)
    rows = sorted(score, key=lambda row: (-score[row], row))[:k]
    return np.array(rows, np.int64), np.array([score[row] for row in rows])


def serving_any(
    rankings: Sequence[NDArray[np.int64]], relevance: Sequence[NDArray[np.float64]], n: int
) -> NDArray[np.int64]:
    """All rows of the rankings by the chance to serve any of their subgoals: 1 - prod(1 - relevance).

    `relevance[i]` belongs to `rankings[i]`: calibrated probabilities; a subgoal that did not rank a row gives it no
    chance. `n` rows in all. Equal chances, and rankings without a relevance (NaN), stand in turns.
    """
    turns = in_turns(rankings, n)
    missed = np.ones(n)
    for rows, chances in zip(rankings, relevance, strict=True):
        missed[rows] *= 1.0 - chances
    return turns if np.isnan(missed).any() else turns[np.argsort(missed[turns], kind="stable")]


def in_turns(rankings: Sequence[NDArray[np.int64]], k: int) -> NDArray[np.int64]:
    """At most k distinct rows, the rankings giving their best remaining row in turn."""
    taken: dict[int, None] = {}
    for place in range(max((len(ranking) for ranking in rankings), default=0)):
        for ranking in rankings:
            if place < len(ranking):
                taken.setdefault(int(ranking[place]))
                if len(taken) == k:
                    return np.array(list(taken), np.int64)
    return np.array(list(taken), np.int64)

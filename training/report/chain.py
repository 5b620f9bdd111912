"""The recall chain: the share of right tools that each stage keeps of what the one before kept, with intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from training.answers import Answer
from training.metrics import middle, ranked_gains

SAMPLES = 1000
LINKS = ("R_retrieve", "R_filter", "R_menu", "R_select")

Floats = NDArray[np.float64]

# columns of the counts: a link is the sum of its part over the sum of its whole
_GOLD, _RETRIEVED, _KEPT, _SHOWN, _WITH_GOLD, _SELECTED = range(6)
_PARTS = ((_RETRIEVED, _GOLD), (_KEPT, _RETRIEVED), (_SHOWN, _KEPT), (_SELECTED, _WITH_GOLD))


def chain(answers: Sequence[Answer]) -> dict[str, float | None]:
    """Each link and the product of those that are known, over the answered queries.

    Evaluation queries are single subgoals, so nothing is decomposed. `R_select`: the tool ranked first is a right one,
    of the queries with one on the menu. A link without a denominator is None.
    """
    links = _links(_counts(answers))
    known = [value for value in links.values() if value is not None]
    return {"R_decompose": None, **links, "product": float(np.prod(known)) if known else None}


def chain_intervals(answers: Sequence[Answer], seed: int) -> dict[str, list[float]]:
    """[low, high] of each link that is known and of the product: 95%, percentile bootstrap over queries."""
    counts = _counts(answers)
    if not len(counts):
        return {}
    random = np.random.default_rng(seed)
    sums = np.array([counts[random.integers(0, len(counts), len(counts))].sum(axis=0) for _ in range(SAMPLES)])
    intervals: dict[str, list[float]] = {}
    product = np.ones(SAMPLES)
    for link, (part, whole) in zip(LINKS, _PARTS, strict=True):
        drawn = sums[sums[:, whole] > 0]
        if len(drawn):
            intervals[link] = list(middle(drawn[:, part] / drawn[:, whole]))
            product *= sums[:, part] / np.maximum(sums[:, whole], 1.0)
    return {**intervals, "product": list(middle(product))}


def _counts(answers: Sequence[Answer]) -> Floats:
    """(queries with gold, 6): right tools in all, among the candidates, in the ranking, on the menu; 0 or 1 for a menu
    with a right tool, and for a right one in its first place."""
    rows = []
    for answer in answers:
        query = answer.query
        if not query.gold:
            continue
        shown = ranked_gains(answer.shown, query)
        retrieved = float(ranked_gains(answer.candidates, query).sum())
        kept = float(ranked_gains(answer.slice.ranking, query).sum())
        first = float(len(shown) > 0 and shown[0] > 0)
        rows.append((len(set(query.gold)), retrieved, kept, float(shown.sum()), float(shown.any()), first))
    return np.array(rows, np.float64).reshape(-1, 6)


def _links(counts: Floats) -> dict[str, float | None]:
    total = counts.sum(axis=0)
    return {
        link: float(total[part] / total[whole]) if total[whole] else None
        for link, (part, whole) in zip(LINKS, _PARTS, strict=True)
    }

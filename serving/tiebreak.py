"""Tiebreak: among tools that are about equally relevant, the cheaper, then the faster; without such figures the better.

Where neither figure tells two tools apart, relevance still does, and the registry's order only between equals: most
candidates have a small relevance, so most lie within one margin, and rows in their place would undo the ranking.

Cost and latency decide inside a group only. A group is everything within `margin` of its *leader*, the most relevant
tool that is left, and never grows by chaining (a within margin of b, b of c). So nobody can stand above a tool that is
more relevant by over the margin.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from data.errors import InputError


def tiebreak(
    relevance: NDArray[np.floating],
    cost: NDArray[np.floating],
    p50: NDArray[np.floating],
    row: NDArray[np.integer],
    margin: float,
) -> NDArray[np.int64]:
    """The order (k,) in which to read the candidates, as positions in the arguments.

    Args: `relevance` (k,), higher is better; `cost` (k,) in USD and `p50` (k,) in ms, NaN = unknown, which comes after
    every known figure; `row` (k,) distinct catalog rows, the last word and the only one that never ties; `margin` >= 0
    in units of relevance.

    The result does not depend on the order of the candidates. Raises InputError for a negative or NaN margin, and for
    a relevance that is NaN: a tool without a score has no place in an order by score.
    """
    if not margin >= 0.0:
        raise InputError(f"margin is {margin}", field="margin", hint="a margin is a number of at least 0")
    scores = np.asarray(relevance, dtype=np.float64)
    if np.isnan(scores).any():
        unscored = int(np.asarray(row)[np.isnan(scores)][0])
        raise InputError(
            f"the candidate of catalog row {unscored} has no relevance",
            field="relevance",
            hint="order only candidates that were scored",
        )
    rows = np.asarray(row, dtype=np.int64)
    price = _unknown_last(cost)
    speed = _unknown_last(p50)
    by_relevance = np.lexsort((rows, -scores))
    order: list[NDArray[np.int64]] = []
    start = 0
    while start < len(by_relevance):
        rest = by_relevance[start:]
        within = scores[rest[0]] - scores[rest] <= margin
        within[0] = True  # infinite relevance: inf - inf is NaN, and a leader is always of its own group
        group = rest[: int(np.count_nonzero(within))]
        order.append(group[np.lexsort((rows[group], -scores[group], speed[group], price[group]))])
        start += len(group)
    return np.concatenate(order).astype(np.int64) if order else np.empty(0, dtype=np.int64)


def _unknown_last(values: NDArray[np.floating]) -> NDArray[np.float64]:
    known = np.asarray(values, dtype=np.float64)
    return np.where(np.isnan(known), np.inf, known)

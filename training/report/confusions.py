"""Confusions: which wrong tool stands first in place of which right one, and what would tell the two apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.catalog import Catalog
from training.answers import Answer
from training.report.failures import shortened

PAIRS = 12
ALIKE = 0.6
"""Cosine of two card texts from which on the cards speak of the same thing."""
SAME = 0.75
"""The same from which on they may say the same."""
_QUOTED = 2

Floats = NDArray[np.float32]


def confusions(answers: Sequence[Answer], catalog: Catalog, vectors: Floats | None) -> list[dict[str, Any]]:
    """The most frequent pairs (gold, instead), most frequent first, then most alike.

    A pair counts where `instead` is first on a menu that stands and no right tool is. `similarity`: cosine of the two
    cards, from `vectors` (n, d) by catalog row; None without. `of`: requests that `gold` serves. `back`: how often the
    two are confused the other way round. `advice` names what to do: `equals`, `tell_apart` or `say_more`.
    """
    asked: defaultdict[str, int] = defaultdict(int)
    pairs: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for answer in answers:
        for tool in answer.good:
            asked[tool] += 1
        if answer.good and answer.shown and answer.shown[0] not in answer.good:
            ranked = [tool for tool in answer.slice.ranking if tool in answer.good]
            pairs[ranked[0] if ranked else answer.query.gold[0], answer.shown[0]].append(answer.query.text)
    rows: list[dict[str, Any]] = []
    for (gold, instead), texts in pairs.items():
        alike = _similarity(gold, instead, catalog, vectors)
        back = len(pairs.get((instead, gold), ()))
        rows.append(
            {
                "gold": gold,
                "instead": instead,
                "count": len(texts),
                "of": asked[gold],
                "back": back,
                "similarity": alike,
                "advice": _advice(gold, instead, catalog, alike, back),
                "examples": [shortened(text) for text in texts[:_QUOTED]],
            }
        )
    rows.sort(key=lambda row: (-row["count"] - row["back"], -(row["similarity"] or 0.0), row["gold"], row["instead"]))
    return rows[:PAIRS]


def _similarity(one: str, other: str, catalog: Catalog, vectors: Floats | None) -> float | None:
    if vectors is None or one not in catalog or other not in catalog:
        return None
    return float(vectors[catalog.row[one]] @ vectors[catalog.row[other]])


def _advice(gold: str, instead: str, catalog: Catalog, alike: float | None, back: int) -> str:
    same_name = gold in catalog and instead in catalog and catalog[gold].name == catalog[instead].name
    near = alike is not None and alike >= ALIKE
    if alike is not None and alike >= SAME and (same_name or back):
        return "equals"
    return "tell_apart" if near or same_name else "say_more"

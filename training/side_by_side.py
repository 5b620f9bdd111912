"""Side by side: two bundles asked the same in turns, so that what disturbs one disturbs the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from data.catalog import Catalog
from data.queries import Query
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.slice import Slice
from training.answers import Answer
from training.evaluation import unrestricted
from training.per_query import asked
from training.poisoned import poisoned

WARM_UP = 3

Rows = list[dict[str, Any]]


def side_by_side(
    ours: Path, theirs: Path, catalog: Catalog, queries: Sequence[Query], seed: int = 0
) -> tuple[Rows, Rows]:
    """One row a query and side, over the catalog with poisoned cards in it (see `training.poisoned`).

    `question` and `trace` as in `per_query`; `ms`: the time of the decision; `poisoned`: the share of the menu that is
    poisoned; `poisoned_first`: 1.0 where such a card is ranked first on it. Raises what loading a selector raises.
    """
    tainted, sample, hostile = poisoned(unrestricted(catalog), queries, seed)
    settings = SelectorSettings(explore_rate=0.0, allow_foreign_catalog=True)
    selectors = [Selector.load(bundle, tainted, settings=settings) for bundle in (ours, theirs)]
    for selector in selectors:  # the first decisions of a process pay for what is made once
        for query in sample[:WARM_UP]:
            selector.select(query.text, request_id="warm-up")
    rows: tuple[Rows, Rows] = ([], [])
    for number, query in enumerate(sample):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            found = selectors[side].select(query.text, request_id=f"side-by-side-{number}")
            rows[side].append(_row(query, found, hostile))
    return rows


def _row(query: Query, found: Slice, hostile: frozenset[str]) -> dict[str, Any]:
    answer = Answer(query, found, warm=False)
    menu = [entry.tool_id for entry in found.menu]
    return {
        **asked(answer),
        "ms": float(sum(found.timings_ms.values())),
        "poisoned": sum(tool in hostile for tool in menu) / max(len(menu), 1),
        "poisoned_first": float(answer.shown[:1] != () and answer.shown[0] in hostile),
    }

"""Menu risk: what a bundle's menus would miss at each threshold, measured on requests that no model was fitted on."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from data.queries import Query
from serving.conformal import MenuRisk, curve, promises
from serving.menu import MAX_TOOLS
from training.head import Request
from training.metrics import ranked_gains
from training.workshop import Workshop


def right_promises(
    query: Query, tool_ids: Sequence[str], relevant: NDArray[np.float64], is_new: NDArray[np.bool_]
) -> tuple[list[float], list[float]]:
    """What a request's right tools among its candidates promised, the warm ones and the cold ones.

    `tool_ids`, `relevant` and `is_new` (k,) belong to the candidates, best first. A right tool counts once, by itself
    or by the first of its equivalents; -1 stands for one beyond the first `MAX_TOOLS`.
    """
    kinds: tuple[list[float], list[float]] = ([], [])
    promised = promises(relevant)
    for place in np.flatnonzero(ranked_gains(tool_ids, query)).tolist():
        kinds[int(is_new[place])].append(float(promised[place]) if place < MAX_TOOLS else -1.0)
    return kinds


def learn_menu_risk(
    shop: Workshop,
    chosen: Sequence[int],
    logged: Sequence[tuple[Request, NDArray[np.int64], NDArray[np.float64]]],
    unlogged: Sequence[tuple[Request, NDArray[np.int64], NDArray[np.float64]]],
    new: NDArray[np.bool_],
) -> MenuRisk:
    """The curves of both kinds from requests with their candidates' rows and relevance out of fold, in two views.

    What a tool's first request meets comes from the view in which the `new` tools were never logged. Requests of tools
    that were held out of fine-tuning are thinned to the share of the others that is here: all of theirs are.
    """
    draw = random.Random(shop.recipe.seed)
    warm: list[list[float]] = []
    cold: list[list[float]] = []
    for place, i in enumerate(chosen):
        used, first = _of(shop, i, *logged[place])
        if shop.decisions[i].side != "cold" or draw.random() < shop.recipe.split.valid_share:
            warm.append(used)
        cold.append(_of(shop, i, *unlogged[place])[1] if new[place] else first)
    return MenuRisk(warm=curve(warm), cold=curve(cold))


def _of(
    shop: Workshop, i: int, request: Request, rows: NDArray[np.int64], relevant: NDArray[np.float64]
) -> tuple[list[float], list[float]]:
    decision, order = shop.decisions[i], np.lexsort((rows, -relevant))
    tools = tuple(tool for tool, _ in decision.tools)
    query = Query(
        qid=str(i), text="", gold=tools, gold_alt={tool: tuple(shop.equivalents.get(tool, ())) for tool in tools}
    )
    ids = [shop.catalog.ids[row] for row in rows[order].tolist()]
    warm, cold = right_promises(query, ids, relevant[order], request.signals.count[order] <= 0)
    return warm + [-1.0] * request.lost.count(False), cold + [-1.0] * request.lost.count(True)

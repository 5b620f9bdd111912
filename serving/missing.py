"""Missing: the connections whose tools would serve a step that nothing fits, as far as the caller may be told of them.

A connection is named only where a card that needs it advertises it, and where the caller holds all else that the tool
asks for: what is named is what connecting would really give.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from serving.judged import Judged

if TYPE_CHECKING:
    from serving.mask import Unavailable
    from serving.selector import Selector

_NAMED = 3


def missing_connections(
    selector: Selector, judged: Judged, down: Unavailable, without: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Connections whose tools would be among the three best for this step, of tools that may be told of without them.

    `down` and `without` as in `Selector.judge`: what the step was judged by.
    """
    who, catalog = judged.who, selector.catalog
    held = set(who.connections)
    offered = selector.index.advertised - held
    if not offered:
        return ()
    connected = who.model_copy(update={"connections": tuple(sorted(held | offered))})
    mask = selector.index.mask
    now, then = mask.apply(who, down.ids).allowed, mask.apply(connected, down.ids).allowed
    told = [row for row in np.flatnonzero(then & ~now).tolist() if catalog.cards[row].advertise]
    if not told:
        return ()
    kept = {*told, *np.flatnonzero(now).tolist()}
    unadvertised = {tool: "unadvertised" for tool, row in catalog.row.items() if row not in kept}
    best = selector.judge(judged.goal, connected, down=down, without=unadvertised | dict(without or {}))
    if not best.stands:
        return ()
    wanted = [row for row in best.rows.tolist()[:_NAMED] if row in set(told)]
    names = [name for row in wanted for name in catalog.cards[row].requires.connections if name not in held]
    return tuple(dict.fromkeys(names))


def told_what_is_missing(selector: Selector, judged: Judged, down: Unavailable) -> Judged:
    """The step with what would serve it in its stance, where nothing fits and there is something to name."""
    if judged.stance.outcome != "missing_capability":
        return judged
    names = missing_connections(selector, judged, down)
    if not names:
        return judged
    advice = f"{judged.stance.advice} {could_connect(names)}"
    return replace(judged, stance=judged.stance.model_copy(update={"missing_connections": names, "advice": advice}))


def could_connect(names: tuple[str, ...]) -> str:
    """The sentence that names connections to the model."""
    return f"The user could connect: {', '.join(names)}."

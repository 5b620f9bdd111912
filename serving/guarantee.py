"""Guarantee: the candidates that a menu needs, so that it misses the right tool in no more than the wanted share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from serving.bundle import Bundle
from serving.conformal import MENU_RISK, Bars, bars, needed, read_menu_risk
from serving.evidence import Evidence
from serving.judged import Judged, Run
from serving.settings import SelectorSettings


def bars_of(bundle: Bundle | None, settings: SelectorSettings) -> Bars | None:
    """The thresholds for the settings' `menu_alpha`; None: none is wanted, or the bundle does not know its risk."""
    if settings.menu_alpha is None or bundle is None or not bundle.has(MENU_RISK):
        return None
    return bars(read_menu_risk(bundle.file(MENU_RISK)), settings.menu_alpha)


def needed_of(
    given: Bars | None,
    alpha: float | None,
    found: Evidence,
    rows: NDArray[np.int64],
    relevant: NDArray[np.float64],
    n: int,
    run: Run,
) -> NDArray[np.bool_] | None:
    """Which of `n` tools a menu with the guarantee `alpha` needs; `rows` are the candidates, best first. None: all that
    fit, since none is wanted or none can be given, of which the run says why."""
    if alpha is None or not len(rows):
        return None
    if given is None or found.usage is None or np.isnan(relevant).any():
        why = "the bundle does not know its risk" if given is None else "there is no relevance to go by"
        run.degrade("menu", f"the menu has no guarantee: {why}", "standing")
        return None
    is_new = found.usage.count[rows] <= 0
    for kind, bar, there in (("warm", given.warm, ~is_new), ("cold", given.cold, is_new)):
        if bar is None and there.any():
            run.degrade("menu", f"no menu of {kind} tools misses as little as {alpha:g}", "standing")
    chosen = np.zeros(n, np.bool_)
    chosen[rows[needed(relevant, is_new, given)]] = True
    return chosen


def needed_by_any(judged: Sequence[Judged]) -> NDArray[np.bool_] | None:
    """Which tools one of the subgoals needs; None where one has no guarantee."""
    masks = [one.needed for one in judged if one.needed is not None]
    return np.logical_or.reduce(masks) if masks and len(masks) == len(judged) else None

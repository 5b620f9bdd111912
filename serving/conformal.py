"""Conformal menus: how promising a tool has to be, so that the right ones are on the menu 1 - alpha of the time.

What a tool promises is the chance that it is the first right one of the ranking: that it is right, and none before it.
So a second tool is shown where the first is not sure, and not where it is. By conformal risk control (Angelopoulos et
al. 2024): of `n` requests with known answers, which no model of the bundle was fitted on, each right tool says how much
it promised; the threshold is the highest at which

    (n / (n + 1)) * risk + 1 / (n + 1) <= alpha,

where the risk is the mean share of a request's right tools that are not on the menu. A right tool that was not among
the candidates, or not among the first `MAX_TOOLS` of them, is lost at every threshold. Tools with a past (warm) and
without one (cold) have thresholds of their own, each fitted on the requests of such tools: their relevance is made of
different evidence, and the many must not speak for the few.

It holds on average over requests like those that were measured. It does not hold for a caller who may not use the
right tool, and says nothing of a request that is turned away.

Out of fold on BFCL and MetaTool menus by this chance were shorter at the same risk than by relevance itself, by its
share of the sum, by the distance to the best, and than menus of one size for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from data.errors import BundleError
from serving.menu import MAX_TOOLS

MENU_RISK = "menu_risk.json"
"""The file of a bundle."""
Kind = Literal["warm", "cold"]
KINDS: tuple[Kind, ...] = ("warm", "cold")
_PLACES = 9


class Curve(BaseModel):
    """How the risk of one kind of tool rises with the threshold, over `requests` requests that have such a tool.

    At a threshold above `promise[i]` (ascending) the share `losses[i]` of one request is lost; `out_of_reach` is what
    every threshold loses, summed over the requests.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    requests: int = Field(default=0, ge=0)
    promise: tuple[float, ...] = ()
    losses: tuple[float, ...] = ()
    out_of_reach: float = Field(default=0.0, ge=0.0)

    def threshold(self, alpha: float) -> float | None:
        """The highest threshold that keeps the risk of the next request at `alpha`; None: none does."""
        may_lose = alpha * (self.requests + 1) - 1.0 - self.out_of_reach
        if may_lose < 0.0 or not self.promise:
            return None
        lost_before = np.concatenate([[0.0], np.cumsum(self.losses)[:-1]])
        # equal promises are lost together: what is lost below a value is what stands before its first place
        first = np.searchsorted(self.promise, self.promise, side="left")
        return self.promise[int(np.flatnonzero(lost_before[first] <= may_lose + 1e-9)[-1])]

    @property
    def least(self) -> float:
        """The smallest `alpha` that can be had."""
        return min(1.0, (1.0 + self.out_of_reach) / (self.requests + 1))


class MenuRisk(BaseModel):
    """What a bundle knows of the risk of its menus."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    warm: Curve = Curve()
    cold: Curve = Curve()


class Bars(NamedTuple):
    """What warm and cold tools have to promise for one `alpha`; None: it cannot be had, and all are shown."""

    alpha: float
    warm: float | None
    cold: float | None


def curve(answered: Sequence[Sequence[float]]) -> Curve:
    """The curve over requests with known answers.

    Each is what its right tools of one kind promised, -1 for one that was not among the first `MAX_TOOLS`
    candidates; a request that has none of the kind is left out.
    """
    counted = [of for of in answered if len(of)]
    events = [(_floor(value), 1.0 / len(of)) for of in counted for value in of]
    reached = sorted(event for event in events if event[0] >= 0.0)
    return Curve(
        requests=len(counted),
        promise=tuple(value for value, _ in reached),
        losses=tuple(round(loss, _PLACES) for _, loss in reached),
        out_of_reach=round(sum(loss for value, loss in events if value < 0.0), _PLACES),
    )


def promises(relevant: NDArray[np.float64]) -> NDArray[np.float64]:
    """The chance (k,) of each candidate, best first, that it is the first right one; from their relevance (k,)."""
    known = np.clip(relevant, 0.0, 1.0)
    none_before = np.cumprod(np.concatenate([np.ones_like(known[:1]), 1.0 - known[:-1]]), axis=0)
    chance: NDArray[np.float64] = known * none_before
    return chance


def bars(risk: MenuRisk, alpha: float) -> Bars:
    """The thresholds for one `alpha`."""
    return Bars(alpha, risk.warm.threshold(alpha), risk.cold.threshold(alpha))


def needed(relevant: NDArray[np.float64], is_new: NDArray[np.bool_], given: Bars) -> NDArray[np.bool_]:
    """Which candidates (k,), best first, the menu needs: the first, and those of the first `MAX_TOOLS` that promise as
    much as their kind has to."""
    need = np.where(
        is_new, given.cold if given.cold is not None else 0.0, given.warm if given.warm is not None else 0.0
    )
    enough: NDArray[np.bool_] = promises(relevant) >= need
    enough[MAX_TOOLS:] = False
    enough[:1] = True
    return enough


def read_menu_risk(path: Path) -> MenuRisk:
    """The file of a bundle. Raises BundleError for one of another form."""
    try:
        return MenuRisk.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise BundleError(f"{path}: cannot be read ({reason}); train the bundle again") from error


def _floor(value: float) -> float:
    """Rounded down: a tool that promises exactly the threshold is shown, whatever the last digit."""
    return float(np.floor(value * 10**_PLACES) / 10**_PLACES) if value >= 0.0 else -1.0

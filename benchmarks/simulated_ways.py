"""Ways to explore that the simulation compares: who may be tried, and how likely each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.simulated_learner import Past
from benchmarks.simulated_world import Bools, Floats, Ints, World
from data.cards import Risk
from serving.explore import Exploration, eligible_tools, shares
from serving.settings import SelectorSettings

_DEFAULTS = SelectorSettings()
_SOFTNESS = 0.1
"""Temperature of the softmax on relevance."""

Draw = Callable[[Ints, int, Floats, Ints, float], tuple[float, Floats]]
"""(tools tried, displaced tool, relevance (n,), outcomes (n,), rate) -> rate of this slot, share of each tool tried."""


def _uniform(tried: Ints, displaced: int, relevance: Floats, outcomes: Ints, rate: float) -> tuple[float, Floats]:
    return rate, np.full(len(tried), 1.0 / len(tried))


def _softmax(tried: Ints, displaced: int, relevance: Floats, outcomes: Ints, rate: float) -> tuple[float, Floats]:
    odds = np.exp((relevance[tried] - relevance[tried].max()) / _SOFTNESS)
    return rate, odds / odds.sum()


def _ours(tried: Ints, displaced: int, relevance: Floats, outcomes: Ints, rate: float) -> tuple[float, Floats]:
    """The product's."""
    return shares(Exploration("-", rate, np.ones(len(relevance), np.bool_), relevance, outcomes), tried, displaced)


@dataclass(frozen=True)
class Way:
    """A way to explore. `near`: candidates of the request alone; `width`: eligible while known no better than this;
    `below`: eligible below this many outcomes; `newest`: eligible this many requests after their arrival."""

    name: str
    rate: float
    draw: Draw = _uniform
    near: bool = True
    width: float = 0.0
    below: float = np.inf
    newest: float = np.inf

    def slot(
        self,
        world: World,
        rows: Ints,
        relevant: Floats,
        menu_size: int,
        past: Past,
        here: Bools,
        now: int,
    ) -> tuple[float, Ints, Floats]:
        """The rate of the last slot for a kind whose candidates are `rows`, who is tried in it, and their shares."""
        n = len(here)
        candidates = here.copy()
        if self.near:
            candidates[:] = False
            candidates[rows] = True
        served, failed = past.served.sum(axis=0), past.failed.sum(axis=0)
        eligible = candidates & (world.risk <= int(Risk.READ_ONLY)) & (served + failed < self.below)
        if self.width:
            eligible &= eligible_tools(candidates, world.risk, served, failed, width=self.width)
        eligible &= now - world.arrival <= self.newest
        eligible[rows[:menu_size]] = False
        tried = np.flatnonzero(eligible)
        if self.rate == 0.0 or not len(tried):
            return 0.0, tried, np.zeros(len(tried))
        relevance = np.full(n, np.nan)
        relevance[rows] = relevant
        rate, share = self.draw(tried, int(rows[menu_size - 1]), relevance, served + failed, self.rate)
        return rate, tried, share


_WIDTH = _DEFAULTS.explore_width
WAYS = (
    Way("none", 0.0),
    Way("epsilon-greedy, 2%", 0.02),
    Way("epsilon-greedy, 10%", 0.1),
    Way("below 3 outcomes, whole catalog, 2%", 0.02, near=False, below=3),
    Way("uniform, 10%", 0.1, width=_WIDTH),
    Way("softmax, 10%", 0.1, _softmax, width=_WIDTH),
    Way("ours, 2%", 0.02, _ours, width=_WIDTH),
    Way("ours, 5%", 0.05, _ours, width=_WIDTH),
    Way("ours, 10%", 0.1, _ours, width=_WIDTH),
    Way("ours, new tools only, 5%", 0.05, _ours, width=_WIDTH, newest=8000),
)

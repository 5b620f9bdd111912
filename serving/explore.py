"""Exploration: who may be tried in the last slot, how likely each is, and a draw that the request id seeds.

The draw is Thompson sampling, by its exact chances. What is believed of a tool at this request is a Beta distribution:
its mean is the relevance, and it is as firm as the tool has outcomes. A tool's chance is that of a sample from its
belief being the largest, among the tools that may be tried and the one that would give up its slot; together they are
bounded by the rate. So a newcomer that may well be better is tried often, one that has shown what it is worth hardly
ever, and where nothing promises more than what is there nothing is tried. The draw is made from those very chances,
so that logged propensities are exact whatever the precision of the integral behind them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from data.cards import Risk
from data.catalog import content_hash
from data.errors import InputError
from data.traces import Trace

Floats = NDArray[np.float64]

FIRMNESS = 4.0
"""A belief without any outcome is as firm as one with this many."""
_FIRMEST = 200.0
"""More outcomes than this do not make a belief firmer: it is as narrow as the grid can tell."""
_GRID = (np.arange(64) + 0.5) / 64
_LOG, _LOG_REST = np.log(_GRID), np.log1p(-_GRID)
_LEAST, _MOST = 0.005, 0.995
"""Relevance as the mean of a belief stays inside these: neither certain nor impossible."""
_NEVER = 1e-9
"""A tool whose share of the draw is smaller than this has none."""


@dataclass(frozen=True, eq=False)
class Exploration:
    """What one request may try.

    `eligible`: bool (n,) by catalog row; `rate` in [0, 1] bounds the chance that anything is tried; `request_id` seeds
    the draw. `relevance` and `outcomes` (n,), what is believed of each tool and on how much; without them, or where a
    relevance is NaN, all that may be tried have the same chance.

    Raises InputError for a rate outside [0, 1], and for a blank request id: all requests would draw the same.
    """

    request_id: str
    rate: float
    eligible: NDArray[np.bool_]
    relevance: Floats | None = None
    outcomes: NDArray[np.integer] | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.rate <= 1.0:
            raise InputError(f"exploration rate is {self.rate}", field="rate", hint="a probability is within [0, 1]")
        if self.rate > 0.0 and not self.request_id.strip():
            raise InputError("exploration without a request id", field="request_id", hint="give every request its own")


@dataclass(frozen=True)
class Showings:
    """How often each tool has been shown by exploration until now: what budgets are counted by.

    A state of the world at one moment, taken from logged menus. It is part of what a decision depends on, by `version`;
    within it every chance is exact, and a menu replays.
    """

    by_tool: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, traces: Iterable[Trace]) -> Showings:
        """What logged menus showed by exploration. The calls of one trace, goal and slice share a menu: it counts once.

        A menu after which nothing was called or reported is in no trace, and does not count.
        """
        counted: Counter[str] = Counter()
        known: set[tuple[str, str, str]] = set()
        for trace in traces:
            decision = (trace.trace_id, trace.goal, trace.slice_id)
            if trace.menu is not None and decision not in known:
                known.add(decision)
                counted.update(entry.tool_id for entry in trace.menu if entry.explored)
        return cls(dict(counted))

    @property
    def version(self) -> str:
        """The hash of the counts; "" where there are none."""
        counted = [f"{tool}\0{count}" for tool, count in sorted(self.by_tool.items()) if count]
        return content_hash(counted) if counted else ""


def eligible_tools(
    candidates: NDArray[np.bool_],
    risk: NDArray[np.int8],
    served: NDArray[np.integer],
    failed: NDArray[np.integer],
    *,
    width: float,
    explore_writes: bool = False,
) -> NDArray[np.bool_]:
    """Which tools may be tried, bool (n,): candidates of the request, hardly observed, and harmless.

    `served` and `failed` (n,) count past outcomes; a tool is under-observed while its `posterior_width` is above
    `width`. Only reading tools are tried, with `explore_writes` also writing ones; a destructive tool never is.
    """
    bound = Risk.WRITE if explore_writes else Risk.READ_ONLY
    eligible: NDArray[np.bool_] = candidates & (risk <= int(bound)) & (posterior_width(served, failed) > width)
    return eligible


def posterior_width(served: NDArray[np.integer], failed: NDArray[np.integer]) -> Floats:
    """Standard deviation (n,) of Beta(1 + served, 1 + failed): 0.29 without outcomes, 0.10 after seven of a kind."""
    a, b = 1.0 + served, 1.0 + failed
    width: Floats = np.sqrt(a * b / (a + b + 1.0)) / (a + b)
    return width


def new_enough(first_seen: Floats, allowed: NDArray[np.bool_], days: float) -> NDArray[np.bool_]:
    """Which tools came within `days` of the newest that this caller may use, bool (n,); all of unknown age did.

    `first_seen` (n,) in days, NaN where unknown. By the newest tool and not by the clock, so that a decision replays.
    """
    known = first_seen[allowed & np.isfinite(first_seen)]
    if not len(known):
        return np.ones(len(first_seen), np.bool_)
    new: NDArray[np.bool_] = ~(first_seen < known.max() - days)
    return new


def shares(exploration: Exploration, tried: NDArray[np.intp], displaced: int | None) -> tuple[float, Floats]:
    """The chance that the slot is explored, at most the rate, and the share (k,) of each of the rows `tried` in it.

    Shares sum to 1; one that is next to nothing is 0. `displaced` is the row that would have the slot, None for a free
    one, which goes at the rate itself.
    """
    if exploration.relevance is None or exploration.outcomes is None:
        return exploration.rate, np.full(len(tried), 1.0 / len(tried))
    rows = tried if displaced is None else np.append(tried, displaced)
    mean, outcomes = exploration.relevance[rows], exploration.outcomes[rows]
    if np.isnan(mean).any():
        return exploration.rate, np.full(len(tried), 1.0 / len(tried))
    wins = largest(mean, outcomes)[: len(tried)]
    total = float(wins.sum())
    share = np.where(wins > _NEVER * max(total, _NEVER), wins, 0.0)
    if not share.any():
        return 0.0, share
    return exploration.rate if displaced is None else min(exploration.rate, total), share / share.sum()


def largest(mean: Floats, outcomes: NDArray[np.integer]) -> Floats:
    """The chance (k,) that a sample of each belief is the largest of all; sums to 1. On a grid of 64 cells."""
    mean = np.clip(mean, _LEAST, _MOST)[:, None]
    firm = FIRMNESS + np.minimum(outcomes, _FIRMEST)[:, None]
    density = (mean * firm - 1.0) * _LOG + ((1.0 - mean) * firm - 1.0) * _LOG_REST
    mass = np.exp(density - density.max(axis=1, keepdims=True))
    mass /= mass.sum(axis=1, keepdims=True)
    below = np.log(np.maximum(np.cumsum(mass, axis=1) - mass / 2, 1e-300))
    wins = (mass * np.exp(below.sum(axis=0) - below)).sum(axis=1)
    chances: Floats = wins / wins.sum()
    return chances


def explores(request_id: str, rate: float) -> bool:
    """Whether a request tries a tool at this rate: if not at one rate, then at no lower one."""
    return _uniform(_digest(request_id)[:8]) < rate


def draw(request_id: str, rate: float, share: Floats) -> int | None:
    """Which of the tools with these shares (k,) this request tries, or None: a pure function of its arguments.

    One half of a hash decides whether, the other which, so that the two are independent of each other.
    """
    if not len(share) or not explores(request_id, rate):
        return None
    up_to = np.cumsum(share)
    at = _uniform(_digest(request_id)[8:16]) * up_to[-1]
    return min(int(np.searchsorted(up_to, at, side="right")), int(np.flatnonzero(share)[-1]))


def _digest(request_id: str) -> bytes:
    return hashlib.sha256(b"explore\0" + request_id.encode("utf-8", "surrogatepass")).digest()


def _uniform(raw: bytes) -> float:
    """Eight bytes as a number in [0, 1), all of a double's 53 bits used."""
    return float((int.from_bytes(raw, "big") >> 11) * 2.0**-53)

"""The learner of the simulation: the product's features and head over the past of a simulated world.

Signals come in closed form: requests of one kind are near each other and far from all others, so the neighbours that
vote are past requests of the kind, and a tool's past subgoals are the kinds that it served. Everything after the
signals is the product's own: `serving.features`, and the relevance head of `training.head`, fitted on past requests,
each without itself, as they were, as if a fifth of the tools had never been logged, or hardly, and as on the first day.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from benchmarks.simulated_world import KINDS, Bools, Calls, Floats, Ints, World
from data.mining.options import MiningOptions
from serving.features import Signals, features
from serving.memory import SHARPNESS, SHRINKAGE, shrunken
from serving.retrieval import in_turns, top
from training.head import Request, first_day, fit_relevance, probabilities
from training.material import FEW
from training.recipe import HeadPart

CANDIDATES = 40
PRACTISED = 150
"""Past requests that a head is fitted on, each in four views."""
_MINING = MiningOptions()
_PER_TOOL, _ENDS_PER_TOOL, _SOFT = _MINING.positives_per_tool, _MINING.history_per_tool, _MINING.soft_negative_weight
_NEAR = 0.9
"""Cosine of two requests of one kind."""


@dataclass
class Past:
    """What was seen: (KINDS, n) weighted successes, and calls that served and failed; the successes by request."""

    won: Floats
    served: Ints
    failed: Ints
    kind: list[int] = field(default_factory=list)
    tool: list[int] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    menu: list[tuple[Ints, Floats]] = field(default_factory=list)

    @classmethod
    def empty(cls, n: int) -> Past:
        return cls(np.zeros((KINDS, n)), np.zeros((KINDS, n), np.int64), np.zeros((KINDS, n), np.int64))

    def add(self, calls: Calls) -> None:
        """Take note of what became of calls."""
        np.add.at(self.won, (calls.kind[calls.won], calls.tool[calls.won]), calls.weight[calls.won])
        for counts, mask in ((self.served, calls.won), (self.failed, ~calls.won)):
            np.add.at(counts, (calls.kind[mask], calls.tool[mask]), 1)
        self.kind += calls.kind[calls.won].tolist()
        self.tool += calls.tool[calls.won].tolist()
        self.weight += calls.weight[calls.won].tolist()
        self.before += calls.before[calls.won].tolist()
        self.menu += zip(calls.menu[calls.won], calls.weights[calls.won], strict=True)

    def links(self) -> Floats:
        """(KINDS, n): the weight of the successes that mining keeps, of at most so many a tool."""
        kept = np.minimum(1.0, _PER_TOOL / np.maximum(self.served.sum(axis=0), 1))
        links: Floats = self.won * kept
        return links

    def ended(self) -> Floats:
        """(2, KINDS, n): the successes and failures that mining keeps, of at most so many calls a tool."""
        ends = np.stack([self.served, self.failed])
        kept: Floats = ends * np.minimum(1.0, _ENDS_PER_TOOL / np.maximum(ends.sum(axis=(0, 1)), 1))
        return kept


class Learner:
    """Ranks the tools of a kind by the product's head, fitted anew by `fit` on the past so far."""

    def __init__(self, world: World, seed: int, unshown_weight: float, *, history: bool = True) -> None:
        self.world, self.past = world, Past.empty(world.success.shape[1])
        self._random = np.random.default_rng([seed, 2])
        self._head: object | None = None
        self._unshown_weight, self._history = unshown_weight, history

    def fit(self) -> None:
        """Fit the head, if the past has enough requests for it."""
        past = self.past
        if len(past.kind) < 2 * PRACTISED:
            return
        links, ended = past.links(), past.ended()
        chosen = self._random.choice(len(past.kind), PRACTISED, replace=False)
        used = np.flatnonzero(links.sum(axis=0))
        fresh = np.zeros(links.shape[1], np.bool_)
        fresh[self._random.choice(used, round(HeadPart().new_share * len(used)), replace=False)] = True
        here = np.ones(links.shape[1], np.bool_)
        logged = [self._request(i, links, ended, here) for i in chosen]
        unlogged = [self._request(i, np.where(fresh, 0.0, links), np.where(fresh, 0.0, ended), here) for i in chosen]
        nearly = self._nearly(fresh, links, ended)
        short = [self._request(i, *nearly, here, itself=not fresh[past.tool[i]]) for i in chosen]
        views = [*logged, *unlogged, *short, *first_day(logged)]
        self._head = fit_relevance(views, regularisation=1.0, calibrate=False)  # of five folds more, for the same order

    def _nearly(self, fresh: Bools, links: Floats, ended: Floats) -> tuple[Floats, Floats]:
        """Links and ends as if the fresh tools had been called for a few requests only."""
        calls = np.stack([self.past.served, self.past.failed])
        few = self._random.integers(1, FEW, len(fresh), endpoint=True)
        kept = self._random.binomial(calls, np.minimum(1.0, few / np.maximum(calls.sum(axis=(0, 1)), 1)))
        own = self.past.won * kept[0] / np.maximum(self.past.served, 1)
        return np.where(fresh, own, links), np.where(fresh, kept, ended)

    def ranked(self, here: Bools) -> list[tuple[Ints, Floats]]:
        """For each kind its candidates among the tools that are `here`, best first, and their relevance."""
        links, ended = self.past.links(), self.past.ended()
        seen = [self._signals(kind, links, ended, here) for kind in range(KINDS)]
        if self._head is None:
            relevant = [0.5 * signals.cosine.astype(np.float64) for _, signals in seen]
        else:
            together = probabilities(self._head, np.concatenate([features(signals) for _, signals in seen]))
            relevant = np.split(together, np.cumsum([len(rows) for rows, _ in seen])[:-1])
        orders = [np.lexsort((rows, -of)) for (rows, _), of in zip(seen, relevant, strict=True)]
        return [(rows[order], of[order]) for (rows, _), of, order in zip(seen, relevant, orders, strict=True)]

    def _request(self, i: int, links: Floats, ended: Floats, here: Bools, *, itself: bool = True) -> Request:
        """A past request as it would be asked now; `itself`: that past holds it, and is to forget it."""
        kind, tool, weight = self.past.kind[i], self.past.tool[i], self.past.weight[i]
        without, before = links.copy(), self.past.before[i]
        otherwise = ended.copy()
        if itself:
            without[kind, tool] = max(0.0, links[kind, tool] - weight)
            otherwise[0, kind, tool] = max(0.0, ended[0, kind, tool] - 1.0)
        if before >= 0:
            otherwise[1, kind, before] = max(0.0, ended[1, kind, before] - 1.0)
        rows, signals = self._signals(kind, without, otherwise, here)
        right = rows == tool
        weights = np.full(len(self.world.cost), self._unshown_weight)
        shown, of_shown = self.past.menu[i]
        weights[shown] = _SOFT / np.sqrt(1.0 + shown.argsort().argsort()) * of_shown
        if before >= 0:
            weights[before] = of_shown[shown == before][0]
        weights[tool] = of_shown[shown == tool][0]
        return Request(
            signals=signals,
            right=right,
            unsure=np.zeros(len(rows), np.bool_),
            weight=weights[rows].astype(np.float32),
            group=i,
            nothing=0.0,
            gold=1,
        )

    def _signals(self, kind: int, links: Floats, ended: Floats, here: Bools) -> tuple[Ints, Signals]:
        """The candidates of a kind, and their signals."""
        similar = self.world.similarity[kind]
        of, count = links[kind], links.sum(axis=0)
        length = np.sqrt((links**2).sum(axis=0))
        centroid = _NEAR * of / np.maximum(length, 1e-9)
        along = (self.world.similarity * links).sum(axis=0)
        shrunk = (SHRINKAGE * similar + _NEAR * of) / np.sqrt(SHRINKAGE**2 + 2 * SHRINKAGE * along + length**2)
        shrunk = np.where(count > 0, shrunk, similar)
        vote = of / max(float(of.sum()), 1e-9)
        known = np.flatnonzero(here)
        rankings = [top(score, CANDIDATES, known) for score in (similar, *((shrunk, vote) if count.any() else ()))]
        rows = in_turns(rankings, CANDIDATES)
        said = {
            "cosine": similar,
            "bm25": np.maximum(similar, 0.0) * 10,
            "centroid": centroid,
            "shrunk": shrunk,
            "vote": vote,
            "nearest": np.where(of > 0, _NEAR, np.where(count > 0, 0.3, 0.0)),
            "count": count,
            "success_rate": self._success_rate(kind, ended) if self._history else np.ones(len(count)),
        }
        nothing = np.zeros(len(rows), np.float32)
        arrays = {one.name: nothing for one in fields(Signals)}
        arrays |= {name: values[rows].astype(np.float32) for name, values in said.items()}
        reach = _NEAR if of.any() else 0.3
        return rows, Signals(**(arrays | {"reach": reach}))  # type: ignore[arg-type]

    @staticmethod
    def _success_rate(kind: int, ended: Floats) -> Floats:
        """(n,) for a kind: all tools are of one domain, and requests of other kinds are too far to count as near."""
        of_tool = ended.sum(axis=1)
        everything = of_tool.sum(axis=1, keepdims=True)
        everywhere = shrunken(of_tool, shrunken(everything, shrunken(everything, 1.0)))
        return shrunken(ended[:, kind] * np.exp(SHARPNESS * (_NEAR - 1.0)), everywhere)

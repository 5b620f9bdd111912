"""Usage memory: past subgoals, embedded, the tools that served them, and how calls ended. No gradients, at once.

Two views of what served. *Centroid*: a tool's vector is its card vector shrunk towards the weighted mean of the
subgoals it served. *Neighbours*: the nearest past subgoals vote for the tools that served them. A tool without usage
keeps its card vector and a count of zero, and the relevance head sees the count: silence is not evidence.

*History* is how calls ended: the rate of success, nearby shrunk towards everywhere, that towards its domain, that
towards all. Much used and often chosen say nothing there, so a better newcomer shows after a few calls.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serving.cosine import cosines

NEIGHBOURS = 30
SHRINKAGE = 2.0
"""A card counts as much as this many successful subgoals."""
SHARPNESS = 12.0
"""Votes fall by exp(-SHARPNESS * distance in cosine) from the nearest past subgoal."""
HISTORY_PRIOR = 4.0
"""A coarser rate of success counts as much as this many calls of what is one step finer."""

SERVED, WON, LOST = range(3)
"""Kinds of link: the tool served the subgoal; a call of it succeeded; a call of it failed by the tool's own fault."""

_NOTHING = -1
_UNKNOWN = -2
_HIDDEN = np.float32(-2.0)  # below any cosine
_THE_SAME = 0.9999


@dataclass(frozen=True)
class Usage:
    """The stored past, one row a (subgoal, tool) link.

    `vectors` (m, d) float32: one row a distinct past subgoal. `query` (l,) int: link -> row of `vectors`.
    `tool` (l,) int: link -> position in `tools`; -1 = nothing fitted that subgoal. `weight` (l,) float32 > 0: age,
    and where the tool served, success and inverse propensity (clipped), already multiplied. `kind` (l,) int8: SERVED,
    or WON and LOST, which count towards the rate of success and nothing else. `tenant` (l,) int: place in `tenants`;
    tenant "" is shared by all. `group` (m,): rows of one group are one request asked again, and are forgotten
    together.
    """

    vectors: NDArray[np.float32]
    query: NDArray[np.int64]
    tool: NDArray[np.int64]
    weight: NDArray[np.float32]
    kind: NDArray[np.int8]
    tenant: NDArray[np.int64]
    group: NDArray[np.int64]
    tools: tuple[str, ...]
    tenants: tuple[str, ...]

    @property
    def served(self) -> frozenset[str]:
        """Tools that served a past subgoal; to have been called is no service."""
        return frozenset(self.tools[tool] for tool in set(self.tool[self.kind == SERVED].tolist()) if tool >= 0)

    def keeping(self, stays: NDArray[np.bool_]) -> Usage:
        """This past with those of its links alone that stay (l,)."""
        links = {name: getattr(self, name)[stays] for name in ("query", "tool", "weight", "kind", "tenant")}
        return replace(self, **links)

    @classmethod
    def empty(cls, dimension: int) -> Usage:
        return make_usage(np.zeros((0, dimension), np.float32), [], [])


class _Links(NamedTuple):
    """Links of one kind: row of the subgoal, row of the tool (or _NOTHING), weight."""

    query: NDArray[np.int64]
    tool: NDArray[np.int64]
    weight: NDArray[np.float32]

    def more(self, query: NDArray[np.int64], tool: NDArray[np.int64]) -> _Links:
        """These and others that weigh one each."""
        return _Links(
            np.concatenate([self.query, query]),
            np.concatenate([self.tool, tool]),
            np.concatenate([self.weight, np.ones(len(query), np.float32)]),
        )


@dataclass(frozen=True)
class UsageScores:
    """What the past says of each tool of the catalog, for one query; every array (n,) float32.

    `centroid`: cosine to the mean of the subgoals the tool served (0 without usage). `shrunk`: cosine to the card
    vector shrunk towards that mean. `vote`: share of the neighbours' votes in [0, 1]. `nearest`: cosine of the nearest
    subgoal that the tool served (0 without usage). `count`: weighted number of subgoals served. `success_rate`: share
    of the calls for subgoals like this one that succeeded, shrunk; 1 for all where no call is known to have failed.
    `nothing`: share of the neighbours' votes that went to "nothing fitted", a number; `reach`: cosine of the nearest
    past subgoal of all.
    """

    centroid: NDArray[np.float32]
    shrunk: NDArray[np.float32]
    vote: NDArray[np.float32]
    nearest: NDArray[np.float32]
    count: NDArray[np.float32]
    success_rate: NDArray[np.float32]
    nothing: float
    reach: float


class UsageMemory:
    """One tenant's view of the past over one catalog. Immutable; its sums are made once."""

    def __init__(
        self,
        usage: Usage,
        cards: NDArray[np.float32],
        row: Mapping[str, int],
        tenant: str = "",
        domain: NDArray[np.int64] | None = None,
    ) -> None:
        """`cards` (n, d) unit card vectors; `row`: tool id -> its row there. Links to tools not in `row` are left out.

        `domain` (n,): the number of each tool's domain, from 0; None: all are one. A tenant sees its own past and the
        shared one (tenant ""), never another's.
        """
        rows = np.array([row.get(tool, _UNKNOWN) for tool in (*usage.tools, "")], np.int64)
        rows[-1] = _NOTHING
        ours = [i for i, name in enumerate(usage.tenants) if name in ("", tenant)]
        keep = (rows[usage.tool] != _UNKNOWN) & np.isin(usage.tenant, ours)
        used = np.unique(usage.query[keep])
        self._cards = cards
        self._vectors = np.ascontiguousarray(usage.vectors[used])
        self._group = usage.group[used]
        query, tool, weight, kind = (a[keep] for a in (usage.query, rows[usage.tool], usage.weight, usage.kind))
        query = np.searchsorted(used, query)
        self._good, self._won, self._lost = (
            _Links(query[kind == one], tool[kind == one], weight[kind == one]) for one in (SERVED, WON, LOST)
        )
        self._domain = np.zeros(len(cards), np.int64) if domain is None else domain
        self._ended = self._totals(np.zeros(len(used), np.bool_))
        self._voters = np.zeros(len(used), np.bool_)
        self._voters[self._good.query] = True
        nobody = np.zeros(len(used), np.bool_)
        self.counts = self._weights(self._good, nobody)
        self.failed_calls = np.bincount(self._lost.tool, minlength=len(cards))
        served = self._good.tool[self._good.tool >= 0]
        self.observations = np.bincount(served, minlength=len(cards)) + self.failed_calls
        self._used = np.flatnonzero(self.counts > 0)
        sums = self._sum(nobody, self._used)
        self._centroids = unit(sums)
        self._shrunk = _shrink(cards[self._used], sums)

    def scores(
        self,
        query: NDArray[np.float32],
        allowed: NDArray[np.bool_] | None = None,
        *,
        forget: int | None = None,
        cosine: NDArray[np.float32] | None = None,
    ) -> UsageScores:
        """Scores of every tool for one unit query vector (d,).

        `allowed` (n,): the past of other tools takes no part, so that it can neither be seen nor felt. `forget` names
        a group of past subgoals to leave out, exactly as if it had never been logged: a training query must not find
        itself in the past. `cosine` (n,): of the query to every card, where that is known already.
        """
        n = len(self._cards)
        centroid = np.zeros(n, np.float32)
        centroid[self._used] = cosines(self._centroids, query)
        shrunk = cosines(self._cards, query) if cosine is None else cosine.copy()
        shrunk[self._used] = cosines(self._shrunk, query)
        counts, near = self.counts, cosines(self._vectors, query)
        gone = np.zeros(len(near), np.bool_) if forget is None else self._group == forget
        similar = np.where(self._voters & ~gone, near, _HIDDEN)
        if gone.any():
            touched = np.unique(self._good.tool[gone[self._good.query] & (self._good.tool >= 0)])
            counts = self._weights(self._good, gone)
            sums = self._sum(gone, touched)
            centroid[touched] = unit(sums) @ query
            shrunk[touched] = _shrink(self._cards[touched], sums) @ query
        rate = self._success_rate(near, gone, np.ones(n, np.bool_) if allowed is None else allowed)
        vote, nearest, nothing, reach = self._votes(similar, n, allowed)
        return UsageScores(centroid, shrunk, vote, nearest, counts, rate, nothing, reach)

    def extended(self, vectors: NDArray[np.float32], rows: NDArray[np.int64], won: NDArray[np.bool_]) -> UsageMemory:
        """This memory with more outcomes: unit vectors (k, d) of subgoals, rows (k,) of the tools called, success.

        The same as a memory made of both pasts, each new subgoal a group of its own; this one stays as it is.
        """
        other = copy.copy(self)
        start, n = len(self._vectors), len(self._cards)
        fresh = np.arange(start, start + len(rows))
        other._vectors = np.concatenate([self._vectors, vectors.astype(np.float32)])
        other._group = np.concatenate([self._group, -1 - np.arange(len(rows))])
        other._voters = np.concatenate([self._voters, won])
        other._good = self._good.more(fresh[won], rows[won])
        other._won = self._won.more(fresh[won], rows[won])
        other._lost = self._lost.more(fresh[~won], rows[~won])
        more, failed = np.bincount(rows[won], minlength=n), np.bincount(rows[~won], minlength=n)
        other.counts = self.counts + more.astype(np.float32)
        other.failed_calls = self.failed_calls + failed
        other._ended = self._ended + np.stack([more, failed])
        other.observations = self.observations + more + failed
        other._used = np.flatnonzero(other.counts > 0)
        touched, nobody = np.flatnonzero(more), np.zeros(len(other._vectors), np.bool_)
        sums = other._sum(nobody, touched)
        other._centroids, other._shrunk = (np.empty((len(other._used), vectors.shape[1]), np.float32) for _ in "ab")
        kept, changed = np.searchsorted(other._used, self._used), np.searchsorted(other._used, touched)
        other._centroids[kept], other._shrunk[kept] = self._centroids, self._shrunk
        other._centroids[changed], other._shrunk[changed] = unit(sums), _shrink(self._cards[touched], sums)
        return other

    def knows(self, vector: NDArray[np.float32], row: int) -> bool:
        """Whether the tool of this catalog row has served just this subgoal before, by its unit vector (d,)."""
        served = self._vectors[self._good.query[self._good.tool == row]]
        return bool(len(served)) and float((served @ vector).max()) > _THE_SAME

    def _weights(self, links: _Links, gone: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Per tool (n,): the weight of its links, without those to subgoals `gone`."""
        stays = (links.tool >= 0) & ~gone[links.query]
        return np.bincount(links.tool[stays], links.weight[stays], len(self._cards)).astype(np.float32)

    def _totals(self, gone: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(2, n): the weight of each tool's calls that were won and lost, without those for subgoals `gone`."""
        return np.stack([self._weights(links, gone).astype(np.float64) for links in (self._won, self._lost)])

    def _success_rate(
        self, near: NDArray[np.float32], gone: NDArray[np.bool_], allowed: NDArray[np.bool_]
    ) -> NDArray[np.float32]:
        """Per tool (n,), from the cosines `near` (m,) of all past subgoals; calls of tools not allowed take no part."""
        n = len(self._cards)
        if not len(self._lost.tool):
            return np.ones(n, np.float32)
        closeness = np.where(gone, 0.0, np.exp(SHARPNESS * (near.astype(np.float64) - 1.0)))
        total = (self._totals(gone) if gone.any() else self._ended) * allowed
        ended = (self._won, self._lost)
        near_ends = [np.bincount(of.tool, of.weight * closeness[of.query], n).astype(np.float64) for of in ended]
        nearby = np.stack(near_ends) * allowed
        of_domain = np.stack([np.bincount(self._domain, one).astype(np.float64) for one in total])
        everything = shrunken(total.sum(axis=1, keepdims=True), 1.0)
        rate = shrunken(total, shrunken(of_domain, everything)[self._domain])
        return shrunken(nearby, rate).astype(np.float32)

    def _sum(self, gone: NDArray[np.bool_], tools: NDArray[np.int64]) -> NDArray[np.float32]:
        """Weighted sum (k, d) of the subgoals that each of `tools` (k,), ascending, served, without those `gone`."""
        place = np.full(len(self._cards) + 1, -1, np.int64)  # the last one is where "nothing fitted" looks
        place[tools] = np.arange(len(tools))
        at = place[self._good.tool]
        stays = (at >= 0) & ~gone[self._good.query]
        sums = np.zeros((len(tools), self._cards.shape[1]), np.float32)
        np.add.at(sums, at[stays], self._good.weight[stays, None] * self._vectors[self._good.query[stays]])
        return sums

    def _votes(
        self, similar: NDArray[np.float32], n: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], float, float]:
        vote, nearest = np.zeros(n, np.float32), np.zeros(n, np.float32)
        links = self._good
        if not len(links.tool):
            return vote, nearest, 0.0, 0.0
        served = links.tool >= 0
        if allowed is not None and not allowed.all():
            seen = ~served | allowed[links.tool]
            visible = np.zeros(len(similar), np.bool_)
            visible[links.query[seen]] = True
            similar = np.where(visible, similar, _HIDDEN)
            links, served = _Links(links.query[seen], links.tool[seen], links.weight[seen]), served[seen]
        top = float(similar.max())
        if top <= _HIDDEN:
            return vote, nearest, 0.0, 0.0
        np.maximum.at(nearest, links.tool[served], similar[links.query[served]])
        k = min(NEIGHBOURS, len(similar))
        near = np.argpartition(-similar, k - 1)[:k]
        strength = np.zeros(len(similar), np.float32)
        strength[near] = np.exp(SHARPNESS * (similar[near] - top)) * (similar[near] > _HIDDEN)
        votes = links.weight * strength[links.query]
        total = max(float(votes.sum()), 1e-12)
        vote = np.bincount(links.tool[served], votes[served] / total, n).astype(np.float32)
        return vote, nearest, float(votes[~served].sum()) / total, top


def _shrink(cards: NDArray[np.float32], sums: NDArray[np.float32]) -> NDArray[np.float32]:
    return unit(SHRINKAGE * cards + sums)


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length 1; a zero row stays zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.maximum(length, 1e-12)).astype(np.float32)
    return scaled


def shrunken(ended: NDArray[np.float64], towards: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Rates of success of (2, k) calls won and lost, shrunk towards others."""
    rate: NDArray[np.float64] = (ended[0] + HISTORY_PRIOR * towards) / (ended.sum(axis=0) + HISTORY_PRIOR)
    return rate


class Link(NamedTuple):
    """One outcome: row of the subgoal's vector, tool id (None: nothing fitted), weight, tenant, kind."""

    query: int
    tool: str | None
    weight: float
    tenant: str = ""
    kind: int = SERVED


def make_usage(vectors: NDArray[np.float32], links: Sequence[Link], groups: Sequence[int]) -> Usage:
    """Usage from the vectors of past subgoals (m, d), what became of them, and the group of each (m)."""
    tools = tuple(sorted({link.tool for link in links if link.tool is not None}))
    tenants = tuple(sorted({link.tenant for link in links}))
    at, of = {t: i for i, t in enumerate(tools)}, {t: i for i, t in enumerate(tenants)}
    return Usage(
        vectors=vectors.astype(np.float32),
        query=np.array([link.query for link in links], np.int64),
        tool=np.array([_NOTHING if link.tool is None else at[link.tool] for link in links], np.int64),
        weight=np.array([link.weight for link in links], np.float32),
        kind=np.array([link.kind for link in links], np.int8),
        tenant=np.array([of[link.tenant] for link in links], np.int64),
        group=np.asarray(groups, np.int64),
        tools=tools,
        tenants=tenants,
    )

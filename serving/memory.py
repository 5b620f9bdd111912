"""Usage memory: past successful subgoals, embedded, and the tools that served them. No gradients, updated at once.

Two views of the same past. *Centroid*: a tool's vector is its card vector shrunk towards the weighted mean of the
subgoals it served. *Neighbours*: the nearest past subgoals vote for the tools that served them. A tool without usage
keeps its card vector and a count of zero, and the relevance head sees the count: silence is not evidence.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serving.cosine import cosines

NEIGHBOURS = 30
SHRINKAGE = 2.0
"""A card counts as much as this many successful subgoals."""
SHARPNESS = 12.0
"""Votes fall by exp(-SHARPNESS * distance in cosine) from the nearest past subgoal."""
FAILURE_PRIOR = 4.0
"""Successes that every tool is credited with before its first call."""

_NOTHING = -1
_UNKNOWN = -2
_HIDDEN = np.float32(-2.0)  # below any cosine
_THE_SAME = 0.9999


@dataclass(frozen=True)
class Usage:
    """The stored past, one row a (subgoal, tool) link.

    `vectors` (m, d) float32: one row a distinct past subgoal. `query` (l,) int: link -> row of `vectors`.
    `tool` (l,) int: link -> position in `tools`; -1 = nothing fitted that subgoal. `weight` (l,) float32 > 0:
    success, inverse propensity (clipped) and age, already multiplied. `failed` (l,) bool: the tool was tried there and
    failed by its own fault; such a link counts towards the failure rate and nothing else. `tenant` (l,) int: place in
    `tenants`; tenant "" is shared by all. `group` (m,): rows of one group are one request asked again, and are
    forgotten together.
    """

    vectors: NDArray[np.float32]
    query: NDArray[np.int64]
    tool: NDArray[np.int64]
    weight: NDArray[np.float32]
    failed: NDArray[np.bool_]
    tenant: NDArray[np.int64]
    group: NDArray[np.int64]
    tools: tuple[str, ...]
    tenants: tuple[str, ...]

    @property
    def served(self) -> frozenset[str]:
        """Tools that served a past subgoal; to have been tried and to have failed is no service."""
        return frozenset(self.tools[tool] for tool in set(self.tool[~self.failed].tolist()) if tool >= 0)

    @classmethod
    def empty(cls, dimension: int) -> Usage:
        return make_usage(np.zeros((0, dimension), np.float32), [], [])


class _Links(NamedTuple):
    """Links of one kind: row of the subgoal, row of the tool (or _NOTHING), weight."""

    query: NDArray[np.int64]
    tool: NDArray[np.int64]
    weight: NDArray[np.float32]


@dataclass(frozen=True)
class UsageScores:
    """What the past says of each tool of the catalog, for one query; every array (n,) float32.

    `centroid`: cosine to the mean of the subgoals the tool served (0 without usage). `shrunk`: cosine to the card
    vector shrunk towards that mean. `vote`: share of the neighbours' votes in [0, 1]. `nearest`: cosine of the nearest
    subgoal that the tool served (0 without usage). `count`: weighted number of subgoals served. `failure_rate`: share
    of the calls that failed, shrunk towards 0.
    `nothing`: share of the neighbours' votes that went to "nothing fitted", a number; `reach`: cosine of the nearest
    past subgoal of all.
    """

    centroid: NDArray[np.float32]
    shrunk: NDArray[np.float32]
    vote: NDArray[np.float32]
    nearest: NDArray[np.float32]
    count: NDArray[np.float32]
    failure_rate: NDArray[np.float32]
    nothing: float
    reach: float


class UsageMemory:
    """One tenant's view of the past over one catalog. Immutable; its sums are made once."""

    def __init__(self, usage: Usage, cards: NDArray[np.float32], row: Mapping[str, int], tenant: str = "") -> None:
        """`cards` (n, d) unit card vectors; `row`: tool id -> its row there. Links to tools not in `row` are left out.

        A tenant sees its own past and the shared one (tenant ""), never another's.
        """
        rows = np.array([row.get(tool, _UNKNOWN) for tool in (*usage.tools, "")], np.int64)
        rows[-1] = _NOTHING
        ours = [i for i, name in enumerate(usage.tenants) if name in ("", tenant)]
        keep = (rows[usage.tool] != _UNKNOWN) & np.isin(usage.tenant, ours)
        used = np.unique(usage.query[keep])
        self._cards = cards
        self._vectors = np.ascontiguousarray(usage.vectors[used])
        self._group = usage.group[used]
        query, tool, weight, failed = (a[keep] for a in (usage.query, rows[usage.tool], usage.weight, usage.failed))
        query = np.searchsorted(used, query)
        self._good = _Links(query[~failed], tool[~failed], weight[~failed])
        self._bad = _Links(query[failed], tool[failed], weight[failed])
        self._voters = np.zeros(len(used), np.bool_)
        self._voters[self._good.query] = True
        nobody = np.zeros(len(used), np.bool_)
        self.counts, self._failures = self._weights(nobody)
        self.observations = np.bincount(tool[tool >= 0], minlength=len(cards))
        self.failed_calls = np.bincount(tool[(tool >= 0) & failed], minlength=len(cards))
        self._used = np.flatnonzero(self.counts > 0)
        sums = self._sum(nobody, self._used)
        self._centroids = unit(sums)
        self._shrunk = _shrink(cards[self._used], sums)

    def scores(
        self, query: NDArray[np.float32], allowed: NDArray[np.bool_] | None = None, *, forget: int | None = None
    ) -> UsageScores:
        """Scores of every tool for one unit query vector (d,).

        `allowed` (n,): the past of other tools takes no part, so that it can neither be seen nor felt. `forget` names
        a group of past subgoals to leave out, exactly as if it had never been logged: a training query must not find
        itself in the past.
        """
        n = len(self._cards)
        centroid = np.zeros(n, np.float32)
        centroid[self._used] = cosines(self._centroids, query)
        shrunk = cosines(self._cards, query)
        shrunk[self._used] = cosines(self._shrunk, query)
        counts, failures = self.counts, self._failures
        similar = np.where(self._voters, cosines(self._vectors, query), _HIDDEN)
        if forget is not None and (gone := self._group == forget).any():
            similar = np.where(gone, _HIDDEN, similar)
            touched = np.unique(self._good.tool[gone[self._good.query] & (self._good.tool >= 0)])
            counts, failures = self._weights(gone)
            sums = self._sum(gone, touched)
            centroid[touched] = unit(sums) @ query
            shrunk[touched] = _shrink(self._cards[touched], sums) @ query
        rate = failures / (counts + failures + FAILURE_PRIOR)
        vote, nearest, nothing, reach = self._votes(similar, n, allowed)
        return UsageScores(centroid, shrunk, vote, nearest, counts, rate.astype(np.float32), nothing, reach)

    def extended(self, vectors: NDArray[np.float32], rows: NDArray[np.int64]) -> UsageMemory:
        """This memory with more successes: unit vectors (k, d) of subgoals, and the catalog rows (k,) that served them.

        The same as a memory made of both pasts, each new subgoal a group of its own; this one stays as it is.
        """
        other = copy.copy(self)
        start, n = len(self._vectors), len(self._cards)
        fresh = np.arange(start, start + len(rows))
        other._vectors = np.concatenate([self._vectors, vectors.astype(np.float32)])
        other._group = np.concatenate([self._group, -1 - np.arange(len(rows))])
        other._voters = np.concatenate([self._voters, np.ones(len(rows), np.bool_)])
        other._good = _Links(
            np.concatenate([self._good.query, fresh]),
            np.concatenate([self._good.tool, rows]),
            np.concatenate([self._good.weight, np.ones(len(rows), np.float32)]),
        )
        more = np.bincount(rows, minlength=n)
        other.counts = self.counts + more.astype(np.float32)
        other.observations = self.observations + more
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

    def _weights(self, gone: NDArray[np.bool_]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Per tool (n,): the weight of the subgoals it served, and of those where it failed, without those `gone`."""
        n, totals = len(self._cards), []
        for links in (self._good, self._bad):
            stays = (links.tool >= 0) & ~gone[links.query]
            totals.append(np.bincount(links.tool[stays], links.weight[stays], n).astype(np.float32))
        return totals[0], totals[1]

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


class Link(NamedTuple):
    """One outcome: row of the subgoal's vector, tool id (None: nothing fitted), weight, tenant, whether it failed."""

    query: int
    tool: str | None
    weight: float
    tenant: str = ""
    failed: bool = False


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
        failed=np.array([link.failed for link in links], np.bool_),
        tenant=np.array([of[link.tenant] for link in links], np.int64),
        group=np.asarray(groups, np.int64),
        tools=tools,
        tenants=tenants,
    )

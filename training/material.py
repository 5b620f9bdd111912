"""Material: decisions as the usage memory, the interaction and the heads take them, by the functions of serving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from data.catalog import Catalog
from serving.evidence import Evidence, evidence, gather, same_domain, signals
from serving.index import Index
from serving.memory import LOST, WON, Link, Usage, UsageMemory, make_usage
from training.decisions import Decision, Ended
from training.head import Request
from training.interaction import InteractionExample

Floats = NDArray[np.float32]

FEW = 4
"""A past of at most so many requests is short."""

_NONE = np.zeros((0, 0), np.float32)


@dataclass(frozen=True)
class Material:
    """Everything the later stages read: the decisions with their vectors, the index, and the past by tenant."""

    catalog: Catalog
    index: Index
    decisions: Sequence[Decision]
    vectors: Floats
    usage: Usage
    equivalents: Mapping[str, frozenset[str]]
    same_name: Mapping[str, frozenset[str]]
    candidates: int
    unshown_weight: float = 1.0
    """How much a candidate counts as wrong that a log with menus did not show."""

    memories: dict[tuple[str, frozenset[str]], UsageMemory] = field(default_factory=dict)

    def memory(self, tenant: str, unlogged: frozenset[str] = frozenset()) -> UsageMemory:
        """The past as one tenant sees it, as if the `unlogged` tools had never been used; made once."""
        if (tenant, unlogged) not in self.memories:
            assert self.index.vectors is not None
            rows = {tool: row for tool, row in self.catalog.row.items() if tool not in unlogged}
            self.memories[tenant, unlogged] = UsageMemory(
                self.usage, self.index.vectors, rows, tenant, self.index.domain
            )
        return self.memories[tenant, unlogged]

    def right(self, decision: Decision) -> frozenset[str]:
        """The tools that serve a decision: those that did, and their declared equivalents."""
        served = {tool for tool, _ in decision.tools}
        return frozenset(served.union(*(self.equivalents.get(tool, frozenset()) for tool in served)))

    def unsure(self, decision: Decision) -> frozenset[str]:
        """Tools of the same name as one that served: perhaps as good, so neither right nor wrong."""
        named = (self.same_name.get(tool, frozenset()) for tool, _ in decision.tools)
        return frozenset().union(*named) - self.right(decision)


def remember(
    decisions: Sequence[Decision],
    vectors: Floats,
    half_life_days: float,
    history: tuple[Sequence[Ended], Floats] = ((), _NONE),
    now: datetime | None = None,
) -> Usage:
    """The usage memory over all decisions that somebody asked; `vectors` (n, d) belong to them in order.

    `history`: how calls ended, and what they were for, (m, d) in order.

    Where decisions have times, an outcome counts half after `half_life_days`, from the newest one. A time after `now`
    (by default, the clock) is taken for none: one log that is years ahead would make all others count for nothing. An
    inverse propensity is part of an outcome's weight, as its mining rule has bounded it.
    """
    now = now or datetime.now(UTC)
    ended, of_ended = history
    stamps = [*(decision.ts for decision in decisions), *(one.ts for one in ended)]
    times = [ts if ts is not None and ts <= now else None for ts in stamps]
    newest = max((ts for ts in times if ts is not None), default=None)
    ages = [(newest - ts).total_seconds() / 86_400 if newest and ts else 0.0 for ts in times]
    fresh = [0.5 ** (age / half_life_days) for age in ages]
    asked = [i for i, decision in enumerate(decisions) if decision.asked]
    links: list[Link] = []
    for row, i in enumerate(asked):
        decision = decisions[i]
        links += [Link(row, tool, weight * fresh[i], decision.tenant) for tool, weight in decision.tools]
        if not decision.tools:
            links.append(Link(row, None, fresh[i], decision.tenant))
    rows: dict[tuple[int, bytes], int] = {}
    for row, i in enumerate(asked):
        rows.setdefault((decisions[i].group, vectors[i].tobytes()), row)
    more: list[int] = []
    for i, one in enumerate(ended):
        subgoal = (one.group, of_ended[i].tobytes())
        if subgoal not in rows:
            rows[subgoal] = len(asked) + len(more)
            more.append(i)
        links.append(Link(rows[subgoal], one.tool, fresh[len(decisions) + i], one.tenant, WON if one.won else LOST))
    together = np.concatenate([vectors[asked], of_ended[more]]) if more else vectors[asked]
    return make_usage(together, links, [*(decisions[i].group for i in asked), *(ended[i].group for i in more)])


def short_past(usage: Usage, tools: frozenset[str], seed: int) -> Usage:
    """The past as if nobody had called each of `tools` for more than one to `FEW` requests, drawn by the seed."""
    draw = np.random.default_rng(seed)
    group, stays = usage.group[usage.query], np.ones(len(usage.tool), np.bool_)
    for place, tool in enumerate(usage.tools):
        if tool in tools:
            own = usage.tool == place
            asked = np.unique(group[own])
            kept = draw.choice(asked, min(len(asked), int(draw.integers(1, FEW, endpoint=True))), replace=False)
            stays &= ~own | np.isin(group, kept)
    return usage.keeping(stays)


def head_requests(
    material: Material, chosen: Sequence[int], unlogged: frozenset[str] = frozenset(), *, removed: bool = False
) -> tuple[list[Request], list[NDArray[np.int64]]]:
    """One Request for each chosen decision, the decision itself left out of the past; and its candidates' rows.

    `unlogged` tools stand in the catalog and in no log: their past, and what it says to others, is not there. So the
    requests that they serve meet what a new tool's first request meets: rivals that have a past and all the votes.
    `removed`: as if the catalog had neither the right tools nor any of their name, so that nothing fits.
    """
    ids = material.catalog.ids
    requests, candidates = [], []
    for i in chosen:
        decision = material.decisions[i]
        vector = material.vectors[i]
        memory = material.memory(decision.tenant, unlogged)
        right, unsure = material.right(decision), material.unsure(decision)
        here = np.ones(len(ids), np.bool_)
        if removed:
            here[[material.catalog.row[tool] for tool in right | unsure if tool in material.catalog]] = False
        found = evidence(decision.goal, vector, material.index, memory, here, forget=decision.group)
        rows, _ = gather(found, material.candidates, np.flatnonzero(here))
        weight = dict(decision.tools)
        rest = 1.0
        if decision.menu_known:
            weight = dict.fromkeys(right, 1.0) | dict(decision.wrong) | weight
            rest = material.unshown_weight
        requests.append(
            Request(
                signals=signals(found, rows, same_domain=same_domain(material.index, rows, decision.previous)),
                right=np.array([ids[row] in right for row in rows], np.bool_),
                unsure=np.array([ids[row] in unsure for row in rows], np.bool_),
                weight=np.array([weight.get(ids[row], rest) for row in rows], np.float32),
                group=decision.group,
                nothing=found.usage.nothing if found.usage is not None else 0.0,
                gold=0 if removed else len(decision.tools),
                lost=() if removed else _lost(material, decision, rows, found),
            )
        )
        candidates.append(rows)
    return requests, candidates


def _lost(material: Material, decision: Decision, rows: NDArray[np.int64], found: Evidence) -> tuple[bool, ...]:
    """For each right tool that neither itself nor an equivalent is among the candidates: whether none has a past."""
    row, candidates = material.catalog.row, frozenset(rows.tolist())
    lost = []
    for tool, _ in decision.tools:
        good = [row[one] for one in (tool, *material.equivalents.get(tool, ())) if one in row]
        if not candidates.intersection(good):
            lost.append(found.usage is None or not (found.usage.count[good] > 0).any())
    return tuple(lost)


def interaction_examples(
    material: Material, chosen: Sequence[int], states: Sequence[Floats], count: int, excluded: frozenset[str]
) -> list[InteractionExample]:
    """Candidates as the first stage finds them, the right ones always among them, `excluded` tools never.

    `states` are the query token states of the chosen decisions, in order.
    """
    index, ids = material.index, material.catalog.ids
    assert index.vectors is not None
    allowed = np.array([tool not in excluded for tool in ids])
    examples = []
    for i, state in zip(chosen, states, strict=True):
        decision = material.decisions[i]
        found = evidence(
            decision.goal, material.vectors[i], index, material.memory(decision.tenant), forget=decision.group
        )
        rows, _ = gather(found, count, np.flatnonzero(allowed))
        right, unsure = material.right(decision), material.unsure(decision)
        wrong = [tool for tool, _ in decision.wrong]
        known = [material.catalog.row[tool] for tool in (*sorted(right), *wrong) if tool in material.catalog]
        pool = [row for row in dict.fromkeys([*rows.tolist(), *known]) if ids[row] not in unsure]
        taken = np.array([row for row in pool if allowed[row]], np.int64)
        is_right = np.array([ids[row] in right for row in taken], np.bool_)
        if is_right.any() and not is_right.all():
            cosine = index.vectors[taken] @ material.vectors[i]
            examples.append(InteractionExample(state, taken, cosine.astype(np.float32), is_right))
    return examples

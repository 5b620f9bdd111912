"""The demo's data: BFCL's tools and requests, split once and for all, with permissions added for the show.

BFCL says nothing of permissions, so a small table of rules does; a tool takes what every rule that fits it asks for:

| rule | fits a tool | it then needs |
|---|---|---|
| money | that is more than read-only and speaks of paying, banking, buying, investing | scope `payments` |
| destructive | whose risk is destructive | scope `admin` |
| uber | whose name says `uber` | connection `uber` |
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from data.cards import Requires, Risk, ToolCard
from data.catalog import Catalog
from data.context import Caller, Subgoal
from data.importers.bfcl import Bfcl
from data.mining.options import MiningOptions
from data.queries import Query
from data.traces import Trace
from data.words import split_identifier
from training.recipe import Recipe

EVERYTHING = Caller(principal="unrestricted", scopes=("admin", "payments"), connections=("uber",))
"""Holds all that the table asks for; beside it a restricted caller's menu shows what was withheld."""

_MONEY = frozenset(["bank", "banking", "buy", "deposit", "invest", "investment", "pay", "payment", "purchase"])


@dataclass(frozen=True)
class Split:
    """Training traces and held-out queries; no request is on both sides."""

    traces: list[Trace]
    queries: list[Query]


@dataclass(frozen=True)
class Request:
    """One request of the show: who asks for what, and why it is worth a look."""

    title: str
    subgoal: Subgoal
    caller: Caller


REQUESTS = (
    Request(
        "A caller without the scope 'payments' asks to move money",
        Subgoal(goal="Send 250 dollars to my friend Alex from my bank account", mutation=True),
        Caller(principal="guest"),
    ),
    Request(
        "The same request in production, from a caller who holds the scope",
        Subgoal(goal="Send 250 dollars to my friend Alex from my bank account", mutation=True),
        Caller(principal="accounting", scopes=("payments",), env="production"),
    ),
    Request(
        "A question that only reads, about a service that the caller has not connected",
        Subgoal(
            goal="Which Uber ride can take me from 2020 Addison Street in Berkeley to the airport?", mutation=False
        ),
        Caller(principal="guest"),
    ),
)


def guarded(cards: Iterable[ToolCard]) -> Catalog:
    """The same tools, each with what the table asks of it."""
    return Catalog(card.model_copy(update={"requires": _requirements(card)}) for card in cards)


def is_held_out(qid: str) -> bool:
    """Whether a request belongs to the held-out 40%: by a hash of its id, so that the split never moves."""
    return int(hashlib.sha1(qid.encode(), usedforsecurity=False).hexdigest(), 16) % 10 >= 6


def split(source: Bfcl) -> Split:
    """The requests of 60% as traces, those of the other 40% as queries."""
    return Split(
        [trace for trace in source.traces if not is_held_out(trace.trace_id)],
        [query for query in source.queries if is_held_out(query.qid)],
    )


def _requirements(card: ToolCard) -> Requires:
    words = set(split_identifier(card.tool_id))
    scopes = []
    if words & _MONEY and card.risk > Risk.READ_ONLY:
        scopes.append("payments")
    if card.risk is Risk.DESTRUCTIVE:
        scopes.append("admin")
    return Requires(scopes=tuple(scopes), connections=("uber",) if "uber" in words else ())


def recipe_for(catalog: Catalog) -> Recipe:
    """The default recipe, told which functions are variants of one another: the importer numbers them `name#2`."""
    variants: dict[str, list[str]] = {}
    for card in catalog:
        variants.setdefault(card.tool_id.split("#")[0], []).append(card.tool_id)
    equivalents = {tool: tuple(t for t in same if t != tool) for same in variants.values() for tool in same}
    told = {tool: others for tool, others in equivalents.items() if others}
    return Recipe(mining=MiningOptions(equivalents=told))

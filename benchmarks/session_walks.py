"""Going through a session as a client of the slice cache, and why a decision was not known where it was not."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from benchmarks.agent_turns import Turn
from data.context import Caller, Recent
from serving.query import as_subgoal, resolve_query
from serving.selector import Selector
from serving.slice import Slice
from serving.slice_cache import SliceCache, slice_key

LAST_CALLS = 8
LAST_TURNS = 64

Client = Literal["goal", "used tools", "last calls", "conversation"]
"""What a client sends with each request: the goal alone; the tools used so far, each once; these and the last calls;
these and all that was said."""
CLIENTS: tuple[Client, ...] = ("goal", "used tools", "last calls", "conversation")


class Keys(NamedTuple):
    """What a turn could be known by: everything, what the decision reads of it, that without the used tools, and the
    query alone. Each that is equal makes the next equal."""

    exact: str
    read: tuple[str, tuple[str, ...], str]
    without_used: tuple[str, str]
    query: str


MISSES = ("asked for the first time", "the last tool's server", "the used tools", "what is not read", "explores")
"""Why a turn was not known: the first of its keys, from the last to the first, that was never seen."""


@dataclass
class Walk:
    """One session as a client went through it: the slices, the tools called, whether each came from the cache."""

    slices: list[Slice] = field(default_factory=list)
    called: list[str | None] = field(default_factory=list)
    cached: list[bool] = field(default_factory=list)
    why: Counter[str] = field(default_factory=Counter)
    seconds: list[tuple[str, float]] = field(default_factory=list)
    differing: int = 0


class Seen:
    """The keys so far, and the first decision for each that the decision reads alike."""

    def __init__(self) -> None:
        self.keys: list[set[Any]] = [set() for _ in Keys._fields]
        self.first: dict[Any, str] = {}

    def why(self, keys: Keys) -> str:
        """Why a turn with these keys was not known."""
        missing = (key not in known for key, known in reversed(list(zip(keys, self.keys, strict=True))))
        return next((reason for reason, is_new in zip(MISSES, missing, strict=False) if is_new), MISSES[-1])

    def add(self, keys: Keys) -> None:
        for key, known in zip(keys, self.keys, strict=True):
            known.add(key)


def walk(selector: Selector, turns: Sequence[Turn], client: Client, cache: SliceCache, seen: Seen, name: str) -> Walk:
    """Go through a session as this client."""
    walked, used, calls, said = Walk(), list[str](), list[str](), list[str]()
    for number, turn in enumerate(turns):
        caller = _caller(client, used, calls, said)
        embedded = selector.vector(resolve_query(as_subgoal(turn.step.goal), caller.recent)) is not None
        started = time.perf_counter()
        found, cached = cache.ask(selector, turn.step.goal, caller, request_id=f"{name} {number}")
        taken = time.perf_counter() - started
        keys = _keys(selector, turn.step.goal, caller)
        if not cached:
            walked.why[seen.why(keys)] += 1
            if not any(entry.explored for entry in found.menu):
                walked.differing += seen.first.setdefault(keys.read, _decision(found)) != _decision(found)
        seen.add(keys)
        walked.seconds.append(("hit" if cached else "miss, text known" if embedded else "miss", taken))
        tool = _chosen(found, turn.step.gold)
        walked.slices.append(found)
        walked.cached.append(cached)
        walked.called.append(tool)
        said += [turn.step.goal, turn.call.said]
        if tool is not None:
            calls.append(tool)
            used += [tool] if tool not in used else []
    return walked


def _caller(client: Client, used: Sequence[str], calls: Sequence[str], said: Sequence[str]) -> Caller:
    if client == "goal":
        return Caller()
    last = tuple(calls[-LAST_CALLS:]) if client != "used tools" else ()
    turns = tuple(said[-LAST_TURNS:]) if client == "conversation" else ()
    return Caller(used_tools=tuple(used), recent=Recent(tools=last, turns=turns))


def _keys(selector: Selector, goal: str, caller: Caller) -> Keys:
    query = resolve_query(as_subgoal(goal), caller.recent)
    last = next(iter((caller.recent.tools or caller.used_tools)[-1:]), "")
    server = selector.catalog[last].domain if last in selector.catalog else ""
    exact = slice_key(selector, goal, caller).digest
    return Keys(exact, (query, caller.used_tools, server), (query, server), query)


def _decision(found: Slice) -> str:
    """All of a slice but its names for the request and for the caller."""
    return found.model_dump_json(exclude={"request_id", "slice_id", "caller_key", "timings_ms"})


def _chosen(found: Slice, gold: frozenset[str]) -> str | None:
    ranked = sorted((e for e in found.menu if e.rank is not None), key=lambda e: (e.tool_id not in gold, e.rank))
    return ranked[0].tool_id if ranked else None

"""Slice cache: a decision that was made is not made again; a cached slice equals a recomputed one, byte for byte.

The key holds, as values, everything that a decision depends on except the request id: catalog, bundle, policy,
settings, the whole caller, the tools that are down, the subgoal and every other argument of `Selector.select`. So no
change needs to be announced: a changed grant or card is another key, on every replica.

The request id enters a decision twice. It is a field of the slice, which a hit replaces (and the slice's id with it,
which follows from the request id and the decision's digest). And it seeds exploration: a request whose draw may explore
is decided anew, unless it is known that nothing can be explored. What is kept is always the regular decision.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from threading import Lock
from typing import Any, NamedTuple

from data.catalog import content_hash
from data.context import Caller, Subgoal
from serving.explore import explores
from serving.lru import Lru
from serving.query import as_subgoal
from serving.selector import Selector
from serving.slice import Slice, StageRecord, slice_id

_SHARED = frozenset({"mask", "filter"})
"""Stages whose record may name thousands of tools and is the same for many slices of a caller: kept once."""


class SliceKey(NamedTuple):
    """Names a decision up to the request id; made by `slice_key`."""

    digest: str
    caller_key: str


class Found(NamedTuple):
    """A slice, and whether it came from the cache."""

    slice: Slice
    cached: bool


@dataclass(frozen=True)
class CacheFigures:
    """Counts since the start; `slices` and `weight` (tool names and scores kept) are of this moment."""

    hits: int
    misses: int
    evictions: int
    slices: int
    weight: int


class _Kept(NamedTuple):
    """A regular decision. `shared` are the digests of its first records, which are kept apart; `explore_rate`: the
    share of the requests that try a tool, and so do not get this decision."""

    slice: Slice
    digest: str
    shared: tuple[str, ...]
    explore_rate: float


def slice_key(
    selector: Selector, subgoals: Subgoal | str | Sequence[Subgoal | str], caller: Caller, **how: Any
) -> SliceKey:
    """The key of a decision on one subgoal, or on several together, in their order.

    `how` are the other arguments of what decides: values that JSON can hold, or TypeError. Keys are made of JSON, never
    of what an object prints as: two objects may print alike. Raises InputError for a goal that `select` refuses for its
    length or its characters.
    """
    if isinstance(subgoals, Subgoal | str):
        form, goals = "one", [as_subgoal(subgoals).model_dump_json()]
    else:
        form, goals = "several", [as_subgoal(one).model_dump_json() for one in subgoals]
    who = caller.model_dump_json()
    said = json.dumps(how, sort_keys=True, allow_nan=False) if how else ""
    caller_key = selector.caller_key(caller)
    # a caller key is cut short: `who` is not
    digest = content_hash([*selector.versions, caller_key, who, said, form, *goals])
    return SliceKey(digest, caller_key)


class SliceCache:
    """Decisions up to `capacity` entries in all, an entry being a tool's name or score in a slice. Thread-safe.

    About 110 bytes an entry. Half of the capacity is for what masks and request filters dropped: the callers of a large
    catalog may miss ten thousand tools each, and all slices of one caller share that.
    """

    def __init__(self, capacity: int = 1_000_000) -> None:
        self._slices: Lru[SliceKey, _Kept] = Lru(capacity - capacity // 2)
        self._records: Lru[str, StageRecord] = Lru(capacity // 2)
        self._hits = self._misses = 0
        self._lock = Lock()

    def get(self, key: SliceKey, request_id: str) -> Slice | None:
        """The slice of this request, equal to what deciding it anew would give, or None: it has to be decided.

        Its only timing is `cache`.
        """
        started = time.perf_counter()
        found = self._assembled(key, request_id)
        with self._lock:
            self._hits += found is not None
            self._misses += found is None
        if found is None:
            return None
        kept, record = found
        return kept.slice.model_copy(
            update={
                "request_id": request_id,
                "slice_id": slice_id(request_id, kept.digest),
                "record": record,
                "timings_ms": {"cache": (time.perf_counter() - started) * 1000},
            }
        )

    def put(self, key: SliceKey, made: Slice) -> None:
        """Keep a decision made for `key`, if it is one that the next request would get too.

        It is not where something failed or was late, where it explored, and where the tools that are down changed
        between the making of the key and the decision.
        """
        passing = any(degradation.kind != "standing" for degradation in made.degradations)
        explored = any(entry.explored for entry in made.menu)
        if passing or explored or made.caller_key != key.caller_key:
            return
        shared = tuple(takewhile(lambda record: record.stage in _SHARED, made.record))
        own = made.record[len(shared) :]
        for record in shared:
            self._records.put(record.digest, record, 1 + len(record.dropped))
        kept = _Kept(
            made.model_copy(update={"record": own, "timings_ms": {}}),
            made.digest(),
            tuple(record.digest for record in shared),
            _explore_rate(made),
        )
        self._slices.put(key, kept, _weight(kept.slice))

    def ask(
        self, selector: Selector, subgoal: Subgoal | str, caller: Caller, *, request_id: str = "", **how: Any
    ) -> Found:
        """`selector.select` with these arguments, decided or from the cache. Raises what it raises."""
        request_id = request_id or uuid.uuid4().hex
        key = slice_key(selector, subgoal, caller, **how)
        kept = self.get(key, request_id)
        if kept is not None:
            return Found(kept, cached=True)
        made = selector.select(subgoal, caller, request_id=request_id, **how)
        self.put(key, made)
        return Found(made, cached=False)

    def clear(self) -> None:
        """Forget all slices."""
        self._slices.clear()
        self._records.clear()

    def figures(self) -> CacheFigures:
        """What the cache did so far."""
        return CacheFigures(
            self._hits,
            self._misses,
            self._slices.evictions + self._records.evictions,
            slices=len(self._slices),
            weight=self._slices.weight + self._records.weight,
        )

    @property
    def hit_ratio(self) -> float:
        """Share of the lookups that found their slice; 0 before the first."""
        return self._hits / (self._hits + self._misses) if self._hits + self._misses else 0.0

    def _assembled(self, key: SliceKey, request_id: str) -> tuple[_Kept, tuple[StageRecord, ...]] | None:
        if not request_id.strip():
            return None  # nothing to draw by: the selector says so
        kept = self._slices.get(key)
        if kept is None or explores(request_id, kept.explore_rate):
            return None
        record = []
        for digest in kept.shared:
            shared = self._records.get(digest)
            if shared is None:
                return None
            record.append(shared)
        return kept, (*record, *kept.slice.record)


def _explore_rate(made: Slice) -> float:
    """The rate at which such requests explore, 0 where nothing can be tried; rounded up, never down."""
    chances = [sum(record.scores.values()) for record in made.record if record.stage == "explore"]
    return sum(chances) * (1.0 + 1e-9)


def _weight(made: Slice) -> int:
    """Names and scores in a slice, and what its texts take, at 64 characters an entry."""
    texts = len(made.query) + len(made.subgoal.goal)
    names = sum(len(record.dropped) + len(record.scores) for record in made.record)
    for part in made.parts:
        texts += len(part.query) + len(part.subgoal.goal)
        names += len(part.ranking) + len(part.menu) + len(part.relevance)
    return 16 + 8 * len(made.menu) + len(made.ranking) + names + texts // 64

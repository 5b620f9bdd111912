"""Static mask: which tools exist at all for a caller, decided by rules before anything is scored.

A tool that a rule drops is dropped for good: it is never scored, counted, named or explained to the caller.

| rule | keeps the tool when |
|---|---|
| `tenant` | the card names no tenant, or the caller's |
| `scopes` | the caller holds *every* scope that the card requires |
| `connections` | the caller has *every* connection that the card requires |
| `env` | the card names no environment, or the caller's |
| `region` | the card names no region, or the caller's |
| `flags` | *every* flag of the card is on for the caller |
| `workflow` | the caller's `allowed_tools` is None, or holds the tool id |
| `cost_ceiling` | the caller has no ceiling, or the card declares a cost at or under it |
| `health` | the tool is not in the set of unavailable tools |

Names are compared exactly: case matters, and there are no wildcards.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from data.cards import Names, ToolCard
from data.catalog import content_hash
from data.context import Caller
from serving.slice import StageRecord

RULES = ("tenant", "scopes", "connections", "env", "region", "flags", "workflow", "cost_ceiling", "health")
"""The rules in the order in which they are asked; a dropped tool is recorded under the first that drops it."""

_CACHE_ENTRIES = 128
_Rows = dict[str, NDArray[np.intp]]
_Key = tuple[object, ...]


@dataclass(frozen=True, eq=False)
class MaskResult:
    """`allowed`: bool (n,), read-only, by catalog row. `rule`: int8 (n,), index into `RULES`, -1 where allowed."""

    allowed: NDArray[np.bool_]
    rule: NDArray[np.int8]
    tool_ids: tuple[str, ...]

    @cached_property
    def _dropped(self) -> dict[str, str]:
        return {self.tool_ids[row]: RULES[self.rule[row]] for row in np.flatnonzero(~self.allowed)}

    @property
    def dropped(self) -> dict[str, str]:
        """Tool id -> name of the first rule that dropped it, in catalog order. Operators only. The caller's to keep."""
        return dict(self._dropped)

    @cached_property
    def record(self) -> StageRecord:
        """What this stage did, made once for all decisions on the same mask, which share it. Operators only."""
        return StageRecord(stage="mask", kept=int(self.allowed.sum()), dropped=self._dropped)


class _AllOf:
    """Cards that need all of their names: a card passes when as many of its names are held as it lists."""

    def __init__(self, names_of_cards: Sequence[Names]) -> None:
        self.rows = _rows_by_name(names_of_cards)
        self.needed = np.array([len(names) for names in names_of_cards], dtype=np.int32)

    def passes(self, held: Iterable[str]) -> NDArray[np.bool_]:
        count = np.zeros(len(self.needed), dtype=np.int32)
        for name in set(held):
            if name in self.rows:
                count[self.rows[name]] += 1
        complete: NDArray[np.bool_] = count == self.needed
        return complete


class _OpenOrNamed:
    """Cards that are open to everyone unless they list names: then one of these has to be the caller's."""

    def __init__(self, names_of_cards: Sequence[Names]) -> None:
        self.rows = _rows_by_name(names_of_cards)
        self.open = np.array([not names for names in names_of_cards], dtype=np.bool_)

    def passes(self, name: str) -> NDArray[np.bool_]:
        passing = self.open.copy()
        if name in self.rows:
            passing[self.rows[name]] = True
        return passing


def _rows_by_name(names_of_cards: Sequence[Names]) -> _Rows:
    rows: dict[str, list[int]] = {}
    for row, names in enumerate(names_of_cards):
        for name in set(names):
            rows.setdefault(name, []).append(row)
    return {name: np.array(found, dtype=np.intp) for name, found in rows.items()}


class StaticMask:
    """The rules of one catalog, precomputed. Safe to share between threads.

    Results are kept in a bounded cache under all that they depend on, as values: a changed grant is another key.
    """

    def __init__(self, cards: Sequence[ToolCard]) -> None:
        self._ids = tuple(card.tool_id for card in cards)
        self._row = {tool_id: row for row, tool_id in enumerate(self._ids)}
        self._tenant = _OpenOrNamed([card.tenants for card in cards])
        self._scopes = _AllOf([card.requires.scopes for card in cards])
        self._connections = _AllOf([card.requires.connections for card in cards])
        self._env = _OpenOrNamed([card.envs for card in cards])
        self._region = _OpenOrNamed([card.regions for card in cards])
        self._flags = _AllOf([card.flags for card in cards])
        # NaN compares false with every ceiling, which is the rule for a cost that nobody declared.
        self._cost = np.array([np.nan if card.cost_usd is None else card.cost_usd for card in cards], dtype=np.float64)
        self._cache: OrderedDict[_Key, MaskResult] = OrderedDict()
        self._lock = Lock()

    @classmethod
    def build(cls, cards: Sequence[ToolCard]) -> StaticMask:
        """Precompute the rules of `cards`; row i of every result is `cards[i]`."""
        return cls(cards)

    def apply(self, caller: Caller, unavailable: frozenset[str] = frozenset()) -> MaskResult:
        """What exists for `caller` while the tools of `unavailable` (tool ids; unknown ones are ignored) are down."""
        key: _Key = (
            caller.tenant,
            frozenset(caller.scopes),
            frozenset(caller.connections),
            caller.env,
            caller.region,
            frozenset(caller.flags),
            None if caller.allowed_tools is None else frozenset(caller.allowed_tools),
            caller.cost_ceiling_usd,
            unavailable,
        )
        with self._lock:
            known = self._cache.get(key)
            if known is not None:
                self._cache.move_to_end(key)
                return known
        result = self._decide(caller, unavailable)
        with self._lock:
            self._cache[key] = result
            while len(self._cache) > _CACHE_ENTRIES:
                self._cache.popitem(last=False)
        return result

    def _decide(self, caller: Caller, unavailable: frozenset[str]) -> MaskResult:
        checks: tuple[Callable[[], NDArray[np.bool_]], ...] = (  # in the order of RULES
            lambda: self._tenant.passes(caller.tenant),
            lambda: self._scopes.passes(caller.scopes),
            lambda: self._connections.passes(caller.connections),
            lambda: self._env.passes(caller.env),
            lambda: self._region.passes(caller.region),
            lambda: self._flags.passes(caller.flags),
            lambda: self._within_workflow(caller),
            lambda: self._under_ceiling(caller.cost_ceiling_usd),
            lambda: ~self._among(unavailable),
        )
        rule = np.full(len(self._ids), -1, dtype=np.int8)
        for index, check in enumerate(checks):
            rule[(rule == -1) & ~check()] = index
        allowed = rule == -1
        rule.flags.writeable = False
        allowed.flags.writeable = False
        return MaskResult(allowed=allowed, rule=rule, tool_ids=self._ids)

    def _within_workflow(self, caller: Caller) -> NDArray[np.bool_]:
        if caller.allowed_tools is None:
            return np.ones(len(self._ids), dtype=np.bool_)
        return self._among(caller.allowed_tools)

    def _under_ceiling(self, ceiling: float | None) -> NDArray[np.bool_]:
        if ceiling is None:
            return np.ones(len(self._ids), dtype=np.bool_)
        return self._cost <= ceiling

    def _among(self, tool_ids: Iterable[str]) -> NDArray[np.bool_]:
        found = np.zeros(len(self._ids), dtype=np.bool_)
        found[[self._row[tool_id] for tool_id in tool_ids if tool_id in self._row]] = True
        return found


class Unavailable(NamedTuple):
    """The tools that are down, and the hash of their names."""

    ids: frozenset[str]
    key: str


def unavailable(tool_ids: Iterable[str]) -> Unavailable:
    """These tools, as down."""
    ids = frozenset(tool_ids)
    return Unavailable(ids, content_hash(sorted(ids)))

"""Tally: what the finished traces of an import are, counted as they go by."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from data.logs.distinct import Counted
from data.mining.goals import normal_goal
from data.traces import Trace

KEPT_HASHES = 2_000_000
"""Duplicates are looked for among so many lines; beyond, the sets would grow with the log."""


@dataclass
class Tally:
    """Counts of one import's traces. `duplicates`: lines of one trace that another trace has word for word."""

    lines: int = 0
    traces: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    error_classes: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    served: Counter[str] = field(default_factory=Counter)
    goals: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    personal: Counter[str] = field(default_factory=Counter)
    agents: Counted = field(default_factory=Counted)
    with_menu: int = 0
    with_time: int = 0
    judged_tasks: int = 0
    repeats: int = 0
    duplicates: int = 0
    earliest: datetime | None = None
    latest: datetime | None = None
    _seen: set[int] = field(default_factory=set)
    _trace: str | None = None
    _of_trace: set[int] = field(default_factory=set)

    def add(self, row: Trace) -> None:
        """Count one line; the lines of one trace come one after the other."""
        self.lines += 1
        if row.trace_id != self._trace:
            self._turn_over(row.trace_id)
        self.with_menu += row.menu is not None
        self.judged_tasks += row.task_success is not None
        self._look_for_duplicate(row)
        if row.ts is not None:
            self.with_time += 1
            self.earliest = min(self.earliest or row.ts, row.ts)
            self.latest = max(self.latest or row.ts, row.ts)
        if row.caller and row.caller.get("agent"):
            self.agents.add(str(row.caller["agent"]))
        if row.tool_id is None:
            self.outcomes["no_call"] += 1
            return
        self.outcomes[row.outcome] += 1
        self.error_classes[row.error_class] += 1
        self.tools[row.tool_id] += 1
        if row.outcome == "success":
            self.served[row.tool_id] += 1

    def _turn_over(self, trace_id: str) -> None:
        self._trace = trace_id
        self.traces += 1
        if len(self._seen) < KEPT_HASHES:
            self._seen |= self._of_trace
        self._of_trace = set()

    def _look_for_duplicate(self, row: Trace) -> None:
        arguments = json.dumps(row.arguments, sort_keys=True, default=str)
        said = "\0".join((normal_goal(row.request), normal_goal(row.goal), row.tool_id or "", arguments))
        digest = hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        mark = int.from_bytes(digest, "big")
        self.duplicates += mark in self._seen
        self._of_trace.add(mark)

"""Decisions as traces: goal chosen, names resolved, outcome judged, repeats collapsed, personal data found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, cast

from data.context import MAX_GOAL_CHARACTERS
from data.logs import doors
from data.logs.account import Account
from data.logs.collapse import collapsed
from data.logs.events import Call, Decision
from data.logs.goals import goal_of
from data.logs.json_stream import loads
from data.logs.names import Names
from data.logs.outcomes import Judge
from data.logs.redact import masked, masked_value
from data.logs.tally import Tally
from data.logs.values import EARLIEST
from data.traces import Shown, Trace

MAX_ARGUMENT_CHARACTERS = 65_536

NO_GOAL = "a step without any words of what it was for"
UNKNOWN_TOOL = "its tool is not in the catalog"
AMBIGUOUS_TOOL = "its name may be several tools"
LEFT_OUT = "left out by the mapping"
BIG_ARGUMENTS = "arguments of over 64 KB, left out of the trace"
NO_OBJECT = "arguments that are no object, left out of the trace"
BENT_CLOCK = "a time before 2000 or in the future, left out of the trace"
BENT_SPAN = "a call that ends before it starts, its latency left out"
MENU_STRANGER = "an offered tool that is not in the catalog"

_REASONS = {"unknown": UNKNOWN_TOOL, "ambiguous": AMBIGUOUS_TOOL, "left_out": LEFT_OUT}


@dataclass
class _Meant:
    """What the calls since the request have said of what comes next."""

    request: str | None = None
    searched: str = ""
    plan: str = ""
    found: list[str] = field(default_factory=list)


@dataclass
class Maker:
    """What turns decisions into traces; one for a whole import, since it counts."""

    source: str
    names: Names
    judge: Judge
    account: Account
    tally: Tally
    redact: bool = False
    _latest: datetime = field(default_factory=lambda: datetime.now(UTC) + timedelta(days=1))

    def traces(self, decisions: Iterable[Decision]) -> Iterator[Trace]:
        """The lines of each trace; the decisions of one trace come one after the other, in their order."""
        for _, steps in groupby(decisions, key=lambda decision: decision.trace_id):
            rows = list(self._rows(steps))
            kept = collapsed(rows)
            self.tally.repeats += len(rows) - len(kept)
            for row in kept:
                yield self.seen(row)

    def seen(self, row: Trace) -> Trace:
        """A finished line, with personal data counted, and masked where that is asked for."""
        before = self.tally.personal.total()
        safe = {
            "request": masked(row.request, self.tally.personal) if row.request != row.goal else "",
            "goal": masked(row.goal, self.tally.personal),
            "arguments": masked_value(row.arguments, self.tally.personal),
        }
        if row.request == row.goal:
            safe["request"] = safe["goal"]
        if self.redact and self.tally.personal.total() > before:
            row = row.model_copy(update=safe)
        self.tally.add(row)
        return row

    def _rows(self, steps: Iterable[Decision]) -> Iterator[Trace]:
        meant = _Meant()
        for number, decision in enumerate(steps):
            if decision.request != meant.request:
                meant = _Meant(decision.request)
            called = [
                (call, tool_id) for logged in decision.calls for call, tool_id in self._called(logged, decision, meant)
            ]
            if decision.calls and not called:
                continue
            plan, searched = decision.plan or meant.plan, decision.searched or meant.searched
            goal = goal_of(replace(decision, plan=plan, searched=searched))
            if goal is None:
                self.account.skip(NO_GOAL, decision.where)
                continue
            words, origin = goal
            self.tally.goals[origin] += 1
            shared: dict[str, Any] = {
                "trace_id": decision.trace_id,
                "step": number if decision.step is None else decision.step,
                "tenant": decision.tenant,
                "request": _clean(decision.request[:MAX_GOAL_CHARACTERS]),
                "goal": _clean(words),
                "caller": {"agent": decision.agent} if decision.agent else None,
                "menu": self._menu(decision, meant.found),
                "task_success": decision.task_success,
            }
            if not called:
                yield Trace(**shared, ts=self._instant(decision.ts, decision))
            for call, tool_id in called:
                yield self._row(shared, call, tool_id, decision)

    def _row(self, shared: dict[str, Any], call: Call, tool_id: str, decision: Decision) -> Trace:
        verdict = self.judge.verdict(call, self.source)
        self.tally.rules[verdict.rule] += 1
        return Trace(
            **shared,
            ts=self._instant(call.ts or decision.ts, decision),
            tool_id=tool_id,
            arguments=self._arguments(call, decision),
            outcome=verdict.outcome,
            error_class=verdict.error_class,
            latency_ms=self._latency(call, decision),
            cost_usd=call.cost_usd,
        )

    def _called(self, logged: Call, decision: Decision, meant: _Meant) -> Iterator[tuple[Call, str]]:
        """The call with its tool; a search or a plan is remembered for what follows, and is no call of a tool."""
        mapped = self.names.mapped
        known = self.names.resolve(logged.name, logged.server, count=False)
        is_tool = known.tool_id is not None
        if logged.name in mapped.searches or not is_tool:
            words = doors.searched(logged, mapped)
            if words is not None:
                meant.searched = words or meant.searched
                meant.found = list(dict.fromkeys(self._resolved(doors.found(logged.payload))))
                return
            plan = doors.planned(logged)
            if plan is not None:
                meant.plan = plan or meant.plan
                return
        inside = doors.unwrapped(logged, mapped) if logged.name in mapped.wrappers or not is_tool else None
        call = inside or logged
        resolved = self.names.resolve(call.name, call.server)
        if resolved.tool_id is None:
            self.account.skip(_REASONS[resolved.how], f"{decision.where}, '{call.name[:80]}'")
        else:
            yield call, resolved.tool_id

    def _menu(self, decision: Decision, found: list[str]) -> tuple[Shown, ...] | None:
        """What could be chosen from. Behind a search it is what the search found, not the door itself."""
        if decision.offered is None and not found:
            return None
        mapped = self.names.mapped
        offered = [name for name in decision.offered or () if not doors.is_door(name, mapped) or self._is_named(name)]
        ids = list(dict.fromkeys([*self._resolved((name, "") for name in offered), *found]))
        if not ids and not found and offered != list(decision.offered or ()):
            return None
        return tuple(Shown(tool_id=tool_id, position=position) for position, tool_id in enumerate(ids))

    def _is_named(self, name: str) -> bool:
        return self.names.resolve(name, count=False).tool_id is not None

    def _resolved(self, named: Iterable[tuple[str, str]]) -> Iterator[str]:
        for name, server in named:
            resolved = self.names.resolve(name, server, count=False)
            if resolved.tool_id is not None:
                yield resolved.tool_id
            else:
                self.account.notice(MENU_STRANGER)

    def _arguments(self, call: Call, decision: Decision) -> dict[str, Any] | None:
        given = call.arguments
        if given is None or given == "":
            return None
        if not isinstance(given, dict):
            self.account.notice(NO_OBJECT, decision.where)
            return None
        said = json.dumps(given, default=str)
        if len(said) > MAX_ARGUMENT_CHARACTERS:
            self.account.notice(BIG_ARGUMENTS, decision.where)
            return None
        # a number beyond all bounds (1e999) has no word in JSON, and none in a file of traces
        return cast("dict[str, Any]", loads(said)) if "Infinity" in said or "NaN" in said else given

    def _instant(self, ts: datetime | None, decision: Decision) -> datetime | None:
        if ts is not None and not EARLIEST <= ts <= self._latest:
            self.account.notice(BENT_CLOCK, decision.where)
            return None
        return ts

    def _latency(self, call: Call, decision: Decision) -> float | None:
        if call.latency_ms is not None and call.latency_ms < 0:
            self.account.notice(BENT_SPAN, decision.where)
            return None
        return call.latency_ms


def _clean(words: str) -> str:
    """`words` without lone surrogates, which JSON can spell and no file can hold."""
    return words.encode("utf-8", "replace").decode("utf-8")

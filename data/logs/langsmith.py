"""LangSmith: exported runs, each a node of its trace's tree, and their steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from data.logs.account import Account
from data.logs.events import Call, Decision
from data.logs.grouping import grouped
from data.logs.json_stream import Record
from data.logs.messages import tool_names
from data.logs.spans import Kind, Span, span_decisions
from data.logs.trees import answer_of, arguments_of, asked_of, request_of
from data.logs.values import boolean, first, instant, items, mapping, milliseconds, number, text, unpacked

NO_RUN = "a record that is no run"

_KINDS: dict[str, Kind] = {"llm": "chat", "tool": "tool", "chain": "agent"}
_VERDICT_KEYS = ("task_success", "success", "correctness", "correct", "resolved", "user_score", "thumbs_up")


def langsmith_decisions(records: Iterable[Record], account: Account) -> Iterator[Decision]:
    """The steps of every trace, its runs in any order."""
    for _, group in grouped(_runs(records, account), account):
        yield from span_decisions([_span(run) for run in group], account)


def _runs(records: Iterable[Record], account: Account) -> Iterator[tuple[str, dict[str, Any]]]:
    for value, where in records:
        document = mapping(value)
        runs = next((items(document[key]) for key in ("runs", "data", "post") if key in document), [document])
        for run in map(mapping, runs):
            id, kind = text(run.get("id")), text(run.get("run_type"))
            if not id or not kind:
                account.skip(NO_RUN, where)
                continue
            account.records += 1
            trace = text(run.get("trace_id")) or text(run.get("session_id")) or id
            yield trace, {**run, "trace_id": trace, "where": f"{where}, run {id}"}
            for child in items(run.get("child_runs")):  # an export may nest them
                yield from _runs([Record({**mapping(child), "trace_id": trace}, where)], account)


def _span(run: dict[str, Any]) -> Span:
    start, end = instant(run.get("start_time")), instant(run.get("end_time"))
    extra = mapping(run.get("extra"))
    meta = mapping(extra.get("metadata"))
    inputs, outputs = mapping(run.get("inputs")), mapping(run.get("outputs"))
    kind = _KINDS.get(run["run_type"], "other")
    shared: dict[str, Any] = {
        "trace_id": run["trace_id"],
        "span_id": run["id"],
        "parent_id": text(run.get("parent_run_id")),
        "kind": kind,
        "start": start,
        "end": end,
        "tenant": text(first(meta, ("tenant", "tenant_id"))),
        "task_success": _verdict(run),
        "where": run["where"],
    }
    if kind == "tool":
        call = Call(
            text(run.get("name")),
            arguments_of(run.get("inputs")),
            text(first(meta, ("server", "mcp_server", "server_name"))),
            text(first(inputs, ("tool_call_id",)) or mapping(outputs.get("output")).get("tool_call_id")),
            run.get("outputs") is not None and bool(end),
            _result(run.get("outputs")),
            (not run.get("error")) if end else None,
            text(run.get("error")),
            start,
            milliseconds(start, end),
            number(first(run, ("total_cost",))),
        )
        return Span(**shared, call=call)
    if kind == "chat":
        settings = mapping(extra.get("invocation_params"))
        tools = first(settings, ("tools", "functions")) or inputs.get("tools")
        return Span(**shared, asked=asked_of(inputs), answer=answer_of(outputs), offered=tool_names(tools))
    return Span(**shared, request=request_of(inputs), agent=text(first(meta, ("agent", "agent_name", "lc_agent_name"))))


def _result(outputs: Any) -> Any:
    """What a tool gave back, out of the run's outputs and out of a ToolMessage."""
    value = mapping(outputs)
    inner = unpacked(value["output"]) if set(value) == {"output"} else unpacked(outputs)
    if isinstance(inner, dict):
        message = mapping(inner.get("kwargs")) or inner
        if "content" in message and ("tool_call_id" in message or message.get("type") == "tool"):
            failed = message.get("status") == "error"
            return (
                {"content": [{"type": "text", "text": str(message["content"])}], "isError": True}
                if failed
                else (unpacked(message["content"]))
            )
    return inner


def _verdict(run: dict[str, Any]) -> bool | None:
    """Feedback on the root run, by a name that speaks of the task."""
    stats = mapping(run.get("feedback_stats"))
    for key in _VERDICT_KEYS:
        given = stats.get(key)
        score = number(first(mapping(given), ("avg", "score", "value"))) if isinstance(given, dict) else number(given)
        if score is not None:
            return score >= 0.5
    for feedback in map(mapping, items(run.get("feedback"))):
        if text(feedback.get("key")) in _VERDICT_KEYS:
            return boolean(first(feedback, ("score", "value")))
    return None

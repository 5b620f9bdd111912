"""Langfuse: exported traces with their observations, or observations alone, and their steps."""

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

NO_OBSERVATION = "a record that is no trace and no observation"

_KINDS: dict[str, Kind] = {"GENERATION": "chat", "TOOL": "tool", "AGENT": "agent", "CHAIN": "agent"}
_VERDICT_WORDS = ("success", "correct", "resol", "complet", "task", "feedback")


def langfuse_decisions(records: Iterable[Record], account: Account) -> Iterator[Decision]:
    """The steps of every trace; its parts come in any order."""
    for _, group in grouped(_parts(records, account), account):
        yield from span_decisions([_span(part) for part in group], account)


def _parts(records: Iterable[Record], account: Account) -> Iterator[tuple[str, dict[str, Any]]]:
    for value, where in records:
        document = mapping(value)
        listed = document.get("data") if isinstance(document.get("data"), list) else [document]
        for part in map(mapping, items(listed)):
            # an ingestion event holds the part in its body
            body = mapping(part.get("body")) if "body" in part and "-" in text(part.get("type")) else part
            body = {**body, "type": body.get("type") or text(part.get("type")).partition("-")[0].upper()}
            yield from _of_body(body, where, account)


def _of_body(body: dict[str, Any], where: str, account: Account) -> Iterator[tuple[str, dict[str, Any]]]:
    id = text(body.get("id"))
    trace = text(first(body, ("traceId", "trace_id")))
    if not id or not (trace or "observations" in body or body["type"] in {"", "TRACE"}):
        account.skip(NO_OBSERVATION, where)
        return
    account.records += 1
    if not trace:
        yield id, {**body, "type": "TRACE", "trace": id, "where": f"{where}, trace {id}"}
    else:
        yield trace, {**body, "trace": trace, "where": f"{where}, observation {id}"}
    for observation in map(mapping, items(body.get("observations"))):
        if text(observation.get("id")):
            account.records += 1
            yield (
                trace or id,
                {**observation, "trace": trace or id, "where": f"{where}, observation {observation['id']}"},
            )


def _span(part: dict[str, Any]) -> Span:
    start, end = (
        instant(first(part, ("startTime", "start_time", "timestamp"))),
        instant(first(part, ("endTime", "end_time"))),
    )
    meta = mapping(part.get("metadata"))
    attributes = mapping(meta.get("attributes"))
    kind = _kind(part, attributes)
    shared: dict[str, Any] = {
        "trace_id": part["trace"],
        "span_id": f"trace:{part['id']}" if part.get("type") == "TRACE" else part["id"],
        "parent_id": text(first(part, ("parentObservationId", "parent_observation_id"))),
        "kind": kind,
        "start": start,
        "end": end,
        "tenant": text(first(meta, ("tenant", "tenant_id"))),
        "task_success": _verdict(part),
        "where": part["where"],
    }
    if kind == "tool":
        failed = part.get("level") == "ERROR"
        call = Call(
            text(attributes.get("gen_ai.tool.name")) or text(part.get("name")).removeprefix("execute_tool "),
            arguments_of(part.get("input")),
            text(first(meta, ("server", "mcp_server"))),
            text(first({**attributes, **meta}, ("gen_ai.tool.call.id", "tool_call_id"))),
            part.get("output") is not None,
            unpacked(part.get("output")),
            False if failed else None if end is None else True,
            text(first(part, ("statusMessage", "status_message"))) if failed else "",
            start,
            milliseconds(start, end),
            number(first(part, ("calculatedTotalCost", "totalCost", "total_cost"))) or None,
        )
        return Span(**shared, call=call)
    given = unpacked(part.get("input"))
    if kind == "chat":
        settings = {**mapping(part.get("modelParameters")), **mapping(given)}
        tools = (
            first(settings, ("tools", "functions")) or attributes.get("gen_ai.tool.definitions") or meta.get("tools")
        )
        return Span(**shared, asked=asked_of(given), answer=answer_of(part.get("output")), offered=tool_names(tools))
    agent = text(part.get("name")) if part.get("type") == "AGENT" else ""
    return Span(**shared, request=request_of(given), agent=agent)


def _kind(part: dict[str, Any], attributes: dict[str, Any]) -> Kind:
    if part.get("type") == "TRACE":
        return "agent"
    if attributes.get("gen_ai.operation.name") == "execute_tool" or text(part.get("name")).startswith("execute_tool "):
        return "tool"
    return _KINDS.get(text(part.get("type")), "other")


def _verdict(part: dict[str, Any]) -> bool | None:
    for score in map(mapping, items(part.get("scores"))):
        if any(word in text(score.get("name")).lower() for word in _VERDICT_WORDS):
            value = number(score.get("value"))
            return boolean(first(score, ("stringValue", "value"))) if value is None else value >= 0.5
    return None

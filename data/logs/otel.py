"""OpenTelemetry: spans as OTLP JSON, as OTLP protobuf, or as the SDK prints them, and their steps."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import Any

from data.logs.account import Account
from data.logs.events import Decision
from data.logs.genai import is_told, span_of
from data.logs.grouping import grouped
from data.logs.json_stream import Record
from data.logs.spans import span_decisions
from data.logs.values import first, instant, items, mapping, text

NO_SPAN = "a record that is no span"

_NO_PARENT = frozenset({"", "0" * 16})
_HEX_ID = re.compile(r"[0-9a-fA-F]{32}|[0-9a-fA-F]{16}")
_BASE64_ID = re.compile(r"[A-Za-z0-9+/]{22}==|[A-Za-z0-9+/]{11}=")
_ERROR = frozenset({"2", "STATUS_CODE_ERROR", "ERROR", "StatusCode.ERROR"})


def otel_decisions(records: Iterable[Record], account: Account) -> Iterator[Decision]:
    """The steps of every trace in OTLP documents or single spans, in any order over any number of files."""
    keyed = ((raw["trace_id"], raw) for raw in raw_spans(records, account))
    for _, group in grouped(keyed, account):
        yield from trace_decisions(group, account)


def trace_decisions(group: Iterable[dict[str, Any]], account: Account) -> Iterator[Decision]:
    """The steps of one trace, from what `raw_spans` gave of its spans."""
    spans = [span_of(raw, instant(raw["start"]), instant(raw["end"]), account) for raw in group]
    yield from span_decisions(spans, account)


def raw_spans(records: Iterable[Record], account: Account) -> Iterator[dict[str, Any]]:
    """What `span_of` takes, of each span in the records; what is no span is counted."""
    for value, where in records:
        if not isinstance(value, dict):
            account.skip(NO_SPAN, where)
            continue
        batches = first(value, ("resourceSpans", "resource_spans", "batches"))
        if isinstance(batches, list):
            for batch in map(mapping, batches):
                resource = attributes_of(mapping(batch.get("resource")).get("attributes"))
                scopes = first(batch, ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"))
                for span in (one for scope in items(scopes) for one in items(mapping(scope).get("spans"))):
                    yield from _raw(mapping(span), resource, where, account)
        else:
            resource = attributes_of(mapping(value.get("resource")).get("attributes"))
            yield from _raw(value, resource, where, account)


def _raw(span: dict[str, Any], resource: dict[str, Any], where: str, account: Account) -> Iterator[dict[str, Any]]:
    """One span with what is needed of it; a span of something else keeps its place in the tree and nothing more."""
    context = mapping(span.get("context"))
    trace_id = _id(first(span, ("traceId", "trace_id")) or first(context, ("trace_id", "traceId")))
    span_id = _id(first(span, ("spanId", "span_id")) or first(context, ("span_id", "spanId")))
    if not trace_id or not span_id:
        account.skip(NO_SPAN, where)
        return
    account.records += 1
    parent = _id(first(span, ("parentSpanId", "parent_span_id", "parent_id")))
    attributes = attributes_of(span.get("attributes"))
    told = is_told(attributes) or " " in text(span.get("name"))
    events = [
        {"name": text(event.get("name")), "attributes": attributes_of(event.get("attributes"))}
        for event in map(mapping, items(span.get("events")) if told else [])
    ]
    end = first(span, ("endTimeUnixNano", "end_time_unix_nano", "end_time"))
    failed, error = _failure(span, attributes, events)
    tenant = {key: value for key, value in resource.items() if "tenant" in key}
    yield {
        "trace_id": trace_id,
        "span_id": span_id,
        "parent_id": "" if parent in _NO_PARENT else parent,
        "name": text(span.get("name")),
        "attributes": {**tenant, **attributes} if told else tenant,
        "events": events,
        "start": first(span, ("startTimeUnixNano", "start_time_unix_nano", "start_time")),
        "end": end,
        "failed": failed if str(end) not in {"None", "0"} or failed else None,
        "error": error,
        "where": f"{where}, span {span_id[:32]}",
    }


def _id(value: object) -> str:
    """An id as it is written everywhere: in hexadecimal, also where protobuf's JSON made base64 of its bytes."""
    found = text(value).removeprefix("0x")
    if _BASE64_ID.fullmatch(found):
        return b64decode(found).hex()
    return found.lower() if _HEX_ID.fullmatch(found) else found


def _failure(span: dict[str, Any], attributes: dict[str, Any], events: list[dict[str, Any]]) -> tuple[bool, str]:
    """Whether a span ended in an error, and all that it says of it."""
    status = mapping(span.get("status"))
    failed = str(first(status, ("code", "status_code"))) in _ERROR or bool(attributes.get("error.type"))
    if not failed:
        return False, ""
    told = [attributes.get("error.type"), attributes.get("rpc.response.status_code")]
    told += [first(status, ("message", "description"))]
    for event in events:
        if event["name"] == "exception":
            told += [event["attributes"].get("exception.type"), event["attributes"].get("exception.message")]
    said = ": ".join(dict.fromkeys(str(part) for part in told if part))
    return True, said or "error"


def attributes_of(attributes: object) -> dict[str, Any]:
    """Attributes as a dictionary, from OTLP's list of typed pairs or as they are."""
    if isinstance(attributes, dict):
        return attributes
    pairs = [mapping(pair) for pair in items(attributes)]
    return {text(pair.get("key")): _value(pair.get("value")) for pair in pairs if pair.get("key")}


def _value(value: object) -> Any:
    typed = {key.replace("_v", "V"): inner for key, inner in mapping(value).items()}  # int_value is intValue
    if "intValue" in typed:
        return int(typed["intValue"])
    for key in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        if key in typed:
            return typed[key]
    if "arrayValue" in typed:
        return [_value(one) for one in items(mapping(typed["arrayValue"]).get("values"))]
    if "kvlistValue" in typed:
        return attributes_of(mapping(typed["kvlistValue"]).get("values"))
    return None

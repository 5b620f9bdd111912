"""MLflow: traces as their JSON, with their assessments as verdicts, and their steps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from data.logs.account import Account
from data.logs.events import Decision
from data.logs.genai import span_of
from data.logs.grouping import grouped
from data.logs.json_stream import Record, loads
from data.logs.otel import attributes_of, raw_spans
from data.logs.spans import Span, span_decisions
from data.logs.values import boolean, first, instant, items, mapping, number, text

NO_TRACE = "a record that is no MLflow trace"

_VERDICT_WORDS = ("success", "correct", "resol", "complet", "task", "goal", "satisf", "thumbs")


def mlflow_decisions(records: Iterable[Record], account: Account) -> Iterator[Decision]:
    """The steps of every trace: of `Trace.to_json()`, of pages of them, or of the store's and the server's rows."""
    for key, group in grouped(_traces(records, account), account):
        about = next((mapping(part["info"]) for part in group if part["info"]), {})
        spans = (Record(_decoded(span, key), part["where"]) for part in group for span in items(part["spans"]))
        read = [span_of(raw, instant(raw["start"]), instant(raw["end"]), account) for raw in raw_spans(spans, account)]
        yield from span_decisions([*read, _info_span(key, about)], account)


def _traces(records: Iterable[Record], account: Account) -> Iterator[tuple[str, dict[str, Any]]]:
    for value, where in records:
        document = mapping(value)
        page = items(document.get("traces")) or [document]
        for trace in map(mapping, page):
            info = mapping(first(trace, ("info", "trace_info")))
            data = mapping(trace.get("data")) or trace
            id = text(first(info, ("trace_id", "request_id")))
            if not id or not isinstance(data.get("spans"), list):
                account.skip(NO_TRACE, where)
                continue
            yield id, {"info": info, "spans": data["spans"], "where": where}


def _decoded(span: Any, trace_id: str) -> dict[str, Any]:
    """A span with its attributes as values: the store keeps each of them as JSON text."""
    told = mapping(span)
    attributes = {key: _unquoted(value) for key, value in attributes_of(told.get("attributes")).items()}
    return {**told, "trace_id": trace_id, "attributes": attributes}


def _unquoted(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        read = loads(value)
    except ValueError:
        return value
    # inputs and outputs stay texts where they are objects, as in every other span
    return value if isinstance(read, (dict, list)) else read if isinstance(read, str) else json.dumps(read)


def _info_span(trace_id: str, info: dict[str, Any]) -> Span:
    """What is known of the trace as a whole, as a span above its spans."""
    tags = {**mapping(info.get("trace_metadata")), **mapping(info.get("tags"))}
    return Span(
        trace_id,
        f"info:{trace_id}",
        "",
        "other",
        start=instant(first(info, ("request_time", "timestamp_ms"))),
        tenant=text(first(tags, ("tenant", "tenant_id"))),
        task_success=_verdict(info),
    )


def _verdict(info: dict[str, Any]) -> bool | None:
    """The last valid feedback whose name speaks of the task."""
    verdict = None
    for assessment in map(mapping, items(info.get("assessments"))):
        name = text(first(assessment, ("assessment_name", "name"))).lower()
        if assessment.get("valid") is False or not any(word in name for word in _VERDICT_WORDS):
            continue
        value = mapping(assessment.get("feedback")).get("value")
        score = number(value)
        found = boolean(value) if score is None else score >= 0.5
        verdict = found if found is not None else verdict
    return verdict

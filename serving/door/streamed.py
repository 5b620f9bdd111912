"""Streamed spans on their way through the store: one as the row that waits, a trace as the records kept of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from data.logs.json_stream import loads
from data.logs.redact import masked_value
from data.logs.values import unpacked
from data.store.records import Decision, OutcomeRecord, SpanRow
from data.store.rows import packed_with_size
from data.store.waiting import Gathered, TraceKey
from data.traces import Trace


def row_of(raw: dict[str, Any], *, redact: bool) -> SpanRow:
    """What `raw_spans` gave of a span, as it waits; with `redact`, without personal data.

    Raises RecursionError for attributes that are nested too deeply.
    """
    if redact:
        finds: Counter[str] = Counter()
        for part in (raw, *raw["events"]):
            part["attributes"] = {name: masked_value(_open(v), finds) for name, v in part["attributes"].items()}
        raw["error"] = masked_value(raw["error"], finds)
    try:
        body, size = packed_with_size(raw)
    except ValueError:  # a number without an end, which JSON cannot say: as null, as an import reads it
        body, size = packed_with_size(loads(json.dumps(raw)))
    return SpanRow(trace_id=raw["trace_id"], span_id=raw["span_id"], root=not raw["parent_id"], size=size, body=body)


def records_of(key: TraceKey, lines: Sequence[Trace], gathered: Gathered) -> Iterator[Decision | OutcomeRecord]:
    """A decision for each step and an outcome for each line. A line without a time has that of the first arrival."""
    number = 0
    steps = groupby(lines, key=lambda line: (line.step, line.goal, line.request, line.menu))
    for place, (_, group) in enumerate(steps):
        same = list(group)
        head, slice_id = same[0], gathered.numbered(place)
        body: dict[str, Any] = {}
        if head.menu is not None:
            body["menu"] = [shown.model_dump(mode="json") for shown in head.menu]
        if head.caller:
            body |= head.caller
        yield Decision(
            slice_id=slice_id,
            ts=head.ts or gathered.first,
            tenant=key.tenant,
            principal=key.principal,
            trace_id=key.trace_id,
            step=head.step,
            request_id="",
            catalog_version="",
            bundle_version="",
            policy_version="",
            request=head.request,
            goal=head.goal,
            body=body,
        )
        for line in same:
            yield OutcomeRecord(
                tenant=key.tenant,
                principal=key.principal,
                key=gathered.numbered(number),
                ts=line.ts or gathered.first,
                slice_id=slice_id,
                tool_id=line.tool_id,
                step=line.step,
                arguments=line.arguments,
                outcome=line.outcome,
                error_class=line.error_class,
                latency_ms=line.latency_ms,
                cost_usd=line.cost_usd,
                task_success=line.task_success,
            )
            number += 1


def _open(value: Any) -> Any:
    """`value` with the JSON in its texts as values, all the way down: inside a text, a mask could break it."""
    value = unpacked(value)
    if isinstance(value, dict):
        return {name: _open(inner) for name, inner in value.items()}
    return [_open(inner) for inner in value] if isinstance(value, list) else value

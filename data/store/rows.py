"""Rows: a record as a table's row and back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from data.store.records import Decision, Mask, OutcomeRecord, SpanBatch, SpanRow, Withheld

_LEVEL = 1  # a slice shrinks to a fifth in a tenth of a millisecond; higher levels gain little and take longer


def decision_row(decision: Decision) -> dict[str, Any]:
    """The row of a decision that was taken apart. ValueError for a body that is no JSON, such as one with a NaN."""
    return {**{name: getattr(decision, name) for name in Decision.model_fields}, "body": packed(decision.body)}


def outcome_row(outcome: OutcomeRecord) -> dict[str, Any]:
    """The row of an outcome. ValueError for arguments that are no JSON."""
    row = {name: getattr(outcome, name) for name in OutcomeRecord.model_fields}
    row["arguments"] = None if outcome.arguments is None else json.dumps(outcome.arguments, allow_nan=False)
    return row


def mask_row(mask: Mask) -> dict[str, Any]:
    """The row of a mask."""
    return {"digest": mask.digest, "body": packed(mask.withheld)}


def span_rows(batch: SpanBatch) -> list[dict[str, Any]]:
    """The rows of a batch of spans."""
    shared = {"tenant": batch.tenant, "principal": batch.principal, "ts": batch.ts, "sealed": batch.sealed}
    return [
        {**{name: getattr(span, name) for name in SpanRow.model_fields}, **shared, "made": False}
        for span in batch.spans
    ]


def decision_of(row: Mapping[str, Any]) -> Decision:
    """The decision in a row, as it was taken apart."""
    return Decision.model_validate({**row, "body": unpacked(row["body"])})


def withheld_of(body: bytes) -> Withheld:
    """What a mask's row holds."""
    withheld: Withheld = unpacked(body)
    return withheld


def packed(value: Any) -> bytes:
    """JSON, compressed. ValueError for what JSON has no form for."""
    return packed_with_size(value)[0]


def packed_with_size(value: Any) -> tuple[bytes, int]:
    """The same, and how many bytes the JSON has."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    return zlib.compress(text, _LEVEL), len(text)


def unpacked(body: bytes) -> Any:
    """What `packed` was given."""
    return json.loads(zlib.decompress(body))

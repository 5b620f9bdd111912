"""Columns: the part of a trace table that mining reads, checked by name and by type."""

from __future__ import annotations

from typing import Any

import ibis
import pyarrow as pa

from data.errors import InputError
from data.mining.goals import goal_key_column, normal_goal_column

_MENU = "array<struct<tool_id: string, position: int64, propensity: float64>>"
_COLUMNS = {
    "trace_id": "string",
    "step": "int64",
    "ts": "timestamp('UTC', 6)",
    "tenant": "string",
    "goal": "string",
    "tool_id": "string",
    "outcome": "string",
    "error_class": "string",
    "task_success": "boolean",
    "menu": _MENU,
    "retrieved": "array<string>",
    "gold": "array<string>",
}
_REQUIRED = ("trace_id", "goal", "tool_id")

ARROW_SCHEMA: pa.Schema = ibis.schema(_COLUMNS).to_pyarrow()
"""The columns as pyarrow has them; all of them may be null."""


def check_columns(schema: Any, source: str) -> None:
    """Raise InputError if an Ibis schema lacks a column that mining needs, or has one of another type."""
    for name in _REQUIRED:
        if name not in schema:
            raise InputError(
                f"no such column; there are {', '.join(schema.names)}",
                source=source,
                field=name,
                hint="traces as toolcrib writes them have one column for each field of a trace",
            )
    for name, wanted in _COLUMNS.items():
        if name in schema and not schema[name].is_null():
            target = ibis.dtype(wanted)
            if _kind(schema[name]) != _kind(target):
                raise InputError(f"the column holds {schema[name]}, not {target}", source=source, field=name)


def trace_table(raw: Any, source: str) -> Any:
    """The columns that mining reads, absent ones as null; `goal_key` added, which is null for a blank goal.

    Raises as `check_columns`.
    """
    schema = raw.schema()
    check_columns(schema, source)
    table = raw.select(
        **{
            name: raw[name] if name in schema and not schema[name].is_null() else ibis.null(ibis.dtype(wanted))
            for name, wanted in _COLUMNS.items()
        }
    )
    normal = normal_goal_column(table.goal)
    return table.mutate(
        goal_key=ibis.ifelse(table.trace_id.isnull() | (normal == ""), ibis.null("string"), goal_key_column(normal)),
        step=table.step.fill_null(0),
        tenant=table.tenant.fill_null(""),
        outcome=table.outcome.fill_null("unknown"),
        error_class=table.error_class.fill_null("none"),
    )


def _kind(dtype: Any) -> str:
    """A type as far as it matters here: widths, time zones and additional struct fields do not."""
    if dtype.is_array():
        return f"list of {_kind(dtype.value_type)}"
    for name in ("string", "integer", "boolean", "timestamp", "struct"):
        if getattr(dtype, f"is_{name}")():
            return name
    return str(dtype)

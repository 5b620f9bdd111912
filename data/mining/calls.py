"""Calls: a trace table as tables of decisions, one row for each tool that a decision called, saw or was taught.

A decision is (trace, normalised goal). A call repeated inside one decision, as in a retry loop, is folded into one
row with its best standing. Only portable Ibis expressions: the same tables come out of DuckDB and of Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ibis
import pyarrow as pa

from data.catalog import Catalog
from data.errors import InputError
from data.mining.goals import goal_key_column, normal_goal_column

DECISION = ("trace_id", "goal_key")
PAIR = ("trace_id", "goal_key", "tool_id")

# standings of a tool at a decision, best first; the best of its calls counts
SUCCEEDED, EMPTY, VALIDATION, FAILED, SILENT, UNKNOWN = range(6)

SILENT_ERRORS = ("auth", "timeout", "unavailable", "rate_limited")
"""Errors that say nothing of relevance: the right tool meets them as often as a wrong one."""
FAILING_ERRORS = ("tool_error", "wrong_tool")

_MENU = "array<struct<tool_id: string, position: int32, propensity: float64>>"
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


@dataclass(frozen=True)
class Log:
    """What a log says, as Ibis tables. `tool_id` is always one of the catalog's.

    rows       every row that can be used: its goal is not blank
    called     PAIR, standing, step, ts, last_step, last_ts, tenant, goal, task_failed, unclassified, labelled
    shown      PAIR, position, propensity, step, ts, tenant, goal (least position, greatest propensity)
    retrieved  PAIR, of decisions whose menu is known
    labelled   DECISION, any_gold: a human said which tools are right (any_gold false: none is)
    gold       PAIR, step, ts, tenant, goal
    cards      tool_id, name_key
    """

    rows: Any
    called: Any
    shown: Any
    retrieved: Any
    labelled: Any
    gold: Any
    cards: Any


def card_table(catalog: Catalog) -> pa.Table:
    """The catalog as a table: tool_id, name_key (the name, case folded)."""
    rows = [{"tool_id": card.tool_id, "name_key": card.name.casefold()} for card in catalog]
    return pa.Table.from_pylist(rows, schema=pa.schema([("tool_id", pa.string()), ("name_key", pa.string())]))


def trace_table(raw: Any, source: str) -> Any:
    """The columns that mining reads, absent ones as null; `goal_key` added, which is null for a blank goal.

    Raises InputError if a column without which nothing can be mined is missing, or one has another type.
    """
    schema = raw.schema()
    for name in _REQUIRED:
        if name not in schema:
            raise InputError(
                f"no such column; there are {', '.join(schema.names)}",
                source=source,
                field=name,
                hint="traces as toolcrib writes them have one column for each field of a trace",
            )
    columns = {}
    for name, wanted in _COLUMNS.items():
        target = ibis.dtype(wanted)
        if name not in schema or schema[name].is_null():
            columns[name] = ibis.null(target)
        elif _kind(schema[name]) != _kind(target):
            raise InputError(f"the column holds {schema[name]}, not {target}", source=source, field=name)
        else:
            columns[name] = raw[name]
    table = raw.select(**columns)
    normal = normal_goal_column(table.goal)
    return table.mutate(
        goal_key=ibis.ifelse(table.trace_id.isnull() | (normal == ""), ibis.null("string"), goal_key_column(normal)),
        step=table.step.fill_null(0),
        tenant=table.tenant.fill_null(""),
        outcome=table.outcome.fill_null("unknown"),
        error_class=table.error_class.fill_null("none"),
    )


def read_log(traces: Any, cards: Any, computed: Callable[[Any], Any]) -> Log:
    """The tables of a Log, from `trace_table` and `card_table`.

    Every rule reads these tables, so `computed` is asked to compute each of them once.
    """
    rows = computed(traces.filter(traces.goal_key.notnull()))
    labelled, gold = _labels(rows, cards)
    labelled, gold = computed(labelled), computed(gold)
    shown = computed(_shown(rows, cards))
    called = computed(_called(rows, cards, labelled, shown))
    return Log(
        rows=rows,
        called=called,
        shown=shown,
        retrieved=_retrieved(rows, cards),
        labelled=labelled,
        gold=gold,
        cards=cards,
    )


def standing_column(rows: Any) -> Any:
    """How one call went. The error class outweighs a flag that says success: a status of 0 is not a success yet."""
    error, outcome = rows.error_class, rows.outcome
    return ibis.cases(
        (error == "validation", VALIDATION),
        (error.isin(SILENT_ERRORS), SILENT),
        (error.isin(FAILING_ERRORS), FAILED),
        ((outcome == "success") & (error == "empty_result"), EMPTY),
        (outcome == "success", SUCCEEDED),
        (outcome == "failure", FAILED),
        else_=UNKNOWN,
    )


def _kind(dtype: Any) -> str:
    """A type as far as it matters here: widths, time zones and additional struct fields do not."""
    if dtype.is_array():
        return f"list of {_kind(dtype.value_type)}"
    for name in ("string", "integer", "boolean", "timestamp", "struct"):
        if getattr(dtype, f"is_{name}")():
            return name
    return str(dtype)


def _called(rows: Any, cards: Any, labelled: Any, shown: Any) -> Any:
    calls = rows.filter(rows.tool_id.notnull()).semi_join(cards, "tool_id")
    calls = calls.mutate(call_standing=standing_column(calls))
    calls = calls.mutate(standing=calls.call_standing.min().over(ibis.window(group_by=list(PAIR))))
    best = calls.filter(calls.call_standing == calls.standing)
    folded = best.group_by([*PAIR, "standing"]).aggregate(
        step=best.step.min(),
        ts=best.ts.min(),
        last_step=best.step.max(),
        last_ts=best.ts.max(),
        tenant=best.tenant.min(),
        goal=best.goal.min(),
        task_failed=(~best.task_success).fill_null(False).all(),
        unclassified=(best.error_class == "none").all(),
    )
    with_label = folded.left_join(labelled.select(*DECISION, labelled_by="trace_id"), DECISION)
    with_label = with_label.select(*folded.columns, labelled=with_label.labelled_by.notnull())
    propensities = shown.select(*PAIR, shown_propensity="propensity")
    joined = with_label.left_join(propensities, PAIR)
    return joined.select(*with_label.columns, propensity=joined.shown_propensity)


def _shown(rows: Any, cards: Any) -> Any:
    menus = rows.filter(rows.menu.notnull())
    entries = menus.select(*DECISION, "step", "ts", "tenant", "goal", entry=menus.menu.unnest())
    entries = entries.select(
        *DECISION,
        *("step", "ts", "tenant", "goal"),
        tool_id=entries.entry["tool_id"],
        position=entries.entry["position"].cast("int64").fill_null(0),
        propensity=entries.entry["propensity"],
    ).semi_join(cards, "tool_id")
    return entries.group_by(list(PAIR)).aggregate(
        position=entries.position.min(),
        propensity=entries.propensity.max(),
        step=entries.step.min(),
        ts=entries.ts.min(),
        tenant=entries.tenant.min(),
        goal=entries.goal.min(),
    )


def _retrieved(rows: Any, cards: Any) -> Any:
    known = rows.filter(rows.retrieved.notnull() & rows.menu.notnull())
    return known.select(*DECISION, tool_id=known.retrieved.unnest()).distinct().semi_join(cards, "tool_id")


def _labels(rows: Any, cards: Any) -> tuple[Any, Any]:
    marked = rows.filter(rows.gold.notnull())
    labelled = marked.group_by(list(DECISION)).aggregate(any_gold=(marked.gold.length() > 0).any())
    named = marked.select(*DECISION, "step", "ts", "tenant", "goal", tool_id=marked.gold.unnest())
    named = named.semi_join(cards, "tool_id")
    gold = named.group_by(list(PAIR)).aggregate(
        step=named.step.min(), ts=named.ts.min(), tenant=named.tenant.min(), goal=named.goal.min()
    )
    return labelled, gold

"""The mining report: what a log held, what each rule made of it, what was dropped for which reason."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from data.cards import Frozen
from data.errors import InputError
from data.mining import rules
from data.mining.calls import DECISION, UNKNOWN, Log
from data.mining.options import MiningOptions


class MiningReport(Frozen):
    """Counts. Over the rules that make examples, and no_tool, `found` = kept + `dropped`.

    rows                    rows of the trace table
    outcomes                those rows by outcome; `no_call` are the rows in which nothing was called
    rows_dropped            rows left out before any rule: no_goal, unknown_tool (not in the catalog)
    decisions               distinct (trace, normalised goal) among the rows with a goal
    calls_folded            calls that repeat a tool within one decision, folded into one
    found                   (decision, tool) pairs that each rule applied to, also rules that only count; for
                            `no_tool`, decisions
    examples                examples kept, by rule
    dropped                 examples, and no-tool requests, that were not kept, by reason
    positives, negatives    examples kept, by label
    preferences, no_tool    rows of those tables
    tools_with_positive     tools with a positive from the log; card text does not count
    tools_without_positive  the catalog's other tools, in registry order
    """

    rows: int
    outcomes: dict[str, int]
    rows_dropped: dict[str, int]
    decisions: int
    calls_folded: int
    found: dict[str, int]
    examples: dict[str, int]
    dropped: dict[str, int]
    positives: int
    negatives: int
    preferences: int
    no_tool: int
    tools_with_positive: int
    tools_without_positive: tuple[str, ...]


def row_counts(traces: Any, log: Log) -> dict[str, Any]:
    """The report's first five fields: what the rows are, before any rule."""
    none_called = traces.filter(traces.tool_id.isnull())
    calls = log.rows.filter(log.rows.tool_id.notnull())
    known = calls.semi_join(log.cards, "tool_id")
    outcomes = counts_by(traces.filter(traces.tool_id.notnull()).select("outcome").to_pyarrow(), "outcome")
    calls_known = _count(known)
    return {
        "rows": _count(traces),
        "outcomes": outcomes | _positive({"no_call": _count(none_called)}),
        "rows_dropped": _positive(
            {
                "no_goal": _count(traces.filter(traces.goal_key.isnull())),
                "unknown_tool": _count(calls) - calls_known,
            }
        ),
        "decisions": _count(log.rows.select(*DECISION).distinct()),
        "calls_folded": calls_known - _count(log.called),
    }


def rule_counts(log: Log, options: MiningOptions, pairs: Any, examples: Any, no_tool: Any) -> dict[str, int]:
    """How often each rule applied, by name, in the rules' order; `pairs`, `examples`, `no_tool` before screening."""
    made = counts_by(examples.select("reason").to_pyarrow(), "reason")
    counted = {
        "says_nothing": _count(rules.says_nothing(log)),
        "failed_alone": _count(rules.failed_alone(log, pairs)),
        "outside_gold": _count(rules.outside_gold(log)),
        "retrieved_not_shown": _count(rules.retrieved_not_shown(log)),
        "no_tool": _count(no_tool),
    }
    if options.unknown_weight == 0:
        unknown = log.called.filter((log.called.standing == UNKNOWN) & ~log.called.labelled)
        counted["unknown_outcome"] = _count(unknown)
    both = made | counted
    order = (*rules.POSITIVE_RULES, *rules.NEGATIVE_RULES, *rules.COUNTED_RULES)
    return {rule: both[rule] for rule in order if both.get(rule)}


def counts_by(table: pa.Table, column: str) -> dict[str, int]:
    """Rows of a pyarrow table by the value of a column as text, in the order of the values."""
    counted = table[column].value_counts().to_pylist()
    return dict(sorted((str(entry["values"]), int(entry["counts"])) for entry in counted))


def no_positive(rows: dict[str, Any], options: MiningOptions, source: str) -> InputError:
    """The error for a log from which nothing can be learned: what it holds instead, and what to do."""
    held = [f"{count} {what.replace('_', ' ')}" for what, count in rows["outcomes"].items()]
    dropped = [f"{count} with {what.replace('_', ' ')}" for what, count in rows["rows_dropped"].items()]
    if rows["rows_dropped"].get("unknown_tool", 0) * 2 > rows["rows"]:
        hint = "most rows name tools that the catalog does not have: give the catalog that this log was made with"
    elif rows["outcomes"].get("unknown") and options.unknown_weight == 0:
        hint = "log whether calls succeed, or set unknown_weight to take calls of unknown outcome as weak positives"
    else:
        hint = "log more: at least some calls that succeed"
    problem = f"no call that served a goal among {rows['rows']} rows"
    return InputError(f"{problem}: {', '.join(held + dropped)}" if held else problem, source=source, hint=hint)


def _count(table: Any) -> int:
    return int(table.count().to_pyarrow().as_py())


def _positive(counts: dict[str, int]) -> dict[str, int]:
    return {what: count for what, count in counts.items() if count}

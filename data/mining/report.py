"""The mining report: what a log held, what each rule made of it, what was dropped for which reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import ibis

from data.cards import Frozen
from data.errors import InputError
from data.mining import rules
from data.mining.calls import Log
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
    preferences, no_tool, history
                            rows of those tables
    tools_with_positive     tools with a positive from the log; card text does not count
    tools_without_positive  the catalog's other tools, in registry order
    propensities            what the log says of chances and clocks: see `propensity_counts`
    effective_positives     positives of the log that would carry as much if all weighed the same
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
    history: int
    tools_with_positive: int
    tools_without_positive: tuple[str, ...]
    propensities: dict[str, int]
    effective_positives: float


def row_counts(traces: Any, log: Log) -> dict[str, Any]:
    """The report's first five fields: what the rows are, before any rule."""
    known = traces.left_join(log.cards.select("tool_id", "tool"), "tool_id").select(*traces.columns, "tool")
    kinds = known.group_by(
        outcome=ibis.ifelse(known.tool_id.isnull(), "no_call", known.outcome),
        blank=known.goal_key.isnull(),
        unknown=known.tool_id.notnull() & known.tool.isnull(),
    ).aggregate(size=known.count())
    outcomes: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    calls = 0
    for kind in kinds.to_pyarrow().to_pylist():
        outcomes[kind["outcome"]] += kind["size"]
        if kind["blank"]:
            dropped["no_goal"] += kind["size"]
        elif kind["unknown"]:
            dropped["unknown_tool"] += kind["size"]
        elif kind["outcome"] != "no_call":
            calls += kind["size"]
    return {
        "rows": outcomes.total(),
        "outcomes": dict(sorted(outcomes.items())),
        "rows_dropped": dict(sorted(dropped.items())),
        "decisions": log.decisions.count().to_pyarrow().as_py(),
        "calls_folded": calls - log.called.count().to_pyarrow().as_py(),
    }


def rule_counts(log: Log, pairs: Any, made: Mapping[str, int]) -> dict[str, int]:
    """How often each rule applied, by name, in the order of the rules.

    `pairs` are the preference pairs, `made` what the rules that make rows gave before screening.
    """
    counted = {
        "says_nothing": rules.says_nothing(log),
        "failed_alone": rules.failed_alone(log, pairs),
        "outside_gold": rules.outside_gold(log),
        "retrieved_not_shown": rules.retrieved_not_shown(log),
        "unknown_outcome": rules.not_known(log),
    }
    listed = [table.aggregate(size=table.count()).mutate(rule=ibis.literal(rule)) for rule, table in counted.items()]
    sizes = {row["rule"]: row["size"] for row in ibis.union(*listed, distinct=False).to_pyarrow().to_pylist()}
    order = (*rules.POSITIVE_RULES, *rules.NEGATIVE_RULES, *rules.COUNTED_RULES)
    return {rule: size for rule in order if (size := made.get(rule) or sizes.get(rule, 0))}


def sizes_by(table: Any, *columns: str) -> dict[tuple[Any, ...], int]:
    """Rows of an Ibis table by the values of its columns, in their order."""
    listed = table.group_by(list(columns)).aggregate(size=table.count()).to_pyarrow().to_pylist()
    sizes = {tuple(row[column] for column in columns): row["size"] for row in listed}
    return dict(sorted(sizes.items(), key=lambda entry: tuple(str(value) for value in entry[0])))


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

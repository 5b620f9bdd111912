"""The miner: a trace file in, labelled and weighted examples of a catalog's tools out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.compute as pc

from data.catalog import Catalog
from data.mining import rules, screening
from data.mining.calls import PAIR, Log, card_table, read_log, trace_table
from data.mining.engines import Engine, opened
from data.mining.options import MiningOptions
from data.mining.output import check_replaceable, write_folder
from data.mining.report import MiningReport, no_positive, row_counts, rule_counts, sizes_by

_TS = pa.timestamp("us", tz="UTC")
EXAMPLE_SCHEMA = pa.schema(
    [
        ("trace_id", pa.string()),
        ("step", pa.int64()),
        ("ts", _TS),
        ("tenant", pa.string()),
        ("goal", pa.string()),
        ("tool_id", pa.string()),
        ("label", pa.float64()),
        ("weight", pa.float64()),
        ("reason", pa.string()),
    ]
)
PREFERENCE_SCHEMA = pa.schema(
    [
        ("trace_id", pa.string()),
        ("goal", pa.string()),
        ("better", pa.string()),
        ("worse", pa.string()),
        ("weight", pa.float64()),
    ]
)
NO_TOOL_SCHEMA = pa.schema(
    [("trace_id", pa.string()), ("step", pa.int64()), ("ts", _TS), ("tenant", pa.string()), ("goal", pa.string())]
)


@dataclass(frozen=True)
class Mined:
    """What a log teaches, as pyarrow tables whose rows are in a fixed order.

    examples     EXAMPLE_SCHEMA: label 1.0 or 0.0, weight in (0, propensity clip], reason = the rule's name; no
                 (normalised goal, tool) has both labels. `ts` is null where the log has none, and for card text
    preferences  PREFERENCE_SCHEMA: `better` served the goal, `worse` had failed at it
    no_tool      NO_TOOL_SCHEMA: requests that no tool fits
    """

    examples: pa.Table
    preferences: pa.Table
    no_tool: pa.Table
    report: MiningReport


def mine(
    traces: Path | str,
    catalog: Catalog,
    out: Path | str | None = None,
    *,
    options: MiningOptions | None = None,
    engine: str = "duckdb",
) -> Mined:
    """Mine `traces` (a Parquet file, a folder of them, or a plain .jsonl file) for the tools of `catalog`.

    With `out`, writes examples.parquet, preferences.parquet, no_tool.parquet and report.json into that folder, all
    or nothing; a folder that holds anything else is left alone. The same input gives the same tables, whatever the
    engine and the order of the rows in the file. `options` None means the defaults.

    Raises InputError for input that cannot be read, for an unknown or missing engine, for a log without a single
    positive (naming what it holds instead), and for an `out` that cannot be replaced.
    """
    folder = Path(out) if out is not None else None
    if folder is not None:
        check_replaceable(folder)
    with opened(Path(traces), engine) as running:
        mined = _mine(running, catalog, options or MiningOptions(), str(traces))
    if folder is not None:
        tables = {"examples": mined.examples, "preferences": mined.preferences, "no_tool": mined.no_tool}
        write_folder(folder, tables, mined.report.model_dump_json(indent=2))
    return mined


def _mine(engine: Engine, catalog: Catalog, options: MiningOptions, source: str) -> Mined:
    computed = engine.computed
    cards = engine.local(card_table(catalog))
    traces = trace_table(engine.traces, source)
    log = read_log(traces, cards, computed)
    rows = row_counts(traces, log)
    of_log = computed(_positives_of_log(log, options))
    if int(of_log.count().to_pyarrow().as_py()) == 0:
        raise no_positive(rows, options, source)
    of_cards = rules.card_text_positive(engine.local(rules.card_texts(catalog)), options, of_log)
    twins = engine.local(screening.equivalent_table(options.equivalents))
    made = computed(ibis.union(of_log, of_cards, distinct=False))
    pairs = computed(rules.preference_pairs(log, options))
    against = computed(
        ibis.union(rules.failed_then_other_succeeded(pairs), rules.shown_not_chosen(log, options), distinct=False)
    )
    positives = computed(screening.screen_positives(made, options, computed))
    negatives = computed(screening.screen_negatives(against, made, cards, twins, options, computed))
    nothing = computed(screening.screen_no_tool(rules.no_tool(log), of_log))

    judged = ibis.union(positives, negatives, distinct=False)
    kept = judged.filter(judged.fate.isnull())
    hard = kept.filter(kept.reason == "failed_then_other_succeeded")
    examples = _collect(kept, EXAMPLE_SCHEMA)
    preferences = _collect(pairs.semi_join(hard, PAIR).rename(worse="tool_id"), PREFERENCE_SCHEMA)
    no_tool = _collect(nothing.filter(nothing.fate.isnull()), NO_TOOL_SCHEMA)

    fates = sizes_by(
        ibis.union(
            judged.select("reason", "fate"), nothing.select("fate", reason=ibis.literal("no_tool")), distinct=False
        ),
        *("reason", "fate"),
    )
    found, left, dropped = Counter[str](), Counter[str](), Counter[str]()
    for (reason, fate), size in fates.items():
        found[reason] += size
        (left if fate is None else dropped)[reason if fate is None else fate] += size
    served = _tools_served(examples)
    report = MiningReport(
        **rows,
        found=rule_counts(log, pairs, found),
        examples={rule: left[rule] for rule in (*rules.POSITIVE_RULES, *rules.NEGATIVE_RULES) if left[rule]},
        dropped=dict(sorted(dropped.items())),
        positives=sum(left[rule] for rule in rules.POSITIVE_RULES),
        negatives=sum(left[rule] for rule in rules.NEGATIVE_RULES),
        preferences=len(preferences),
        no_tool=len(no_tool),
        tools_with_positive=len(served),
        tools_without_positive=tuple(tool_id for tool_id in catalog.ids if tool_id not in served),
    )
    return Mined(examples, preferences, no_tool, report)


def _positives_of_log(log: Log, options: MiningOptions) -> Any:
    makers = [rules.gold_label, rules.chosen_succeeded, rules.chosen_empty, rules.chosen_validation]
    if options.unknown_weight > 0:
        makers.append(rules.unknown_outcome)
    return ibis.union(*(maker(log, options) for maker in makers), distinct=False)


def _tools_served(examples: pa.Table) -> set[str]:
    of_log = (pc.field("label") == 1.0) & (pc.field("reason") != "card_text_positive")
    return set(examples.filter(of_log)["tool_id"].to_pylist())


def _collect(table: Any, schema: pa.Schema) -> pa.Table:
    """The schema's columns as pyarrow, sorted by all that identify a row: an engine's own order is no order."""
    rows = table.select(*schema.names).to_pyarrow().cast(schema)
    keys = [name for name in schema.names if name not in ("ts", "weight", "label")]
    return rows.sort_by([(name, "ascending") for name in keys]).combine_chunks()

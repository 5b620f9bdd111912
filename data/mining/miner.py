"""The miner: a trace file in, labelled and weighted examples of a catalog's tools out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa

from data.catalog import Catalog
from data.mining import rules, screening
from data.mining.calls import PAIR, Log, read_log
from data.mining.engines import Engine, Resources, opened
from data.mining.options import MiningOptions
from data.mining.output import mining_folder
from data.mining.propensities import effective_size, propensity_counts
from data.mining.report import MiningReport, no_positive, row_counts, rule_counts, sizes_by
from data.tables import check_partitions

_TS = pa.timestamp("us", tz="UTC")
_OF_A_TOOL = (
    ("trace_id", pa.string()),
    ("step", pa.int64()),
    ("ts", _TS),
    ("tenant", pa.string()),
    ("goal", pa.string()),
    ("tool_id", pa.string()),
)
EXAMPLE_SCHEMA = pa.schema(
    [
        *_OF_A_TOOL,
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
HISTORY_SCHEMA = pa.schema([*_OF_A_TOOL, ("won", pa.bool_())])


@dataclass(frozen=True)
class Mined:
    """What a log teaches, as pyarrow tables whose rows are in a fixed order.

    examples     EXAMPLE_SCHEMA: label 1.0 or 0.0, weight in (0, propensity clip], reason = the rule's name; no
                 (normalised goal, tool) has both labels. `ts` is null where the log has none, and for card text
    preferences  PREFERENCE_SCHEMA: `better` served the goal, `worse` had failed at it
    no_tool      NO_TOOL_SCHEMA: requests that no tool fits
    history      HISTORY_SCHEMA: how calls ended that say something of their tool; `won`: it succeeded
    """

    examples: pa.Table
    preferences: pa.Table
    no_tool: pa.Table
    history: pa.Table
    report: MiningReport


def mine(
    traces: Path | str,
    catalog: Catalog,
    *,
    options: MiningOptions | None = None,
    engine: str = "duckdb",
    resources: Resources | None = None,
) -> Mined:
    """Mine `traces` (Parquet files: a file, a folder, a pattern, a URL; or a plain .jsonl file) for `catalog`'s tools.

    The caps of `options` bound the tables, not the length of the log. The same input gives the same tables, whatever
    the engine and the order of the rows in the files. `options` None means the defaults.

    Raises InputError for input that cannot be read, for an unknown or missing engine, and for a log without a single
    positive (naming what it holds instead).
    """
    tables: dict[str, pa.Table] = {}

    def collect(name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> int:
        tables[name] = pa.Table.from_batches(batches, schema=schema).combine_chunks()
        return len(tables[name])

    with opened(traces, engine, resources) as running:
        report = _mine(running, catalog, options or MiningOptions(), str(traces), collect)
    return Mined(**tables, report=report)


def mine_to_folder(
    traces: Path | str,
    catalog: Catalog,
    out: Path | str,
    *,
    options: MiningOptions | None = None,
    engine: str = "duckdb",
    resources: Resources | None = None,
    partition_by: Sequence[str] = (),
) -> MiningReport:
    """Mine as `mine` does, and write the tables as they come: examples, preferences, no_tool, history, report.json.

    `out` is a folder or a URL of one, and changes as a whole; one that holds anything else is left alone. With
    `partition_by` (day, tenant) the tables that know those are folders, one level for each, instead of a file.

    Raises as `mine`, and InputError for an `out` that cannot be replaced.
    """
    check_partitions(partition_by)
    with mining_folder(out, partition_by) as folder, opened(traces, engine, resources) as running:
        report = _mine(running, catalog, options or MiningOptions(), str(traces), folder.add)
        folder.report(report.model_dump_json(indent=2))
    return report


def _mine(
    engine: Engine,
    catalog: Catalog,
    options: MiningOptions,
    source: str,
    taken: Callable[[str, pa.Schema, Iterator[pa.RecordBatch]], int],
) -> MiningReport:
    """Mine; `taken` gets each table by name, schema and batches, and says how many rows it had."""
    computed = engine.computed
    log = read_log(engine, catalog)
    rows = row_counts(engine.traces, log)
    of_log = computed(_positives_of_log(log, options))
    if int(of_log.count().to_pyarrow().as_py()) == 0:
        raise no_positive(rows, options, source)
    of_cards = rules.card_text_positive(log, options, of_log)
    twins = engine.local(screening.equivalent_table(options.equivalents, catalog))
    made = computed(ibis.union(of_log, of_cards, distinct=False))
    pairs = computed(rules.preference_pairs(log, options))
    against = ibis.union(rules.failed_then_other_succeeded(pairs), rules.shown_not_chosen(log, options), distinct=False)
    positives = computed(screening.screen_positives(made, log, options, computed))
    negatives = computed(screening.screen_negatives(against, made, twins, log, options, computed))
    nothing = computed(screening.screen_no_tool(rules.no_tool(log), of_log, log))

    judged = ibis.union(positives, negatives, distinct=False)
    ended = computed(screening.screen_history(rules.history(log), log, options, computed))
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
    counts = rule_counts(log, pairs, found)

    kept = computed(judged.filter(judged.fate.isnull()).drop("fate"))
    hard = kept.filter(kept.reason == "failed_then_other_succeeded")
    served = _served(kept)
    given = {
        "examples": (_in_words(kept, log, tool_id="tool"), EXAMPLE_SCHEMA),
        "preferences": (
            _in_words(pairs.semi_join(hard, PAIR), log, worse="tool", better="better"),
            PREFERENCE_SCHEMA,
        ),
        "no_tool": (nothing.filter(nothing.fate.isnull()), NO_TOOL_SCHEMA),
        "history": (_in_words(ended.filter(ended.fate.isnull()), log, tool_id="tool"), HISTORY_SCHEMA),
    }
    sizes = {
        name: taken(name, schema, engine.batches(_ordered(table, schema), schema))
        for name, (table, schema) in given.items()
    }
    return MiningReport(
        **rows,
        found=counts,
        examples={rule: left[rule] for rule in (*rules.POSITIVE_RULES, *rules.NEGATIVE_RULES) if left[rule]},
        dropped=dict(sorted(dropped.items())),
        positives=sum(left[rule] for rule in rules.POSITIVE_RULES),
        negatives=sum(left[rule] for rule in rules.NEGATIVE_RULES),
        preferences=sizes["preferences"],
        no_tool=sizes["no_tool"],
        history=sizes["history"],
        tools_with_positive=len(served),
        tools_without_positive=tuple(tool_id for place, tool_id in enumerate(catalog.ids) if place not in served),
        propensities=propensity_counts(engine.traces, options),
        effective_positives=effective_size(_of_log(kept)),
    )


def _positives_of_log(log: Log, options: MiningOptions) -> Any:
    makers = [rules.gold_label, rules.chosen_succeeded, rules.chosen_empty, rules.chosen_validation]
    if options.unknown_weight > 0:
        makers.append(rules.unknown_outcome)
    return ibis.union(*(maker(log, options) for maker in makers), distinct=False)


def _served(examples: Any) -> set[int]:
    """The places of the tools that have a positive of the log."""
    return set(_of_log(examples).select("tool").distinct().to_pyarrow()["tool"].to_pylist())


def _of_log(examples: Any) -> Any:
    return examples.filter((examples.label == 1.0) & (examples.reason != "card_text_positive"))


def _in_words(rows: Any, log: Log, **tools: str) -> Any:
    """Rows with the words of their decision, and ids for places: NAME=COLUMN is the id of the tool in that column."""
    told = rows.join(log.words().select("decision", "trace_id", "goal", "tenant"), "decision")
    for name, column in tools.items():
        ids = log.cards.select(**{column: "tool", f"{name}_of": "tool_id"})
        told = told.join(ids, column)
    return told.mutate(**{name: told[f"{name}_of"] for name in tools})


def _ordered(table: Any, schema: pa.Schema) -> Any:
    """The schema's columns, sorted by all that identify a row: an engine's own order is no order."""
    return table.select(*schema.names).order_by([n for n in schema.names if n not in ("ts", "weight", "label", "won")])

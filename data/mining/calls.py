"""Calls: a trace table as tables of decisions, one row for each tool that a decision called, saw or was taught.

A decision is (trace, normalised goal). A call repeated inside one decision, as in a retry loop, is folded into one
row with its best standing. Decisions, goals and tools are whole numbers here, so that the tables which grow with the
menus are narrow; the words are put back to what is kept in the end. Only portable Ibis expressions: the same tables
come out of DuckDB and of Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ibis
import pyarrow as pa

from data.catalog import Catalog
from data.mining.engines import Engine
from data.mining.goals import goal_key_column, normal_goal_column
from data.mining.propensities import proper
from data.traces import FAILING_ERRORS, SILENT_ERRORS

PAIR = ("decision", "tool")

# standings of a tool at a decision, best first; the best of its calls counts
SUCCEEDED, EMPTY, VALIDATION, FAILED, SILENT, UNKNOWN = range(6)


@dataclass(frozen=True)
class Log:
    """What a log says, as Ibis tables. `tool` is a place in the catalog, `decision` a row of `decisions` or `texts`.

    decisions  decision, goal_number, trace_id, goal_key, goal, tenant (the least of each), step, ts (the first),
               uncalled, labelled, any_gold (labelled without it: a human said that no tool is right)
    texts      decision (below 0), goal_number, trace_id, goal_key, goal, step, tool: what the cards say of themselves
    called     PAIR, standing, step, ts, last_step, last_ts, task_failed, unclassified, labelled, propensity
    shown      PAIR, position, propensity, step, ts (least position, greatest propensity)
    retrieved  PAIR, of decisions whose menu is known
    gold       PAIR, step, ts: a human said which tools are right
    cards      tool, tool_id, name (the place of the first tool of that name, case folded)
    """

    decisions: Any
    texts: Any
    called: Any
    shown: Any
    retrieved: Any
    gold: Any
    cards: Any

    def words(self) -> Any:
        """decision, goal_number, trace_id, goal_key, goal, tenant: what every decision was called."""
        names = ("decision", "goal_number", "trace_id", "goal_key", "goal", "tenant")
        texts = self.texts.mutate(tenant=ibis.literal(""))
        return ibis.union(self.decisions.select(*names), texts.select(*names), distinct=False)


def card_table(catalog: Catalog) -> pa.Table:
    """The catalog as a table: tool (the place), tool_id, name (the place of the first that is called so)."""
    first: dict[str, int] = {}
    rows = [
        {"tool": place, "tool_id": card.tool_id, "name": first.setdefault(card.name.casefold(), place)}
        for place, card in enumerate(catalog)
    ]
    columns = [("tool", pa.int64()), ("tool_id", pa.string()), ("name", pa.int64())]
    return pa.Table.from_pylist(rows, schema=pa.schema(columns))


def card_texts(catalog: Catalog) -> pa.Table:
    """The summary, examples and aliases of every card as decisions: trace_id is `card:` + tool id, step counts them."""
    said = [
        {"trace_id": f"card:{card.tool_id}", "step": step, "goal": text, "tool": tool}
        for tool, card in enumerate(catalog)
        for step, text in enumerate(dict.fromkeys((card.summary, *card.examples, *card.aliases)))
    ]
    rows = [{"decision": -1 - number, **row} for number, row in enumerate(said)]
    number, text = pa.int64(), pa.string()
    columns = [("decision", number), ("trace_id", text), ("step", number), ("goal", text), ("tool", number)]
    return pa.Table.from_pylist(rows, schema=pa.schema(columns))


def read_log(engine: Engine, catalog: Catalog) -> Log:
    """The tables of a Log. Every rule reads them, so each is computed once."""
    cards = engine.local(card_table(catalog))
    used = engine.traces.filter(engine.traces.goal_key.notnull())
    texts = engine.local(card_texts(catalog))
    texts = texts.mutate(normal=normal_goal_column(texts.goal))
    texts = engine.computed(
        texts.filter(texts.normal != "").mutate(goal_key=goal_key_column(texts.normal)).drop("normal")
    )

    keys = ibis.union(used.select("goal_key"), texts.select("goal_key"), distinct=True)
    goals = engine.numbered(keys, "goal_number")
    decisions = engine.numbered(_decisions(used).join(goals, "goal_key"), "decision")
    numbers = decisions.select("decision", "trace_id", "goal_key")
    rows = used.join(numbers, ["trace_id", "goal_key"]).select("decision", *used.drop("trace_id", "goal_key").columns)
    shown = engine.computed(_shown(rows, cards))
    return Log(
        decisions=decisions,
        texts=texts.join(goals, "goal_key"),
        called=engine.computed(_called(rows, cards, decisions, shown)),
        shown=shown,
        retrieved=_retrieved(rows, cards),
        gold=engine.computed(_gold(rows, cards)),
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


def _decisions(used: Any) -> Any:
    return used.group_by(["trace_id", "goal_key"]).aggregate(
        goal=used.goal.min(),
        tenant=used.tenant.min(),
        step=used.step.min(),
        ts=used.ts.min(),
        uncalled=used.tool_id.isnull().all(),
        labelled=used.gold.notnull().any(),
        any_gold=(used.gold.length() > 0).fill_null(False).any(),
    )


def _called(rows: Any, cards: Any, decisions: Any, shown: Any) -> Any:
    calls = rows.filter(rows.tool_id.notnull()).join(cards.select("tool_id", "tool"), "tool_id")
    calls = calls.mutate(standing=standing_column(calls))
    ways = calls.group_by([*PAIR, "standing"]).aggregate(
        step=calls.step.min(),
        ts=calls.ts.min(),
        last_step=calls.step.max(),
        last_ts=calls.ts.max(),
        task_failed=(~calls.task_success).fill_null(False).all(),
        unclassified=(calls.error_class == "none").all(),
    )
    best = ways.group_by(list(PAIR)).aggregate(standing=ways.standing.min())
    folded = ways.semi_join(best, [*PAIR, "standing"])
    told = folded.join(decisions.select("decision", "labelled"), "decision")
    told = told.select(*folded.columns, "labelled")
    propensities = shown.select(*PAIR, shown_propensity="propensity")
    joined = told.left_join(propensities, PAIR)
    return joined.select(*told.columns, propensity=joined.shown_propensity)


def _shown(rows: Any, cards: Any) -> Any:
    menus = rows.filter(rows.menu.notnull())
    entries = menus.select("decision", "step", "ts", entry=menus.menu.unnest())
    entries = entries.select(
        *("decision", "step", "ts"),
        tool_id=entries.entry["tool_id"],
        position=entries.entry["position"].cast("int64").fill_null(0),
        propensity=proper(entries.entry["propensity"]),
    ).join(cards.select("tool_id", "tool"), "tool_id")
    return entries.group_by(list(PAIR)).aggregate(
        position=entries.position.min(),
        propensity=entries.propensity.max(),
        step=entries.step.min(),
        ts=entries.ts.min(),
    )


def _retrieved(rows: Any, cards: Any) -> Any:
    known = rows.filter(rows.retrieved.notnull() & rows.menu.notnull())
    names = known.select("decision", tool_id=known.retrieved.unnest())
    return names.join(cards.select("tool_id", "tool"), "tool_id").select(*PAIR).distinct()


def _gold(rows: Any, cards: Any) -> Any:
    marked = rows.filter(rows.gold.notnull())
    named = marked.select("decision", "step", "ts", tool_id=marked.gold.unnest())
    named = named.join(cards.select("tool_id", "tool"), "tool_id")
    return named.group_by(list(PAIR)).aggregate(step=named.step.min(), ts=named.ts.min())

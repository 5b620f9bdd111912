"""Propensities: how many calls of a log say how likely their tool was to be shown, and how many say it wrongly."""

from __future__ import annotations

from math import fsum
from typing import Any

import ibis

from data.mining.options import MiningOptions


def proper(propensity: Any) -> Any:
    """An Ibis column of propensities with null for those that are no chance of something shown: outside (0, 1], NaN.

    What is null weighs 1, as if the tool had been shown for certain.
    """
    known = (propensity > 0.0) & (propensity <= 1.0)
    return ibis.ifelse(known.fill_null(False), propensity, ibis.null("float64"))


def propensity_counts(traces: Any, options: MiningOptions) -> dict[str, int]:
    """What a trace table (trace_id, step, ts, tool_id, menu) says of chances and of clocks, as counts.

    calls            rows in which a tool was called
    unknown          of these, without a propensity of the tool: no menu, not on it, or none logged. They weigh 1
    improper         with one that is no chance: zero, negative, above 1, NaN. They weigh 1
    by_chance        with one below 1
    clipped          with one so small that the bound on its inverse is met
    clocks_backwards traces in which a later step has an earlier time; the steps say what came first
    """
    calls = traces.filter(traces.tool_id.notnull())
    shown = calls.filter(calls.menu.notnull())
    entries = shown.select("tool_id", entry=shown.menu.unnest())
    own = entries.filter(entries.entry["tool_id"] == entries.tool_id)
    own = own.select(logged=own.entry["propensity"]).mutate(chance=proper(own.entry["propensity"]))
    steps = traces.filter(traces.ts.notnull()).group_by(["trace_id", "step"]).aggregate(ts=traces.ts.max())
    before = steps.ts.lag().over(ibis.window(group_by="trace_id", order_by="step"))
    turned = steps.mutate(before=before)
    counted = ibis.union(
        calls.aggregate(size=calls.count()).mutate(what=ibis.literal("calls")),
        own.aggregate(size=own.logged.count()).mutate(what=ibis.literal("logged")),
        own.aggregate(size=own.chance.count()).mutate(what=ibis.literal("proper")),
        own.aggregate(size=own.chance.count(where=own.chance < 1.0)).mutate(what=ibis.literal("by_chance")),
        own.aggregate(size=own.chance.count(where=own.chance * options.propensity_clip <= 1.0)).mutate(
            what=ibis.literal("clipped")
        ),
        turned.aggregate(size=turned.trace_id.nunique(where=turned.ts < turned.before)).mutate(
            what=ibis.literal("clocks_backwards")
        ),
        distinct=False,
    )
    sizes = {row["what"]: int(row["size"] or 0) for row in counted.to_pyarrow().to_pylist()}
    return {
        "calls": sizes["calls"],
        "unknown": sizes["calls"] - sizes["logged"],
        "improper": sizes["logged"] - sizes["proper"],
        "by_chance": sizes["by_chance"],
        "clipped": sizes["clipped"],
        "clocks_backwards": sizes["clocks_backwards"],
    }


def effective_size(examples: Any) -> float:
    """How many equal weights would carry as much as the `weight` of these rows (Kish 1965): (sum w)^2 / sum w^2.

    0 for no rows. The sums are exact before they are rounded, so that no engine's order of adding shows.
    """
    sizes = examples.group_by("weight").aggregate(size=examples.count()).to_pyarrow().to_pylist()
    first = fsum(row["weight"] * row["size"] for row in sizes)
    second = fsum(row["weight"] ** 2 * row["size"] for row in sizes)
    return first**2 / second if second else 0.0

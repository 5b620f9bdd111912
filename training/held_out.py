"""Held-out traces as queries: what later calls say about which tool was right."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable

from data.catalog import Catalog
from data.errors import InputError
from data.queries import Query
from data.traces import Trace

log = logging.getLogger("toolcrib")


def queries_from_traces(traces: Iterable[Trace], catalog: Catalog, source: str) -> list[Query]:
    """One query a decision (calls of one trace with one goal), in the order of their first calls.

    Its gold is a human label where there is one, otherwise every tool that succeeded; where nothing was called, no tool
    fits. A decision that only failed, or whose outcome is not known, says nothing of which tool is right: it is left
    out, as is one whose right tool the catalog does not have; both are counted in a warning. `source` names the file.

    Raises InputError when no query is left.
    """
    decisions: dict[tuple[str, str], list[Trace]] = {}
    for trace in traces:
        decisions.setdefault((trace.trace_id, trace.goal), []).append(trace)
    queries: list[Query] = []
    left_out: Counter[str] = Counter()
    used: Counter[str] = Counter()
    for (trace_id, goal), calls in decisions.items():
        gold = _gold(calls)
        if gold is None:
            left_out["no call that succeeded"] += 1
        elif any(tool not in catalog for tool in gold):
            left_out["a right tool that the catalog does not have"] += 1
        else:
            used[trace_id] += 1
            qid = trace_id if used[trace_id] == 1 else f"{trace_id}#{used[trace_id]}"
            queries.append(Query(qid=qid, text=goal, gold=gold))
    reasons = ", ".join(f"{reason} ({count})" for reason, count in left_out.items())
    if not queries:
        raise InputError(
            f"none of the decisions says which tool is right: {reasons or 'it holds none'}",
            source=source,
            hint="give calls with ok true, or --queries with known answers",
        )
    if left_out:
        log.warning("%s: decisions left out: %s", source, reasons)
    return queries


def _gold(calls: list[Trace]) -> tuple[str, ...] | None:
    labels = [call.gold for call in calls if call.gold is not None]
    if labels:
        return tuple(dict.fromkeys(tool for label in labels for tool in label))
    called = [call for call in calls if call.tool_id is not None]
    if not called:
        return ()
    right = dict.fromkeys(call.tool_id for call in called if call.outcome == "success" and call.tool_id is not None)
    return tuple(right) or None

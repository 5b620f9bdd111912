"""Pairing: a decision and one of its outcomes, as the trace that mining reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from data.store.rows import unpacked
from data.traces import Shown, Trace


def trace_of(row: Mapping[str, Any]) -> Trace:
    """The trace in a row of `decisions` with the outcome's columns beside it as `outcome_NAME`.

    Where several subgoals shared the menu, the call counts for the one whose part of the menu had the tool (the one
    where it stood best, if several did), and what was shown for the others is not held against them.
    """
    body = unpacked(row["body"])
    tool = row["outcome_tool_id"]
    part = _part(body, tool)
    ranking = _names((body if part is None else part).get("ranking"))
    retrieved = _retrieved(body) if part is None else ranking
    arguments = None if row["outcome_arguments"] is None else json.loads(row["outcome_arguments"])
    step = row["outcome_step"]
    return Trace(
        trace_id=row["trace_id"] or row["outcome_trace_id"] or row["slice_id"],
        step=row["step"] if step is None else step,
        ts=row["outcome_ts"],
        tenant=row["tenant"],
        request=row["request"],
        goal=row["goal"] if part is None else part["subgoal"]["goal"],
        mutation=row["mutation"] if part is None else part["subgoal"].get("mutation"),
        tool_id=tool,
        caller={"agent": body["agent"]} if body.get("agent") else None,
        arguments=arguments if isinstance(arguments, dict) else None,
        catalog_version=row["catalog_version"],
        bundle_version=row["bundle_version"],
        slice_id=row["slice_id"],
        retrieved=retrieved,
        filtered=ranking,
        menu=_menu(body, part),
        outcome=row["outcome_outcome"],
        error_class=row["outcome_error_class"],
        latency_ms=row["outcome_latency_ms"],
        cost_usd=row["outcome_cost_usd"],
        task_success=row["outcome_task_success"],
    )


def _part(body: Mapping[str, Any], tool: str | None) -> Mapping[str, Any] | None:
    showing = [part for part in body.get("parts") or () if tool in part["menu"]]
    return max(showing, key=lambda part: _standing(part, tool)) if showing else None


def _standing(part: Mapping[str, Any], tool: str | None) -> tuple[float, int]:
    """How well the tool stands in a part: by its relevance, else (no model tells it) by its place in the ranking."""
    ranking = part.get("ranking") or []
    place = ranking.index(tool) if tool in ranking else len(ranking)
    return part.get("relevance", {}).get(tool, 0.0), -place


def _menu(body: Mapping[str, Any], part: Mapping[str, Any] | None) -> tuple[Shown, ...] | None:
    menu = body.get("menu")
    if menu is None:
        return None
    known = Shown.model_fields.keys()
    entries = [{name: value for name, value in entry.items() if name in known} for entry in menu]
    if part is not None:
        relevance = part.get("relevance", {})
        entries = [
            {**entry, "relevance": relevance.get(entry["tool_id"])}
            for entry in entries
            if entry["tool_id"] in part["menu"]
        ]
    return tuple(Shown.model_validate(entry) for entry in entries)


def _retrieved(body: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The candidates in their fused order: the keys of the retrieve stage's scores."""
    for stage in body.get("record") or ():
        if stage.get("stage") == "retrieve":
            return _names(stage.get("scores"))
    return None


def _names(found: Any) -> tuple[str, ...] | None:
    return None if found is None else tuple(found)

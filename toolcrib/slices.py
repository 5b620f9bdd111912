"""Slices for a person: the menu as the caller may see it, and the operator's view of who was dropped by what."""

from __future__ import annotations

from collections.abc import Mapping

from serving.slice import MenuEntry, Slice, StageRecord
from toolcrib.screen import say, show_table

_NAMED = 8
"""Tools named for one rule, or scored in one stage; the whole record is in the JSON."""


def show_menu(found: Slice) -> None:
    """The menu in the order in which it is emitted, then abstention and degradations; names nothing else."""
    rows = [(str(e.position + 1), e.tool_id, _relevance(e.relevance), e.verdict, e.rule, _why(e)) for e in found.menu]
    title = (
        f'"{found.subgoal.goal}"'
        if found.query == found.subgoal.goal
        else f'"{found.subgoal.goal}" read as "{found.query}"'
    )
    show_table(title, ("#", "tool", "relevance", "verdict", "rule", "why"), rows, right=("#", "relevance"))
    _say_abstention(found)
    for degradation in found.degradations:
        say(f"degraded: {degradation.stage}: {degradation.what}", style="yellow")


def explain(found: Slice) -> None:
    """The operator's view: ids and versions, each stage with what it dropped and its best scores, then the menu.

    It names tools that the caller may not know of.
    """
    say(f"slice {found.slice_id or '(not sealed)'}, request {found.request_id or '(none)'}")
    say(f"catalog {found.catalog_version}, bundle {found.bundle_version or 'none'}, policy {found.policy_version}")
    for record in found.record:
        _explain_stage(record, found.timings_ms.get(record.stage))
    if not found.record:
        say("no stage record in this slice: save it with 'toolcrib select --json --explain'", style="yellow")
    explored = [e for e in found.menu if e.propensity < 1.0 or e.explored]
    for entry in explored:
        what = "explored" if entry.explored else "shown"
        say(f"exploration: {entry.tool_id} was {what} with propensity {entry.propensity:.4g}")
    show_menu(found)


def withheld(found: Slice) -> dict[str, str]:
    """Tool -> the rule that ruled it out before anything was scored. For operators."""
    return {tool: rule for record in found.record if record.stage == "mask" for tool, rule in record.dropped.items()}


def _explain_stage(record: StageRecord, milliseconds: float | None) -> None:
    took = "" if milliseconds is None else f", {milliseconds:.2f} ms"
    say(f"{record.stage}: kept {record.kept}, dropped {len(record.dropped)}{took}", style="bold")
    rules: dict[str, list[str]] = {}
    for tool, rule in record.dropped.items():
        rules.setdefault(rule, []).append(tool)
    for rule, tools in rules.items():
        say(f"  {rule}: {_some(tools)}")
    if record.scores:
        say(f"  scores: {_best(record.scores)}")


def _some(tools: list[str]) -> str:
    more = len(tools) - _NAMED
    return ", ".join(tools[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _best(scores: Mapping[str, float]) -> str:
    best = sorted(scores.items(), key=lambda item: -item[1])  # stable: ties stay in the record's order
    return _some([f"{tool} {score:.3f}" for tool, score in best])


def _say_abstention(found: Slice) -> None:
    abstention = found.abstention
    if abstention.outcome == "menu":
        return
    measured = ""
    if abstention.fit is not None and abstention.threshold is not None:
        measured = f" (chance that a tool fits {abstention.fit:.3f}, threshold {abstention.threshold:.3f})"
    say(f"nothing fits well: {abstention.outcome}{measured}. {abstention.advice}".rstrip(), style="yellow")


def _relevance(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _why(entry: MenuEntry) -> str:
    if entry.reason == "ranked" and entry.rank is not None:
        return f"rank {entry.rank + 1}"
    return {"ranked": "ranked", "core": "core tool", "used": "used in this session", "explored": "explored"}[
        entry.reason
    ]

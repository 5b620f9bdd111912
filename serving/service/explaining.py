"""Why a tool was or was not on a menu, read from the slice's record: nothing is run again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from serving.slice import MenuEntry, Slice, StageRecord

Fate = Literal["kept", "dropped", "not_reached"]

_GATHERING = ("retrieve", "rerank", "relevance")
"""Stages whose scores name the tools that they kept."""


@dataclass(frozen=True)
class StageFate:
    """What one stage did to the tool: the rule that dropped it, or the score that it got there."""

    stage: str
    fate: Fate
    rule: str = ""
    score: float | None = None


@dataclass(frozen=True)
class Explanation:
    """The tool's way through the decision; `entry` is its line of the menu, None where it was not shown."""

    tool_id: str
    entry: MenuEntry | None
    stages: tuple[StageFate, ...]
    summary: str


def explain(found: Slice, tool_id: str, *, known: bool) -> Explanation:
    """Follow one tool through the record of a decision. `known`: the catalog that decided had the tool."""
    entry = next((entry for entry in found.menu if entry.tool_id == tool_id), None)
    if not known:
        return Explanation(tool_id, None, (), f"{tool_id} was not in catalog {found.catalog_version}.")
    stages: list[StageFate] = []
    gone = False
    for record in found.record:
        fate = StageFate(record.stage, "not_reached") if gone else _fate(record, tool_id, shown=entry is not None)
        gone = gone or fate.fate == "dropped"
        stages.append(fate)
    return Explanation(tool_id, entry, tuple(stages), _summary(found, tool_id, entry, stages))


def _fate(record: StageRecord, tool_id: str, *, shown: bool) -> StageFate:
    if tool_id in record.dropped:
        return StageFate(record.stage, "dropped", rule=record.dropped[tool_id])
    if tool_id in record.scores:
        return StageFate(record.stage, "kept", score=record.scores[tool_id])
    if record.stage in _GATHERING and record.scores:
        if shown:  # a core tool, or one that the session has used: it needs no score to be on the menu
            return StageFate(record.stage, "not_reached")
        return StageFate(record.stage, "dropped", rule="not_among_the_candidates")
    return StageFate(record.stage, "kept")


def _summary(found: Slice, tool_id: str, entry: MenuEntry | None, stages: list[StageFate]) -> str:
    if entry is not None:
        place = f"rank {entry.rank + 1}" if entry.rank is not None else f"a {entry.reason} tool"
        return f"{tool_id} was shown ({place}), verdict {entry.verdict} by rule '{entry.rule}'."
    dropped = next((stage for stage in stages if stage.fate == "dropped"), None)
    if dropped is not None:
        return f"{tool_id} was dropped in stage '{dropped.stage}' by '{dropped.rule}'."
    if found.abstention.outcome not in ("menu", "widen"):
        return f"{tool_id} was not shown: nothing fitted well enough ({found.abstention.outcome})."
    return f"{tool_id} was not shown: the menu was full of tools that ranked above it."

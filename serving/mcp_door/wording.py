"""Wording: what the door says to an agent and to the person who is asked, from what the service found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import mcp_types as types

from data.cards import Risk, ToolCard
from data.invisible import escaped
from serving.disclosure import render, shown_id
from serving.gate.arguments import Problem
from serving.gate.gate import NOT_AVAILABLE, UNKNOWN_SLICE, CheckResult
from serving.mcp_door.menus import Place
from serving.mcp_door.results import answer
from serving.search_tool import SEARCH_TOOLS_ID
from serving.slice import Slice

_EFFECT = {Risk.READ_ONLY: "only reads", Risk.WRITE: "writes", Risk.DESTRUCTIVE: "can destroy"}
_SEARCH = "find tools with search_tools, and call one of those that it gives"
_WAITS = "once it is approved, use call_tool with this tool, menu and ticket and exactly the same arguments"
_ASKED_CHARACTERS = 4_000


def menu_text(found: Slice, turn: Sequence[ToolCard], at_hand: Sequence[str]) -> str:
    """A menu for the model: its id, the tools of this turn, those it has by name, and advice where nothing fits."""
    lines = [f"menu: {found.slice_id}"]
    if turn:
        lines.append(render((), turn, "selection", "text").turn)
    if at_hand:
        lines.append(f"at hand by name: {', '.join(at_hand)}")
    if found.abstention.advice:
        lines.append(found.abstention.advice)
    elif not turn and not at_hand:
        lines.append("no tool fits")
    return "\n".join(lines)


def tool_text(card: ToolCard) -> str:
    """One tool in full."""
    return render((), (card,), "invocation", "text").turn


def refused(result: CheckResult, place: Place) -> types.CallToolResult:
    """What the gate said, where the call was not made."""
    hint = result.hint
    if result.rule in (UNKNOWN_SLICE, NOT_AVAILABLE):
        hint = _SEARCH
    elif result.verdict == "confirm":
        hint = _WAITS
    structured: dict[str, Any] = {"verdict": result.verdict, "message": result.message, "hint": hint}
    lines = [f"not called: {result.message}"]
    if result.errors:
        structured["errors"] = _as_json(result.errors)
        lines += [f"  {problem.path}: {problem.message}" + _in_brackets(problem.hint) for problem in result.errors]
    available = [tool_id for tool_id in result.available if tool_id != SEARCH_TOOLS_ID]
    if available:
        structured["available"] = available
        lines.append(f"available: {', '.join(available)}")
    if result.ticket is not None and result.expires is not None:
        until = result.expires.isoformat(timespec="seconds")
        structured |= {"tool": place.tool_id, "menu": place.slice_id, "ticket": result.ticket, "expires": until}
        lines += [f"tool: {place.tool_id}", f"menu: {place.slice_id}", f"ticket: {result.ticket} (until {until})"]
    lines.append(hint)
    return answer("\n".join(line for line in lines if line), error=True, structured=structured)


def bad_arguments(errors: Sequence[Problem]) -> types.CallToolResult:
    """The arguments of one of the door's own tools do not meet its schema."""
    lines = [f"  {problem.path}: {problem.message}" + _in_brackets(problem.hint) for problem in errors]
    return answer(
        "\n".join(["the arguments cannot be used:", *lines]), error=True, structured={"errors": _as_json(errors)}
    )


def question(card: ToolCard, arguments: Any, rehearsed: str) -> str:
    """What a person is asked: the tool, its effect and its arguments, with hidden characters written out.

    `rehearsed` is what a dry run of the call answered.
    """
    said = escaped(json.dumps(arguments, ensure_ascii=False, indent=2))
    lines = [f"Run {escaped(shown_id(card))}? It {_EFFECT[card.risk]}.", _cut(said)]
    if rehearsed:
        lines.append(f"A dry run of it answered:\n{_cut(escaped(rehearsed))}")
    return "\n".join(lines)


def _cut(text: str) -> str:
    left = len(text) - _ASKED_CHARACTERS
    return text if left <= 0 else f"{text[:_ASKED_CHARACTERS]}\n[... {left:,} more characters]"


def _as_json(errors: Sequence[Problem]) -> list[dict[str, str]]:
    return [{"path": one.path, "code": one.code, "message": one.message, "hint": one.hint} for one in errors]


def _in_brackets(hint: str) -> str:
    return f" ({hint})" if hint else ""

"""The door's own tools: what an agent sees of it, the same few definitions in the same bytes from turn to turn."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types

from data.cards import Risk, ToolCard, Trust
from serving.disclosure import render
from serving.search_tool import SEARCH_TOOLS

_TOOL = {"type": "string", "minLength": 1, "maxLength": 512, "description": "the tool's id, as search_tools gave it"}
_TOKEN = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[A-Za-z0-9_-]+$"}
_MENU = {
    **_TOKEN,
    "description": "the menu that showed the tool; leave it out for the latest one",
}


def _own(name: str, summary: str, risk: Risk, properties: dict[str, Any], required: list[str]) -> ToolCard:
    return ToolCard(
        tool_id=f"toolcrib.{name}",
        name=name,
        domain="toolcrib",
        description=summary,
        risk=risk,
        trust=Trust.TRUSTED,
        input_schema={
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
    )


DESCRIBE_TOOL = _own(
    "describe_tool",
    "Returns a found tool in full, with the JSON schema of its arguments. Ask before a tool's first call.",
    Risk.READ_ONLY,
    {"tool": _TOOL, "menu": _MENU},
    ["tool"],
)

CALL_TOOL = _own(
    "call_tool",
    "Calls a tool that search_tools found. A call may have to wait for a person; then the answer says how to go on.",
    Risk.DESTRUCTIVE,
    {
        "tool": _TOOL,
        "arguments": {"type": "object", "description": "the tool's arguments, by its own schema"},
        "menu": _MENU,
        "ticket": {
            **_TOKEN,
            "description": "what an earlier answer gave for exactly this call, once a person has approved it",
        },
    },
    ["tool", "arguments"],
)

READ_RESULT = _own(
    "read_result",
    "Returns a part of a result that was too long to be given whole, by the handle in its last line.",
    Risk.READ_ONLY,
    {
        "handle": {**_TOKEN, "description": "the handle"},
        "start": {"type": "integer", "minimum": 0, "maximum": 10**9, "description": "the first character, from 0"},
        "length": {"type": "integer", "minimum": 1, "maximum": 100_000, "description": "how many characters"},
    },
    ["handle"],
)

OWN_TOOLS: dict[str, ToolCard] = {card.name: card for card in (SEARCH_TOOLS, DESCRIBE_TOOL, CALL_TOOL, READ_RESULT)}
"""By name, in the order in which they are listed."""

INSTRUCTIONS = (
    "Tools are found here rather than listed. For each step: search_tools with what the step should achieve, "
    "describe_tool where the arguments are not clear, call_tool with one that was found."
)


def definition(card: ToolCard, name: str) -> types.Tool:
    """A card as the protocol's tool of this name."""
    found = json.loads(render((), (card,), "invocation", "mcp").turn)[0]
    return types.Tool.model_validate({**found, "name": name})

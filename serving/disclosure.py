"""Disclosure: how much of a tool is shown, and in which form, as a stable prefix and what belongs to this turn.

Three levels: a *discovery* line (what is there), *selection* detail (which one to choose), and the whole of it for an
*invocation*. Four formats: plain text, and the JSON that MCP, OpenAI (Chat Completions) and Anthropic (Messages) take.
The prefix is always rendered for invocation: a prefix that changed with the level would not be one.

Nothing of a card that a person would not see reaches the model: invisible characters are taken out of every string.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from data.card_text import shorten
from data.cards import Risk, ToolCard
from data.invisible import invisible_characters
from data.wire_names import wire_name

Level = Literal["discovery", "selection", "invocation"]
Format = Literal["text", "mcp", "openai", "anthropic"]

_LINE_CHARACTERS = 120
_SELECTION_CHARACTERS = 500
_DESCRIPTION_CHARACTERS = 1024  # what OpenAI takes for a function
_MAX_DEPTH = 32

_EFFECT = {Risk.READ_ONLY: "reads only", Risk.WRITE: "writes", Risk.DESTRUCTIVE: "can destroy"}
_PLAIN_ASCII = re.compile(r"[\t\n\r\x20-\x7e]*")
_TOKENLIKE = re.compile(r"[A-Za-z]+|[0-9]+|[^\x00-\x7f]|[^\sA-Za-z0-9]+", re.ASCII)


class Rendered(NamedTuple):
    """`prefix`: the same bytes for the same tools, to be cached; `turn`: what this turn adds."""

    prefix: str
    turn: str


def visible(text: str) -> str:
    """The text without what a person would not see: zero-width, bidi, tag and control characters."""
    if _PLAIN_ASCII.fullmatch(text):
        return text
    hidden = "".join(invisible_characters(text))
    return text.translate(str.maketrans("", "", hidden)) if hidden else text


def discovery_line(card: ToolCard) -> str:
    """One line: the id and what the tool does, at most about 120 characters of it."""
    said = shorten(visible(card.summary or card.description), _LINE_CHARACTERS)
    return f"{shown_id(card)}: {said}" if said else shown_id(card)


def selection_text(card: ToolCard) -> str:
    """What it takes to choose: what the tool does, its effect, its parameters, when to use it and when not to."""
    said = shorten(visible(" ".join(part for part in (card.summary, card.description) if part)), _SELECTION_CHARACTERS)
    lines = [f"{shown_id(card)} ({_EFFECT[card.risk]}): {said}".removesuffix(": ")]
    required = _required(card)
    parameters = [
        f"{_folded(name)}{'' if name in required else '?'}{_type_note(schema)}"
        for name, schema in _properties(card).items()
    ]
    lines.extend(
        f"  {label}: {text}"
        for label, text in (
            ("parameters", ", ".join(parameters)),
            ("for", "; ".join(map(_folded, card.examples))),
            ("not for", "; ".join(map(_folded, card.not_for))),
        )
        if text
    )
    return "\n".join(lines)


def invocation_schema(card: ToolCard) -> dict[str, Any]:
    """The JSON schema of the arguments, in full, as an object schema and without invisible text."""
    schema: dict[str, Any] = _visible_json(card.input_schema, _MAX_DEPTH)
    schema.pop("$schema", None)
    return {**schema, "type": "object", "properties": schema.get("properties") or {}}


def shown_id(card: ToolCard) -> str:
    """The tool's id, or its wire name if the id holds white space or anything a person would not see."""
    is_plain = visible(card.tool_id) == card.tool_id and not re.search(r"\s", card.tool_id)
    return card.tool_id if is_plain else wire_name(card.tool_id)


def render(cards_prefix: Sequence[ToolCard], cards_turn: Sequence[ToolCard], level: Level, format: Format) -> Rendered:
    """The two parts, each in the order given: core tools then the session's for the prefix, this turn's tools apart.

    - `text`: blocks of lines.
    - `mcp`, `openai`: two JSON arrays of tools, to be concatenated in this order.
    - `anthropic`: the prefix is a JSON array for `tools`, its last tool the cache breakpoint. The turn is an object:
      `tools`, definitions with `defer_loading` to append to the request's `tools` (they stay out of the cached
      prefix), and `content`, the `tool_reference` blocks to answer the search tool with, which make them callable.
      The API wants one tool that is not deferred: the search tool itself, where the prefix is empty.
    """
    if format == "text":
        return Rendered(_text(cards_prefix, "invocation"), _text(cards_turn, level))
    prefix = [_tool_json(card, "invocation", format) for card in cards_prefix]
    turn = [_tool_json(card, level, format) for card in cards_turn]
    if format != "anthropic":
        return Rendered(_json(prefix), _json(turn))
    if prefix:
        prefix[-1]["cache_control"] = {"type": "ephemeral"}
    deferred = [{**tool, "defer_loading": True} for tool in turn]
    references = [{"type": "tool_reference", "tool_name": tool["name"]} for tool in turn]
    return Rendered(_json(prefix), _json({"tools": deferred, "content": references}))


def token_count(card: ToolCard, level: Level, counter: Callable[[str], int]) -> int:
    """What one card costs at a level, by `counter` (a model's tokenizer, or `approximate_tokens`)."""
    return counter(_text([card], level))


def approximate_tokens(text: str) -> int:
    """Tokens of a text where no tokenizer is at hand: on the high side, so that a budget is kept rather than broken.

    A run of letters costs one token per 6, digits one per 3, punctuation one per 2, anything beyond ASCII one each.
    """
    total = 0
    for piece in _TOKENLIKE.findall(text):
        per_token = 6 if piece.isalpha() else 3 if piece.isdigit() else 2
        total += math.ceil(len(piece) / per_token)
    return total


def _text(cards: Sequence[ToolCard], level: Level) -> str:
    if level == "discovery":
        return "\n".join(map(discovery_line, cards))
    if level == "selection":
        return "\n".join(map(selection_text, cards))
    return "\n".join(f"{selection_text(card)}\n  schema: {_json(invocation_schema(card))}" for card in cards)


def _tool_json(card: ToolCard, level: Level, format: Format) -> dict[str, Any]:
    name, description, schema = wire_name(card.tool_id), _description(card, level), _schema_at(card, level)
    if format == "mcp":
        hints = {"readOnlyHint": card.risk is Risk.READ_ONLY, "destructiveHint": card.risk is Risk.DESTRUCTIVE}
        return {"name": name, "description": description, "inputSchema": schema, "annotations": hints}
    if format == "openai":
        return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}
    return {"name": name, "description": description, "input_schema": schema}


def _description(card: ToolCard, level: Level) -> str:
    if level == "discovery":
        return shorten(visible(card.summary or card.description), _LINE_CHARACTERS)
    said = " ".join(part for part in (card.summary, card.description) if part)
    if card.not_for:
        said += f" Not for: {'; '.join(card.not_for)}."
    limit = _SELECTION_CHARACTERS if level == "selection" else _DESCRIPTION_CHARACTERS
    return shorten(visible(said), limit)


def _schema_at(card: ToolCard, level: Level) -> dict[str, Any]:
    if level == "invocation":
        return invocation_schema(card)
    if level == "discovery":
        return {"type": "object", "properties": {}}
    kept = {visible(name): _only_type(schema) for name, schema in _properties(card).items()}
    required = [visible(name) for name in _properties(card) if name in _required(card)]
    return {"type": "object", "properties": kept, "required": required}


def _properties(card: ToolCard) -> dict[str, Any]:
    properties = card.input_schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _required(card: ToolCard) -> set[str]:
    required = card.input_schema.get("required")
    return {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()


def _only_type(schema: object) -> dict[str, Any]:
    kind = schema.get("type") if isinstance(schema, dict) else None
    return {"type": _visible_json(kind, _MAX_DEPTH)} if kind else {}


def _type_note(schema: object) -> str:
    kind = _only_type(schema).get("type")
    return f" ({'|'.join(map(str, kind)) if isinstance(kind, list) else kind})" if kind else ""


def _folded(text: str) -> str:
    """One line, so that a card cannot write a line that reads as another tool's."""
    return " ".join(visible(text).split())


def _visible_json(value: Any, depth: int) -> Any:
    """A JSON value with all its strings and keys made visible; what is nested deeper than `depth` is left out."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        clean: dict[str, Any] = {}
        for key, item in value.items() if depth else ():
            clean.setdefault(visible(str(key)), _visible_json(item, depth - 1))
        return clean
    if isinstance(value, list | tuple):
        return [_visible_json(item, depth - 1) for item in value] if depth else []
    return value


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

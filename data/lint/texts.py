"""The texts of a card that can reach a model, each with its field, and how a finding about one is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from data.cards import ToolCard
from data.findings import RULES, Finding
from data.invisible import escaped

PROSE = frozenset({"summary", "description", "server_description", "title", "examples", "not_for"})
"""Fields, or keys of a schema, whose text is sentences."""

_MAX_SHOWN = 120


def model_texts(card: ToolCard) -> Iterator[tuple[str, str]]:
    """(field, text) of all that can reach a model or a search of a card: words, examples, the schema's texts."""
    for name in ("tool_id", "name", "domain", "server_description", "summary", "description"):
        yield name, getattr(card, name)
    for name in ("capabilities", "entities", "input_concepts", "aliases", "examples", "not_for", "prefer_over"):
        for text in getattr(card, name):
            yield name, text
    yield from _schema_texts(card.input_schema, "input_schema")


def finding(rule: str, card: ToolCard | None, field: str, message: str) -> Finding:
    """A finding about a card, or the catalog; its texts are folded and escaped: none passes for another line."""
    shown = {"tool_id": card.tool_id if card else "", "field": field, "message": message}
    safe = {name: " ".join(escaped(text).split()) for name, text in shown.items()}
    return Finding(rule=rule, severity=RULES[rule].severity, **safe)


def cut(text: str) -> str:
    """A text as a message quotes it."""
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def said(card: ToolCard) -> str:
    """Summary and description, white space folded; once where the one repeats the other."""
    summary, description = (" ".join(text.split()) for text in (card.summary, card.description))
    return description if description.startswith(summary) else f"{summary} {description}".rstrip()


def share_callers(one: ToolCard, other: ToolCard) -> bool:
    """Whether some caller may see both: tools of two tenants never stand on one menu."""
    return not one.tenants or not other.tenants or not set(one.tenants).isdisjoint(other.tenants)


def _schema_texts(value: Any, field: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield field, key
            yield from _schema_texts(inner, f"{field}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _schema_texts(inner, field)

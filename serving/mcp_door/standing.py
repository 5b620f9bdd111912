"""Standing: what a server offers now beside what was approved, tool by tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from data.cards import ToolCard, Trust

_WORDS = {"description": "its description", "input_schema": "its schema", "risk": "what it says it may do"}


def changed_fields(approved: ToolCard, live: ToolCard) -> tuple[str, ...]:
    """What of a tool is not as it was approved: its description, its schema, or, if it is more now, its risk.

    Titles do not count: what is shown is the approved card's. Of a third party no claim about risk counts either.
    """
    fields = [name for name in ("description", "input_schema") if getattr(approved, name) != getattr(live, name)]
    if approved.name != live.name:
        fields.insert(0, "name")
    if live.trust is Trust.TRUSTED and live.risk > approved.risk:
        fields.append("risk")
    return tuple(fields)


@dataclass(frozen=True)
class Standing:
    """A server's tools by what may happen with them. Only `good` ones are shown and called.

    `changed`: approved, and not any more as they were, with the fields; `fresh`: never approved; `gone`: approved, and
    not offered any more.
    """

    good: frozenset[str] = frozenset()
    changed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fresh: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()


def standing(approved: Mapping[str, ToolCard], live: Mapping[str, ToolCard]) -> Standing:
    """Compare one server's approved cards with what it lists, both by tool id."""
    changed = {
        tool_id: fields
        for tool_id, card in approved.items()
        if tool_id in live and (fields := changed_fields(card, live[tool_id]))
    }
    return Standing(
        good=frozenset(tool_id for tool_id in approved if tool_id in live and tool_id not in changed),
        changed=changed,
        fresh=frozenset(live.keys() - approved.keys()),
        gone=frozenset(approved.keys() - live.keys()),
    )


def in_words(fields: tuple[str, ...]) -> str:
    """The changed fields, for a log line."""
    return " and ".join(_WORDS.get(name, f"its {name}") for name in fields)

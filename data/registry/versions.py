"""Versions of a tool: events in their order, and the state that the last one of each version left it in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from data.cards import ToolCard
from data.catalog import card_json, content_hash


class State(StrEnum):
    """What a version of a card is: only an approved one is shown, indexed or embedded."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    RETIRED = "retired"


class Cause(StrEnum):
    """Why a version changed its state. `withdrawn`: its source no longer offers it, and it still waited; `gone`: and it
    was shown; `returned`: it went while it was shown, and came back as it was."""

    IMPORTED = "imported"
    PERSON = "person"
    RULE = "rule"
    REPLACED = "replaced"
    WITHDRAWN = "withdrawn"
    GONE = "gone"
    RETURNED = "returned"


@dataclass(frozen=True)
class Event:
    """One line of the registry, never changed: version `content` of a tool came into `state` at `ts` by `who`.

    `seq` counts from 1 and orders all events; `source` is where the version came from; `note` is the person's or the
    rule's reason.
    """

    seq: int
    ts: datetime
    tool_id: str
    content: str
    state: State
    cause: Cause
    who: str
    source: str
    note: str = ""


@dataclass
class ToolVersions:
    """What the events of one tool come to. `states` is by content, oldest first; at most one of them is approved."""

    tool_id: str
    source: str
    states: dict[str, Event] = field(default_factory=dict)
    first_approved: int | None = None
    """The event that puts the tool at its place in the catalog: a tool that returns stands where it stood."""

    @property
    def approved(self) -> str | None:
        """The content that is shown now."""
        return next((content for content, last in self.states.items() if last.state is State.APPROVED), None)

    @property
    def pending(self) -> list[str]:
        """The contents that wait, oldest first."""
        return [content for content, last in self.states.items() if last.state is State.PENDING]


def content_of(card: ToolCard) -> str:
    """The content hash of a card: over every field, its description and its schema among them; 64 hex digits."""
    return content_hash([card_json(card)])


def folded(events: Iterable[Event], onto: dict[str, ToolVersions] | None = None) -> dict[str, ToolVersions]:
    """Every tool's versions, by tool id, from events in their order; `onto` what earlier events came to, if given."""
    tools: dict[str, ToolVersions] = {} if onto is None else onto
    for event in events:
        tool = tools.setdefault(event.tool_id, ToolVersions(event.tool_id, event.source))
        tool.source = event.source
        tool.states[event.content] = event
        if event.state is State.APPROVED and tool.first_approved is None:
            tool.first_approved = event.seq
    return tools

"""Rows of the registry: events and cards as the database keeps them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from data.cards import ToolCard
from data.registry.versions import Cause, Event, State, content_of
from data.store.tables import card_events, cards

_CHUNK = 500


def read_events(
    connection: sa.Connection, *, tool_id: str | None = None, since: int | None = None, until: int | None = None
) -> list[Event]:
    """Events in their order: of one tool or all, from the event `since` on and up to the event `until`."""
    asked = sa.select(card_events).order_by(card_events.c.seq)
    if tool_id is not None:
        asked = asked.where(card_events.c.tool_id == tool_id)
    if since is not None:
        asked = asked.where(card_events.c.seq >= since)
    if until is not None:
        asked = asked.where(card_events.c.seq <= until)
    return [
        Event(
            seq=row.seq,
            ts=row.ts,
            tool_id=row.tool_id,
            content=row.content,
            state=State(row.state),
            cause=Cause(row.cause),
            who=row.who,
            source=row.source,
            note=row.note,
        )
        for row in connection.execute(asked)
    ]


def read_cards(connection: sa.Connection, contents: Sequence[str]) -> dict[str, ToolCard]:
    """The cards of these contents, as far as they are stored, in the order of `contents`."""
    found: dict[str, ToolCard] = {}
    for start in range(0, len(contents), _CHUNK):
        asked = sa.select(cards).where(cards.c.content.in_(contents[start : start + _CHUNK]))
        for row in connection.execute(asked):
            found[row.content] = ToolCard.model_validate_json(zlib.decompress(row.body))
    return {content: found[content] for content in contents if content in found}


def add_rows(connection: sa.Connection, offered: Iterable[ToolCard], events: Sequence[Event]) -> None:
    """Add the versions that are new, and the events."""
    added = {event.content for event in events}
    bodies = {content: card for card in offered if (content := content_of(card)) in added}
    known = set(_known(connection, list(bodies)))
    rows = [
        {"content": content, "tool_id": card.tool_id, "body": zlib.compress(_as_written(card).encode())}
        for content, card in bodies.items()
        if content not in known
    ]
    if rows:
        connection.execute(sa.insert(cards), rows)
    if events:
        connection.execute(
            sa.insert(card_events),
            [
                {
                    "ts": event.ts,
                    "tool_id": event.tool_id,
                    "content": event.content,
                    "state": event.state.value,
                    "cause": event.cause.value,
                    "who": event.who,
                    "source": event.source,
                    "note": event.note,
                }
                for event in events
            ],
        )


def _known(connection: sa.Connection, contents: Sequence[str]) -> Iterable[str]:
    for start in range(0, len(contents), _CHUNK):
        asked = sa.select(cards.c.content).where(cards.c.content.in_(contents[start : start + _CHUNK]))
        yield from connection.scalars(asked)


def _as_written(card: ToolCard) -> str:
    """JSON in the order in which the source has it: a model reads the parameters in that order, and so do the encoders.
    Unlike the content hash, which is over sorted keys: another order is no other content."""
    return json.dumps(card.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":"))

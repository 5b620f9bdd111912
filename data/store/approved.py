"""Approved: what a registry has approved at this moment, kept up to date by reading only what has happened since."""

from __future__ import annotations

import logging
import os
from datetime import UTC, datetime

import sqlalchemy as sa

from data.cards import ToolCard
from data.catalog import Catalog, content_hash
from data.errors import InputError
from data.registry.versions import Event, ToolVersions, folded
from data.store.database import Database
from data.store.registry_rows import read_cards, read_events
from data.store.tables import card_events, catalog_versions

_LOG = logging.getLogger("toolcrib.registry")

_Last = tuple[int, datetime, str, str]
"""The newest event: its number, time, tool and version; so that another registry in the same place is noticed."""


class Approved:
    """The approved cards of the registry in `database`, for one thread at a time.

    A card that is not approved is never read, let alone handed out.
    """

    binding = True

    def __init__(self, database: Database) -> None:
        self._database = database
        self._file = _identity(database)
        self._last: _Last | None = None
        self._tools: dict[str, ToolVersions] = {}
        self._cards: dict[str, ToolCard] = {}
        self._catalog = Catalog(())
        self._digest = ""

    def look(self) -> str:
        """A digest of what is approved. One row is read where nothing has happened.

        Raises InputError for a SQLite file that is gone, and what the driver raises for a database that does not
        answer.
        """
        self._follow_file()
        with self._database.engine.connect() as connection:
            newest = _newest(connection)
            if newest == self._last:
                return self._digest
            if self._last is not None:
                events = read_events(connection, since=self._last[0])
                if events and _named(events[0]) == self._last:
                    folded(events[1:], onto=self._tools)
                else:
                    _LOG.warning("the registry is another one or older than before; it is read again whole")
                    self._forget()
            if self._last is None:
                events = read_events(connection)
                folded(events, onto=self._tools)
            placed = sorted((tool.first_approved or 0, tool.approved or "") for tool in self._tools.values())
            order = [content for _, content in placed if content]
            missing = [content for content in order if content not in self._cards]
            found = self._cards | read_cards(connection, missing)
        self._cards = {content: found[content] for content in order if content in found}
        self._digest = content_hash(self._cards)
        if events:
            self._last = _named(events[-1])
        return self._digest

    def load(self) -> Catalog:
        """The approved cards as of the last look, in the order of first approval. The registry notes that this version
        of the catalog was handed out, and can give it again."""
        self._catalog = Catalog(self._cards.values(), self._catalog)
        if self._last is not None:
            try:
                with self._database.writing() as connection:
                    row = {"version": self._catalog.version, "seq": self._last[0], "ts": datetime.now(UTC)}
                    connection.execute(self._database.insert_new(catalog_versions), row)
            except sa.exc.SQLAlchemyError as error:  # what is approved must be followed by whoever may only read, too
                _LOG.warning("the registry could not note the version that is served: %s", type(error).__name__)
        return self._catalog

    def _forget(self) -> None:
        self._last, self._digest = None, ""
        self._tools, self._cards = {}, {}

    def _follow_file(self) -> None:
        """Open connections stay with a SQLite file that was replaced, and would never see the new one."""
        found = _identity(self._database)
        if found is None and self._database.file is not None:
            raise InputError("the registry's database is gone", source=str(self._database.file))
        if found != self._file:
            self._database.close()
            self._file = found


def _identity(database: Database) -> tuple[int, int] | None:
    try:
        stat = os.stat(database.file) if database.file is not None else None
    except OSError:
        return None
    return None if stat is None else (stat.st_dev, stat.st_ino)


def _named(event: Event) -> _Last:
    return event.seq, event.ts, event.tool_id, event.content


def _newest(connection: sa.Connection) -> _Last | None:
    table = card_events.c
    asked = sa.select(table.seq, table.ts, table.tool_id, table.content).order_by(table.seq.desc()).limit(1)
    row = connection.execute(asked).one_or_none()
    return None if row is None else (row.seq, row.ts, row.tool_id, row.content)

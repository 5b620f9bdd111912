"""Waiting: spans that came, kept until their trace is whole; then the traces that it makes, in place of earlier ones.

Nothing of it is in memory, so that the end of the process loses nothing and any replica can make any trace. A trace is
made again when more of it comes: what it made before is replaced, by the ids that are the trace's own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from data.store.database import Database
from data.store.ledger import Ledger
from data.store.privacy import TextRules
from data.store.records import Decision, OutcomeRecord
from data.store.rows import unpacked
from data.store.tables import decisions, outcomes, spans

_AT_ONCE = 1000
_NAMES_AT_ONCE = 50


class TraceKey(NamedTuple):
    """One trace of one sender; `principal` as it is kept."""

    tenant: str
    principal: str
    trace_id: str

    def digest(self, *more: str) -> bytes:
        """A hash of the trace, and of `more`."""
        said = "\n".join(f"{len(part)} {part}" for part in (*self, *more))
        return hashlib.sha256(said.encode()).digest()


class Held(NamedTuple):
    """How much of one trace is kept: spans, and bytes of their JSON."""

    spans: int = 0
    size: int = 0


@dataclass(frozen=True)
class Ripeness:
    """When a trace is made: `settle` after its last span once its root is there, `idle` after it without a root, and
    at the latest `age` after the first span that no trace was made of."""

    settle: timedelta
    idle: timedelta
    age: timedelta


class Gathered(NamedTuple):
    """The spans of a trace in the order in which they came, when the first did, and what the records are called that
    they make: as those that they made before, if they did (`again`)."""

    bodies: list[Any]
    first: datetime
    made_as: str
    again: bool

    def numbered(self, number: int) -> str:
        """The id of a record that the trace makes."""
        return f"{self.made_as}-{number}"


class Waiting:
    """Threads and replicas may share it. Every method raises SQLAlchemy's errors where the database fails."""

    def __init__(self, ledger: Ledger, text: TextRules) -> None:
        self._ledger, self._text = ledger, text
        self._database: Database = ledger.database

    def held(self, tenant: str, principal: str, trace_ids: Collection[str]) -> dict[str, Held]:
        """How much is kept of these traces of a sender; a trace of which nothing is kept is left out."""
        owned, ids = _of_sender(tenant, self._text.principal(principal)), list(trace_ids)
        found: dict[str, Held] = {}
        with self._database.engine.connect() as connection:
            for start in range(0, len(ids), _AT_ONCE):
                wanted = (
                    sa.select(spans.c.trace_id, sa.func.count(), sa.func.sum(spans.c.size))
                    .where(*owned, spans.c.trace_id.in_(ids[start : start + _AT_ONCE]))
                    .group_by(spans.c.trace_id)
                )
                found |= {trace_id: Held(count, int(size)) for trace_id, count, size in connection.execute(wanted)}
        return found

    def total(self, tenant: str, principal: str) -> int:
        """Bytes that are kept of a sender's spans."""
        wanted = sa.select(sa.func.sum(spans.c.size)).where(
            spans.c.made.in_((False, True)),  # all of them; said, so that the index is used and no body is read
            *_of_sender(tenant, self._text.principal(principal)),
        )
        with self._database.engine.connect() as connection:
            return int(connection.scalar(wanted) or 0)

    def waiting(self) -> int:
        """Spans that no trace was made of yet."""
        wanted = sa.select(sa.func.count()).select_from(spans).where(spans.c.made.is_(False))
        with self._database.engine.connect() as connection:
            return connection.scalar(wanted) or 0

    def ripe(self, now: datetime, when: Ripeness, limit: int = 100) -> list[TraceKey]:
        """Traces to be made now, those that have waited longest first."""
        first, last, has_root = (
            sa.func.min(spans.c.ts),
            sa.func.max(spans.c.ts),
            sa.func.max(sa.cast(spans.c.root, sa.Integer)),
        )
        wanted = (
            sa.select(spans.c.tenant, spans.c.principal, spans.c.trace_id)
            .where(spans.c.made.is_(False))
            .group_by(spans.c.tenant, spans.c.principal, spans.c.trace_id)
            .having(
                sa.or_(
                    sa.and_(has_root == 1, last <= now - when.settle), last <= now - when.idle, first <= now - when.age
                )
            )
            .order_by(first)
            .limit(limit)
        )
        with self._database.engine.connect() as connection:
            return [TraceKey(*row) for row in connection.execute(wanted)]

    def gathered(self, key: TraceKey) -> Gathered:
        """All that is kept of a trace. Raises StoreError for what was sealed under another salt."""
        wanted = sa.select(spans.c.body, spans.c.sealed, spans.c.ts, spans.c.made_as).where(*_of_trace(key))
        with self._database.engine.connect() as connection:
            rows = connection.execute(wanted.order_by(spans.c.ts, spans.c.span_id)).all()
        bodies = [unpacked(self._text.opened(row.body) if row.sealed else row.body) for row in rows]
        first = rows[0].ts if rows else datetime.max.replace(tzinfo=UTC)
        # by the first arrival too: spans that come when all others were let go must not replace what those made
        fresh = f"spans-{key.digest(first.isoformat()).hex()[:32]}"
        before = next((row.made_as for row in rows if row.made_as), None)
        return Gathered(bodies, first, before or fresh, before is not None)

    def settle(self, key: TraceKey, gathered: Gathered, records: Sequence[Decision | OutcomeRecord]) -> bool:
        """Keep what the gathered spans make, in place of what they made before, all or nothing.

        The records' ids are `gathered.numbered`, from 0. False, and nothing is changed, where more spans have come.
        """
        kept = [self._text.applied(one).model_copy(update={"principal": key.principal}) for one in records]
        with self._database.writing() as connection:
            self._lock(connection, key)
            there = sa.select(sa.func.count()).select_from(spans).where(*_of_trace(key))
            if connection.scalar(there) != len(gathered.bodies):
                return False
            if gathered.again:
                for table, name in ((decisions, decisions.c.slice_id), (outcomes, outcomes.c.key)):
                    _remove_numbered(connection, table, name, key, gathered)
            self._ledger.append_in(connection, kept)
            connection.execute(sa.update(spans).where(*_of_trace(key)).values(made=True, made_as=gathered.made_as))
        return True

    def give_up(self, key: TraceKey) -> None:
        """Make nothing more of the spans that a trace has now, and leave what it made before."""
        with self._database.writing() as connection:
            connection.execute(sa.update(spans).where(*_of_trace(key), spans.c.made.is_(False)).values(made=True))

    def let_go(self, before: datetime) -> int:
        """Remove the spans of traces that were made and of which nothing came since; gives how many spans."""
        newer = spans.alias()
        still = sa.exists().where(
            newer.c.tenant == spans.c.tenant,
            newer.c.principal == spans.c.principal,
            newer.c.trace_id == spans.c.trace_id,
            sa.or_(newer.c.made.is_(False), newer.c.ts >= before),
        )
        return self._database.remove(spans, spans.c.made, spans.c.ts < before, ~still)

    def _lock(self, connection: sa.Connection, key: TraceKey) -> None:
        """Two replicas do not make one trace at the same time."""
        if self._database.dialect == "postgresql":  # SQLite has one writer at a time anyhow
            lock = int.from_bytes(key.digest()[:8], "big", signed=True)
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": lock})


def _remove_numbered(
    connection: sa.Connection, table: sa.Table, name: sa.ColumnElement[str], key: TraceKey, gathered: Gathered
) -> None:
    """Remove the rows that `gathered.numbered` names, which are numbered without a gap."""
    owned = (table.c.tenant == key.tenant, table.c.principal == key.principal)
    start = 0
    while True:
        names = [gathered.numbered(number) for number in range(start, start + _NAMES_AT_ONCE)]
        if not connection.execute(sa.delete(table).where(*owned, name.in_(names))).rowcount:
            return
        start += _NAMES_AT_ONCE


def _of_sender(tenant: str, principal: str) -> tuple[sa.ColumnElement[bool], ...]:
    return spans.c.tenant == tenant, spans.c.principal == principal


def _of_trace(key: TraceKey) -> tuple[sa.ColumnElement[bool], ...]:
    return *_of_sender(key.tenant, key.principal), spans.c.trace_id == key.trace_id

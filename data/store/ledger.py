"""Ledger: decisions and their outcomes, appended, found again, and let go."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from data.store.database import Database
from data.store.pairing import trace_of
from data.store.records import Decision, Mask, OutcomeRecord, Record, SpanBatch
from data.store.rows import decision_of, decision_row, mask_row, outcome_row, span_rows, withheld_of
from data.store.sharing import put_together, taken_apart
from data.store.tables import decisions, masks, observations, outcomes, spans, tickets
from data.traces import Trace

_MASKS_LOCK = 0x746F6F6C6D61736B  # "toolmask" in ASCII
_AT_ONCE = 1000
"""Rows read or removed in one go: bounds the memory of a reader, and how long a writer waits for a remover."""


@dataclass(frozen=True)
class Unpaired:
    """What gives no trace: decisions without an outcome, outcomes without their decision, pairs without text, and spans
    that wait for the rest of theirs."""

    decisions: int
    outcomes: int
    hashed: int
    spans: int


class Ledger:
    """Threads may share it. Every method raises SQLAlchemy's errors where the database fails."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def append(self, records: Sequence[Record]) -> None:
        """Keep the records, all or none. One whose key is known already changes nothing: the first one stands.

        Raises ValueError for a record with a value that has no JSON form.
        """
        with self.database.writing() as connection:
            self.append_in(connection, records)

    def append_in(self, connection: sa.Connection, records: Sequence[Record]) -> None:
        """The same in a transaction that is open."""
        rows: dict[sa.Table, list[dict[str, Any]]] = {decisions: [], outcomes: [], spans: []}
        shared: dict[str, Mask] = {}
        for record in records:
            match record:
                case OutcomeRecord():
                    rows[outcomes].append(outcome_row(record))
                case SpanBatch():
                    rows[spans] += span_rows(record)
                case Mask():
                    shared.setdefault(record.digest, record)
                case Decision():
                    apart, mask = taken_apart(record)
                    rows[decisions].append(decision_row(apart))
                    if mask is not None:
                        shared.setdefault(mask.digest, mask)
        if shared:
            self._keep_masks(connection, shared)
        for table, found in rows.items():
            if found:
                # in one order everywhere: two replicas with the same keys would else wait for each other for ever
                keys = [column.name for column in table.primary_key]
                found.sort(key=lambda row, keys=keys: [row[key] for key in keys])  # type: ignore[misc]
                connection.execute(self.database.insert_new(table), found)

    def decision(self, slice_id: str) -> Decision | None:
        """The decision of this slice, its body whole; None for one that is not kept."""
        wanted = (
            sa.select(decisions, masks.c.body.label("withheld"))
            .outerjoin(masks, masks.c.digest == decisions.c.mask_digest)
            .where(decisions.c.slice_id == slice_id)
        )
        with self.database.engine.connect() as connection:
            row = connection.execute(wanted).mappings().first()
        if row is None:
            return None
        fields = dict(row)
        withheld = fields.pop("withheld")
        found = decision_of(fields)
        return found if withheld is None else put_together(found, withheld_of(withheld))

    def traces(
        self, since: datetime | None = None, until: datetime | None = None, tenant: str | None = None
    ) -> Iterator[Trace]:
        """Every call whose decision was made from `since` up to, not including, `until`; in order of decision and call.

        `tenant` None is all of them. An outcome counts for a decision of its own tenant and principal only. Left out,
        and counted by `unpaired`: decisions without an outcome, and those kept without their text. A dry run is no
        call.
        """
        wanted = (
            _paired(sa.select(decisions, *(column.label(f"outcome_{column.name}") for column in outcomes.c)))
            .where(*_within(decisions, since, until, tenant), decisions.c.hashed.is_(False))
            .order_by(decisions.c.ts, decisions.c.slice_id, outcomes.c.ts, outcomes.c.key)
        )
        with self.database.engine.connect() as connection:
            for row in connection.execution_options(yield_per=_AT_ONCE).execute(wanted).mappings():
                yield trace_of(dict(row))

    def unpaired(
        self, since: datetime | None = None, until: datetime | None = None, tenant: str | None = None
    ) -> Unpaired:
        """How much `traces` leaves out for the same arguments."""
        within = _within(decisions, since, until, tenant)
        answered = sa.exists().where(*_PAIR).correlate(decisions)
        decided = sa.exists().where(*_PAIR).correlate(outcomes)
        count = sa.select(sa.func.count())
        with self.database.engine.connect() as connection:
            return Unpaired(
                connection.scalar(count.select_from(decisions).where(*within, ~answered)) or 0,
                connection.scalar(
                    count.select_from(outcomes).where(
                        *_within(outcomes, since, until, tenant), outcomes.c.dry_run.is_(False), ~decided
                    )
                )
                or 0,
                connection.scalar(_paired(sa.select(sa.func.count())).where(*within, decisions.c.hashed)) or 0,
                connection.scalar(
                    count.select_from(spans).where(*_within(spans, since, until, tenant), spans.c.made.is_(False))
                )
                or 0,
            )

    def forget(self, principals: Collection[str], tenant: str | None = None) -> dict[str, int]:
        """Remove all that is kept of a person; gives the number of rows by table. `tenant` None is all of them.

        `principals` are the names that the person goes by: the plain one, and the hashed one where texts are hashed.
        """
        counts = {}
        with self.database.writing() as connection:
            if self.database.file is not None:
                connection.exec_driver_sql("PRAGMA secure_delete=ON")  # else the bytes stay in the file's free pages
            for table in (decisions, outcomes, tickets, observations, spans):
                theirs = [table.c.principal.in_(principals), *([] if tenant is None else [table.c.tenant == tenant])]
                counts[table.name] = connection.execute(sa.delete(table).where(*theirs)).rowcount
        if self.database.file is not None:
            with closing(self.database.engine.raw_connection()) as raw:  # the log still has the pages as they were
                raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return counts

    def expire(self, older_than: datetime, now: datetime | None = None) -> dict[str, int]:
        """Remove what is older, and observations past their own end; gives the number of rows by table.

        A little at a time, so that whoever writes meanwhile waits for little. A ticket that is still open stays.
        """
        now = now or datetime.now(UTC)
        gone = {
            decisions: [decisions.c.ts < older_than],
            outcomes: [outcomes.c.ts < older_than],
            spans: [spans.c.ts < older_than],
            tickets: [tickets.c.created < older_than, tickets.c.expires <= now],
            observations: [sa.or_(observations.c.created < older_than, observations.c.expires <= now)],
        }
        counts = {table.name: self.database.remove(table, *conditions) for table, conditions in gone.items()}
        with self.database.writing() as connection:
            self._lock_masks(connection, shared=False)
            used = sa.exists().where(decisions.c.mask_digest == masks.c.digest)
            counts[masks.name] = connection.execute(sa.delete(masks).where(~used)).rowcount
        return counts

    def _keep_masks(self, connection: sa.Connection, shared: dict[str, Mask]) -> None:
        self._lock_masks(connection, shared=True)
        known = set(connection.scalars(_KNOWN_MASKS, {"digests": list(shared)}))
        fresh = [mask_row(shared[digest]) for digest in sorted(shared.keys() - known)]
        if fresh:
            connection.execute(self.database.insert_new(masks), fresh)

    def _lock_masks(self, connection: sa.Connection, *, shared: bool) -> None:
        """No mask is removed between the look for it and the commit of the decision that needs it."""
        if self.database.dialect == "postgresql":  # SQLite has one writer at a time anyhow
            kind = "_shared" if shared else ""
            connection.execute(sa.text(f"SELECT pg_advisory_xact_lock{kind}(:lock)"), {"lock": _MASKS_LOCK})


_KNOWN_MASKS = sa.select(masks.c.digest).where(masks.c.digest.in_(sa.bindparam("digests", expanding=True)))

_PAIR = (
    outcomes.c.slice_id == decisions.c.slice_id,
    outcomes.c.tenant == decisions.c.tenant,
    outcomes.c.principal == decisions.c.principal,
    outcomes.c.dry_run.is_(False),
)


def _paired(query: sa.Select[Any]) -> sa.Select[Any]:
    return query.select_from(decisions.join(outcomes, sa.and_(*_PAIR)))


def _within(
    table: sa.Table, since: datetime | None, until: datetime | None, tenant: str | None
) -> list[sa.ColumnElement[bool]]:
    conditions = []
    if since is not None:
        conditions.append(table.c.ts >= since)
    if until is not None:
        conditions.append(table.c.ts < until)
    if tenant is not None:
        conditions.append(table.c.tenant == tenant)
    return conditions

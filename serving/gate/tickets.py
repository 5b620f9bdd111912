"""Tickets: one gate decision that waits, bound to the exact call, good for one use, for a limited time.

A `confirm` ticket waits for a person, a `dry_run` ticket for a dry run that goes well. The client holds a random token;
the database holds its hash, so that reading the table gives nobody a ticket. Time is given by the caller, never read.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

import sqlalchemy as sa

from data.store.database import Database
from data.store.tables import tickets

Kind = Literal["confirm", "dry_run"]
State = Literal["pending", "approved", "refused", "used"]
Refusal = Literal["unknown", "expired", "mismatch", "pending", "refused", "used"]

DEFAULT_TTL = timedelta(minutes=15)
_TOKEN_BYTES = 24


class Binding(NamedTuple):
    """The call that a ticket stands for. `arguments_hash` as by `arguments_hash`."""

    tenant: str
    principal: str
    tool_id: str
    arguments_hash: str
    slice_id: str


class Issued(NamedTuple):
    """The token, which only its holder knows, and when it ends."""

    token: str
    expires: datetime


@dataclass(frozen=True)
class Ticket:
    """A ticket as it stands, without its token."""

    kind: Kind
    state: State
    expires: datetime
    binding: Binding


class Tickets:
    """The tickets of one database. Threads, and processes on the same database, may share it.

    `ttl`: how long a ticket lives. Methods raise what SQLAlchemy raises when the database is out of reach.
    """

    def __init__(self, database: Database, ttl: timedelta = DEFAULT_TTL) -> None:
        self._database, self._ttl = database, ttl

    def issue(self, kind: Kind, binding: Binding, now: datetime) -> Issued:
        """A new ticket, pending."""
        with self._database.writing() as connection:
            return self._issue(connection, kind, binding, now)

    def find(self, token: str, tenant: str, principal: str, now: datetime) -> Ticket | None:
        """The ticket of this token, if it is this caller's and has not expired."""
        with self._database.engine.connect() as connection:
            found = _row(connection, token)
        if found is None or (found.binding.tenant, found.binding.principal) != (tenant, principal):
            return None
        return found if found.expires > now else None

    def decide(
        self, token: str, *, approve: bool, tenant: str, by: str, now: datetime, note: str = ""
    ) -> Ticket | None:
        """A person's word on a `confirm` ticket of their tenant; `by` is their principal.

        Gives the decided ticket; None if there is none that waits: unknown, another tenant's, expired, decided already.
        Whether this person may decide is the service's to know.
        """
        state: State = "approved" if approve else "refused"
        return self._decide(token, "confirm", state, now, tickets.c.tenant == tenant, by=by, note=note)

    def dry_run_done(self, token: str, ok: bool, *, tenant: str, principal: str, now: datetime) -> Ticket | None:
        """What became of the dry run that a `dry_run` ticket waits for; None if no such ticket of this caller waits."""
        state: State = "approved" if ok else "refused"
        owned = sa.and_(tickets.c.tenant == tenant, tickets.c.principal == principal)
        return self._decide(token, "dry_run", state, now, owned, by=principal, note="")

    def use(self, token: str, kind: Kind, binding: Binding, now: datetime) -> Refusal | None:
        """Use an approved ticket up for exactly this call; None when that went well, else why not.

        Of two uses at once exactly one goes well. A use that is refused changes nothing.
        """
        with self._database.writing() as connection:
            return self._use(connection, token, kind, binding, now)

    def exchange(self, token: str, binding: Binding, now: datetime) -> Issued | Refusal:
        """Use an approved `dry_run` ticket up for a new `confirm` ticket on the same call, both or neither."""
        with self._database.writing() as connection:
            refusal = self._use(connection, token, "dry_run", binding, now)
            return refusal if refusal is not None else self._issue(connection, "confirm", binding, now)

    def _issue(self, connection: sa.Connection, kind: Kind, binding: Binding, now: datetime) -> Issued:
        token, expires = secrets.token_urlsafe(_TOKEN_BYTES), now + self._ttl
        row = {"ticket": _hashed(token), "created": now, "expires": expires, "kind": kind, "state": "pending"}
        connection.execute(sa.insert(tickets).values(**row, **binding._asdict()))
        return Issued(token, expires)

    def _decide(
        self, token: str, kind: Kind, state: State, now: datetime, owned: sa.ColumnElement[bool], *, by: str, note: str
    ) -> Ticket | None:
        change = (
            sa.update(tickets)
            .where(tickets.c.ticket == _hashed(token), tickets.c.kind == kind, tickets.c.state == "pending")
            .where(tickets.c.expires > now, owned)
            .values(state=state, decided_by=by, decided_at=now, note=_storable(note))
        )
        with self._database.writing() as connection:
            return _row(connection, token) if connection.execute(change).rowcount == 1 else None

    def _use(
        self, connection: sa.Connection, token: str, kind: Kind, binding: Binding, now: datetime
    ) -> Refusal | None:
        # one statement decides: whoever comes second, in whatever process, finds no approved row any more
        same_call = [tickets.c[name] == value for name, value in binding._asdict().items()]
        change = (
            sa.update(tickets)
            .where(tickets.c.ticket == _hashed(token), tickets.c.kind == kind, tickets.c.state == "approved")
            .where(tickets.c.expires > now, *same_call)
            .values(state="used", used_at=now)
        )
        if connection.execute(change).rowcount == 1:
            return None
        return _refusal(_row(connection, token), kind, binding, now)


def _refusal(found: Ticket | None, kind: Kind, binding: Binding, now: datetime) -> Refusal:
    """Why a ticket was not used. Somebody else's looks like one that never was."""
    if found is None or (found.binding.tenant, found.binding.principal) != (binding.tenant, binding.principal):
        return "unknown"
    if found.expires <= now:
        return "expired"
    if found.binding != binding or found.kind != kind:
        return "mismatch"
    # approved and all else fits: it was not approved yet a moment ago, when the use looked
    return "pending" if found.state == "approved" else found.state


def _row(connection: sa.Connection, token: str) -> Ticket | None:
    row = connection.execute(sa.select(tickets).where(tickets.c.ticket == _hashed(token))).mappings().first()
    if row is None:
        return None
    return Ticket(row["kind"], row["state"], row["expires"], Binding(*(row[name] for name in Binding._fields)))


def _storable(note: str) -> str:
    """What every database takes: no half of a surrogate pair, and no NUL."""
    return note.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()

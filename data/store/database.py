"""Database: a SQLAlchemy engine on SQLite or PostgreSQL, its tables brought up to date when it is opened."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.pool import ConnectionPoolEntry

from data.errors import InputError
from data.store.errors import StoreError
from data.store.migrating import upgrade

Durability = Literal["process", "power"]

_IMMEDIATE = "toolcrib_immediate"
_BUSY_S = 5.0
_CONNECT_S = 3
_UNANSWERED_MS = 10_000
_AT_ONCE = 1000


@dataclass(frozen=True)
class Database:
    """An open database. Threads may share it. `name` is its URL without the password."""

    engine: sa.Engine
    name: str
    file: Path | None
    """The file of a SQLite database."""

    @property
    def dialect(self) -> Literal["sqlite", "postgresql"]:
        """Which of the two it is."""
        return "sqlite" if self.file is not None else "postgresql"

    def insert_new(self, table: sa.Table) -> sa.Insert:
        """An INSERT that passes over a row whose primary key is there already: the first one wins."""
        if self.file is not None:
            return sqlite.insert(table).on_conflict_do_nothing()
        return postgresql.insert(table).on_conflict_do_nothing()

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that reads and then writes. On SQLite it is the only writer from its first statement on:
        a transaction that begins as a reader may be refused, without any wait, when it comes to write."""
        with self.engine.connect().execution_options(**{_IMMEDIATE: True}) as connection, connection.begin():
            yield connection

    def remove(self, table: sa.Table, *conditions: sa.ColumnElement[bool]) -> int:
        """Remove the rows that fit, some at a time, so that nobody waits long for the table; gives how many."""
        keys = list(table.primary_key)
        some = sa.select(*keys).where(*conditions).limit(_AT_ONCE)
        total = 0
        while True:
            with self.writing() as connection:
                removed = connection.execute(sa.delete(table).where(sa.tuple_(*keys).in_(some))).rowcount
            total += removed
            if removed < _AT_ONCE:
                return total

    def close(self) -> None:
        """Close the connections that are not in use; those in use close when they are given back."""
        self.engine.dispose()


def open_database(url: str | Path, *, durability: Durability = "process", make: bool = True) -> Database:
    """Open a database and bring its tables to this version; a SQLite file is made where there is none, if `make`.

    `url`: a path, `sqlite:///PATH`, or `postgresql://USER:PASSWORD@HOST/NAME`. What is committed survives the end of
    the process by any means; with `durability="power"` SQLite waits for the disk at each commit, so that it survives
    the end of the machine too. (PostgreSQL does as its server is configured.)

    Raises InputError for a URL of another kind and for a file that is not there, and StoreError for a database that
    cannot be opened or is newer.
    """
    where = _url(url)
    name = where.render_as_string(hide_password=True)
    if not make and where.get_backend_name() == "sqlite" and not Path(str(where.database)).exists():
        raise InputError("there is no database here", source=str(where.database), hint=_FORMS)
    try:
        engine = _sqlite(where, durability) if where.get_backend_name() == "sqlite" else _postgres(where)
        database = Database(engine, name, Path(str(where.database)) if engine.dialect.name == "sqlite" else None)
        with database.writing() as connection:
            upgrade(connection)
    except sa.exc.SQLAlchemyError as error:
        cause = error.orig if isinstance(error, sa.exc.DBAPIError) and error.orig is not None else error
        raise StoreError(f"{name}: cannot be opened: {' '.join(str(cause).split())}") from error
    except OSError as error:
        raise StoreError(f"{name}: cannot be opened: {error.strerror or error}") from error
    return database


def _url(given: str | Path) -> sa.URL:
    text = str(given)
    if "://" not in text:
        return sa.URL.create("sqlite", database=os.path.abspath(text))
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise InputError("cannot be read as a URL", field="database", hint=_FORMS) from error
    if url.drivername == "sqlite" and url.database and url.database != ":memory:" and not url.query:
        return url.set(database=os.path.abspath(url.database))
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg") and url.database:
        return url.set(drivername="postgresql+psycopg")
    raise InputError(f"not a database that can be used: {url.render_as_string()}", field="database", hint=_FORMS)


_FORMS = "give a path, sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME"


def _sqlite(url: sa.URL, durability: Durability) -> sa.Engine:
    path = Path(str(url.database))
    path.parent.mkdir(parents=True, exist_ok=True)
    # what users wrote is for the owner's eyes; the log beside it takes its mode from this file
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    engine = sa.create_engine(url, connect_args={"timeout": _BUSY_S}, hide_parameters=True)
    synchronous = "FULL" if durability == "power" else "NORMAL"

    @sa.event.listens_for(engine, "connect")
    def connected(connection: sqlite3.Connection, entry: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # the driver begins no transactions of its own; `begun` does
        for setting in ("journal_mode=WAL", f"synchronous={synchronous}"):
            connection.execute(f"PRAGMA {setting}")

    @sa.event.listens_for(engine, "begin")
    def begun(connection: sa.Connection) -> None:
        immediate = connection.get_execution_options().get(_IMMEDIATE, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _postgres(url: sa.URL) -> sa.Engine:
    # a server that does not answer is an error within seconds, and a connection that died is replaced when asked for
    limits: dict[str, Any] = {"connect_timeout": _CONNECT_S, "tcp_user_timeout": _UNANSWERED_MS}
    arguments = {name: value for name, value in limits.items() if name not in url.query}
    return sa.create_engine(url, connect_args=arguments, pool_pre_ping=True, pool_timeout=_BUSY_S, hide_parameters=True)

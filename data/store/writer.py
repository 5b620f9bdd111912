"""Writer: records come from many threads and are kept by one, many in a commit; where the database fails, in the spool.

What its future reports as kept is in the database or in the spool's file, and survives the end of the process. While
the database is away, records go to the spool and a second thread tries the database, ever more seldom; when it is
back, the spool is replayed into it, and only then do new records go there again, so that the first of two reports with
one key stays the first.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Condition, Event, Lock, Thread
from typing import Literal

import sqlalchemy as sa

from data.store.errors import QueueFullError, SpoolFullError, StoreError
from data.store.ledger import Ledger
from data.store.privacy import TextRules
from data.store.records import Record
from data.store.spool import Spool

_LOG = logging.getLogger("toolcrib.store")

Stored = Literal["database", "spool"]

CAPACITY = 10_000
_GROUP = 500
"""Records in one commit at most: bounds how long the first of them waits for the last."""


@dataclass(frozen=True)
class Counters:
    """Records since the start. `failed` were acknowledged by nobody; `refused` found the queue full."""

    database: int = 0
    spool: int = 0
    replayed: int = 0
    failed: int = 0
    refused: int = 0


@dataclass(frozen=True)
class Backoff:
    """Seconds between two attempts at a database that is away: `first`, then twice as long each time up to `last`."""

    first: float = 0.5
    last: float = 30.0


class TraceWriter:
    """Keeps records. Threads may share it. Stop it with `close`."""

    def __init__(
        self,
        ledger: Ledger,
        spool: Spool,
        *,
        capacity: int = CAPACITY,
        text: TextRules | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        """Start. What an earlier run left in the spool is replayed first."""
        self._ledger, self._spool, self._capacity = ledger, spool, capacity
        self._text, self._backoff = text or TextRules(), backoff or Backoff()
        self._waiting: deque[tuple[Record, Future[Stored]]] = deque()
        self._changed = Condition()
        self._writing = 0
        self._closed = False
        self._route = (
            Lock()
        )  # held while a group is kept, so that the spool is not left between a look at it and a write
        self._spooling = spool.size > 0
        self._ended, self._fell = Event(), Event()
        self._counts = {"database": 0, "spool": 0, "replayed": 0, "failed": 0, "refused": 0}
        if self._spooling:
            self._fell.set()
        first_wait = 0.0 if self._spooling else self._backoff.first
        self._threads = [
            Thread(target=self._write_all, name="toolcrib-traces", daemon=True),
            Thread(target=self._recover_all, args=(first_wait,), name="toolcrib-replay", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def depth(self) -> int:
        """Records that are submitted and not kept yet."""
        return len(self._waiting) + self._writing

    @property
    def state(self) -> Literal["ok", "degraded"]:
        """`degraded`: the spool stands in for the database, or is not replayed to its end."""
        return "degraded" if self._spooling else "ok"

    @property
    def counters(self) -> Counters:
        """The counts at this moment."""
        return Counters(**self._counts)

    def submit(self, record: Record) -> Future[Stored]:
        """Have a record kept. The future tells where it is, once it is, or has the StoreError that it could not be.

        Raises QueueFullError when `capacity` records wait, and StoreError after `close`.
        """
        future: Future[Stored] = Future()
        future.set_running_or_notify_cancel()  # a record on its way is not called back
        with self._changed:
            if self._closed:
                raise StoreError("the trace store is closed")
            if len(self._waiting) >= self._capacity:
                self._counts["refused"] += 1
                raise QueueFullError(f"{self._capacity} records wait to be stored already; try again in a moment")
            self._waiting.append((record, future))
            self._changed.notify_all()
        return future

    def drain(self, timeout: float) -> bool:
        """Wait until nothing waits; False when `timeout` seconds were not enough."""
        with self._changed:
            return self._changed.wait_for(lambda: self.depth == 0, timeout)

    def recover(self) -> int:
        """Replay the spool now; gives the number of records. Raises SQLAlchemy's error while the database is away."""
        replay = self._spool.replay
        total = replay(self._replay) + replay(self._replay)
        with self._route:  # what came during the second replay is little; nobody adds to it now
            total += replay(self._replay)
            self._spooling = False
        return total

    def close(self, timeout: float = 10.0) -> bool:
        """Take nothing more, keep what waits, and stop; False when `timeout` seconds were not enough.

        The ledger's database and the spool stay open.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._ended.set()
        self._fell.set()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                group = [self._waiting.popleft() for _ in range(min(_GROUP, len(self._waiting)))]
                self._writing = len(group)
            if not group:
                return
            try:
                self._keep(group)
            finally:
                with self._changed:
                    self._writing = 0
                    self._changed.notify_all()

    def _keep(self, group: Sequence[tuple[Record, Future[Stored]]]) -> None:
        """Keep a group and tell its futures; whatever happens, each of them is told."""
        where: Stored = "database"
        try:
            records = [record for record, _ in group]
            with self._route:
                problems = self._in_database(records) if not self._spooling else None
                if problems is None:
                    where, problems = "spool", self._each(self._in_spool, records)
        except Exception as error:  # one group's misfortune must not be the end of all that come after it
            _LOG.exception("records could not be stored")
            problems = [error] * len(group)
        for (_, future), problem in zip(group, problems, strict=True):
            self._counts["failed" if problem is not None else where] += 1
            if problem is None:
                future.set_result(where)
            else:
                future.set_exception(_unkept(problem))

    def _in_database(self, records: Sequence[Record]) -> list[Exception | None] | None:
        """What was wrong with each record; None if the database is away: it is not asked again until it is back."""
        try:
            return self._each(lambda some: self._ledger.append([self._text.applied(one) for one in some]), records)
        except sa.exc.SQLAlchemyError as error:
            _LOG.error("the database fails, the spool stands in: %s", _short(error))
            self._spooling = True
            self._fell.set()
            return None

    def _in_spool(self, records: Sequence[Record]) -> None:
        self._spool.append([self._text.applied(one) for one in records])

    def _each(self, keep: Callable[[Sequence[Record]], None], records: Sequence[Record]) -> list[Exception | None]:
        """What is wrong with each record: one that cannot be kept must not take the others with it.

        Raises SQLAlchemy's error for a database that fails whatever the record is.
        """
        try:
            keep(records)
        except _UNFIT as error:
            if len(records) == 1:
                return [error]
            return [problem for record in records for problem in self._each(keep, [record])]
        except SpoolFullError as error:
            return [error] * len(records)
        return [None] * len(records)

    def _replay(self, records: Sequence[Record]) -> None:
        for record, problem in zip(records, self._each(self._ledger.append, records), strict=True):
            if problem is not None:
                _LOG.error("a spooled %s is lost, the database refuses it: %s", type(record).__name__, _short(problem))
            else:
                self._counts["replayed"] += 1

    def _recover_all(self, delay: float) -> None:
        while not self._ended.is_set():
            self._fell.wait()
            self._fell.clear()
            while self._spooling and not self._ended.wait(delay):
                try:
                    _LOG.info("the database is back; %d records came from the spool", self.recover())
                except Exception as error:  # the thread has to go on trying, whatever stands in its way
                    _LOG.warning("the database is still away: %s", _short(error))
                    delay = min(max(2 * delay, self._backoff.first), self._backoff.last)
            delay = self._backoff.first


_UNFIT = (sa.exc.DataError, sa.exc.IntegrityError, ValueError, TypeError, OverflowError)
"""Errors that are about a record and not about the database."""


def _unkept(problem: Exception) -> StoreError:
    if isinstance(problem, StoreError):
        return problem
    error = StoreError(f"the record could not be stored: {_short(problem)}")
    error.__cause__ = problem
    return error


def _short(error: Exception) -> str:
    """The first line of the driver's own words: what follows may quote values."""
    cause = error.orig if isinstance(error, sa.exc.StatementError) and error.orig is not None else error
    return f"{type(cause).__name__}: {str(cause).partition(chr(10))[0]}"

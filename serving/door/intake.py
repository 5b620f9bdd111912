"""Intake: spans that agents stream in, kept before they are acknowledged, and made into traces once theirs is whole.

What is acknowledged stands in the database or its spool. Who sent a span says the caller's credential, never the span.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

import sqlalchemy as sa

from data.catalog import Catalog
from data.context import Caller
from data.errors import InputError
from data.logs.account import Account
from data.logs.json_stream import Record
from data.logs.names import Mapped, Names, load_mapping
from data.logs.otel import raw_spans, trace_decisions
from data.logs.outcomes import Judge
from data.logs.tally import Tally
from data.logs.to_traces import Maker
from data.store.errors import StoreError
from data.store.records import Decision, OutcomeRecord, SpanBatch, SpanRow
from data.store.waiting import Gathered, Held, Ripeness, TraceKey, Waiting
from data.store.writer import TraceWriter
from serving.door.errors import STORE_UNAVAILABLE, TOO_MANY_SPANS, DoorError
from serving.door.metrics import Metrics
from serving.door.settings import OtlpSettings
from serving.door.streamed import records_of, row_of

_LOG = logging.getLogger("toolcrib.door")

NO_IDS = "spans whose trace id or span id is none"
TOO_DEEP = "spans whose attributes are nested too deeply"
TRACE_FULL = "spans beyond the bound of one trace"
_TRACE_ID, _SPAN_ID = re.compile(r"(?!0+$)[0-9a-f]{32}"), re.compile(r"(?!0+$)[0-9a-f]{16}")
_LOOK_S = 1.0
_LET_GO_LOOKS = 60
_AGAIN_S = 5
_SENDER_AGAIN_S = 60
_UNFIT = (sa.exc.DataError, sa.exc.IntegrityError)
"""The database's errors that are about what it is given."""
_TOLD_NAMES = 100
"""So many names that the catalog lacks are logged, each once."""


@dataclass(frozen=True)
class Taken:
    """What became of the spans of one request. `rejected` counts by reason; sending those again is no use."""

    accepted: int
    rejected: Counter[str] = field(default_factory=Counter)


class Intake:
    """Threads may share it. Raises InputError for a mapping or rules that cannot be used.

    `unmade`: spans that no trace was made of, when it was last looked; `inside`: requests that are being kept.
    """

    def __init__(
        self,
        settings: OtlpSettings,
        waiting: Waiting,
        writer: TraceWriter,
        catalog: Callable[[], Catalog],
        metrics: Metrics,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.settings = settings
        self._waiting, self._writer, self._catalog = waiting, writer, catalog
        self._metrics, self._clock = metrics, clock
        self._judge = Judge(Path(settings.rules) if settings.rules is not None else None)
        self._names = self._names_of(catalog())
        self._told: set[str] = set()
        self._making = Lock()
        self._when = Ripeness(
            *(timedelta(seconds=s) for s in (settings.settle_seconds, settings.idle_seconds, settings.age_seconds))
        )
        self.unmade = self.inside = 0

    @contextmanager
    def one_inside(self) -> Iterator[None]:
        """Count one request while it is read and kept; on the event loop alone."""
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    # Spans in

    async def take(self, who: Caller, document: dict[str, Any]) -> Taken:
        """Keep the spans of one OTLP document; each is in the database or in the spool when this returns.

        Raises DoorError 429 while too much of the sender's is kept, 503 where nothing can be kept: send all of it
        again, what is known already changes nothing.
        """
        loop = asyncio.get_running_loop()
        rows, rejected = await loop.run_in_executor(None, self._rows, who, document)
        if rows:
            batch = SpanBatch(tenant=who.tenant, principal=who.principal, ts=self._clock(), spans=tuple(rows))
            try:
                await asyncio.wrap_future(self._writer.submit(batch))
            except (StoreError, OSError) as error:
                raise DoorError(
                    503,
                    STORE_UNAVAILABLE,
                    "the spans cannot be kept at the moment",
                    hint="send the same request again later",
                    headers={"Retry-After": str(_AGAIN_S)},
                ) from error
        self._metrics.spans(accepted=len(rows), rejected=rejected.total())
        return Taken(len(rows), rejected)

    def _rows(self, who: Caller, document: dict[str, Any]) -> tuple[list[SpanRow], Counter[str]]:
        account, rejected = Account(), Counter[str]()
        found: list[SpanRow] = []
        for raw in raw_spans([Record(document, "a request")], account):
            if not (_TRACE_ID.fullmatch(raw["trace_id"]) and _SPAN_ID.fullmatch(raw["span_id"])):
                rejected[NO_IDS] += 1
                continue
            try:
                found.append(row_of(raw, redact=self.settings.redact))
            except RecursionError:
                rejected[TOO_DEEP] += 1
        rejected.update(account.skipped)
        held = self._held(who, {row.trace_id for row in found})
        kept = []
        for row in found:
            spans, size = held.get(row.trace_id, Held())
            if spans >= self.settings.trace_spans or size + row.size > self.settings.trace_bytes:
                rejected[TRACE_FULL] += 1
                continue
            held[row.trace_id] = Held(spans + 1, size + row.size)
            kept.append(row)
        return kept, rejected

    def _held(self, who: Caller, trace_ids: set[str]) -> dict[str, Held]:
        """How much is kept already; nothing is known of it while the database is away, and the spool has its bound."""
        try:
            if self._waiting.total(who.tenant, who.principal) > self.settings.waiting_bytes:
                raise DoorError(
                    429,
                    TOO_MANY_SPANS,
                    "too much of this sender's spans is kept already",
                    hint=f"try again in {_SENDER_AGAIN_S} s; end traces sooner, or raise otlp.waiting_bytes",
                    headers={"Retry-After": str(_SENDER_AGAIN_S)},
                )
            return self._waiting.held(who.tenant, who.principal, trace_ids)
        except sa.exc.SQLAlchemyError:
            return {}

    # Traces out

    async def run(self) -> None:
        """Make what is due again and again, and let go of what was made, until cancelled."""
        loop = asyncio.get_running_loop()
        for look in count():
            try:
                await loop.run_in_executor(None, self.make)
                if look % _LET_GO_LOOKS == 0:
                    await loop.run_in_executor(None, self.let_go)
            except Exception as error:  # the task has to go on trying, whatever stands in its way
                _LOG.warning("streamed traces wait for the database: %s", type(error).__name__)
            await asyncio.sleep(_LOOK_S)

    def end(self) -> None:
        """Make all that can be made, at the end; what cannot is made after the next start."""
        try:
            self.make(everything=True)
        except (sa.exc.SQLAlchemyError, StoreError) as error:
            _LOG.warning("streamed traces wait for the next start: %s", type(error).__name__)

    def make(self, *, everything: bool = False) -> int:
        """Make the traces that are due, or all that can be made; gives how many. Raises SQLAlchemy's errors."""
        now, done = self._clock(), 0
        when = Ripeness(timedelta(), timedelta(), timedelta()) if everything else self._when
        with self._making:
            tried: set[TraceKey] = set()
            while keys := [key for key in self._waiting.ripe(now, when) if key not in tried]:
                tried.update(keys)
                done += sum(self._make(key) for key in keys)
            self.unmade = self._waiting.waiting()
        return done

    def let_go(self) -> int:
        """Remove spans whose traces were made long enough ago; gives how many."""
        return self._waiting.let_go(self._clock() - timedelta(seconds=self.settings.remember_seconds))

    def _make(self, key: TraceKey) -> bool:
        account = Account()
        try:
            gathered = self._waiting.gathered(key)
            records, calls = self._records(key, gathered, account)
            if not self._waiting.settle(key, gathered, records):
                return False
        except Exception as error:  # one trace's misfortune must not be the end of all that come after it
            if isinstance(error, sa.exc.SQLAlchemyError) and not isinstance(error, _UNFIT):
                raise  # it is the database's
            _LOG.exception("nothing could be made of the trace %s", key.trace_id)
            self._waiting.give_up(key)
            self._metrics.trace_failed()
            return False
        self._metrics.trace_made(calls, account.skipped)
        self._tell_names()
        return True

    def _records(
        self, key: TraceKey, gathered: Gathered, account: Account
    ) -> tuple[list[Decision | OutcomeRecord], int]:
        maker = Maker("otel", self._known_names(), self._judge, account, Tally(), self.settings.redact)
        lines = list(maker.traces(trace_decisions(gathered.bodies, account)))
        return list(records_of(key, lines, gathered)), len(lines)

    def _known_names(self) -> Names:
        """The names of the catalog of the moment; of the one before, where the mapping does not fit the new one."""
        catalog = self._catalog()
        if catalog.version != self._names.catalog.version:
            try:
                self._names = self._names_of(catalog)
            except InputError as error:
                _LOG.error("spans are read with the catalog before: %s", error)
        return self._names

    def _names_of(self, catalog: Catalog) -> Names:
        path = self.settings.mapping
        return Names(catalog, load_mapping(Path(path), catalog) if path is not None else Mapped())

    def _tell_names(self) -> None:
        names = self._names
        if len(self._told) >= _TOLD_NAMES:
            return
        for how, name in names.unresolved:
            if name not in self._told:
                self._told.add(name)
                which = f": {', '.join(names.candidates[name])}" if name in names.candidates else ""
                _LOG.warning("spans call '%s', a name that is %s%s", name, how, which)

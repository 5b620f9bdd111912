"""The service put together: settings, sources and store in, an application with its life around it out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fastapi import FastAPI

from data.catalog import Catalog
from data.errors import InputError
from data.store.database import open_database
from data.store.ledger import Ledger
from data.store.privacy import text_rules
from data.store.spool import Spool
from data.store.waiting import Waiting
from data.store.writer import TraceWriter
from serving.bundle import Bundle
from serving.door.app import create_app
from serving.door.identity import Authenticator
from serving.door.intake import Intake
from serving.door.metrics import Metrics
from serving.door.requests import Door
from serving.door.settings import ServiceSettings, TraceSettings
from serving.embedding_cache import EmbeddingCache
from serving.explore import Showings
from serving.following import BundleFolder, CatalogFile, Followed, Watch
from serving.gate.arguments import ArgumentChecker
from serving.gate.gate import Gate
from serving.gate.tickets import Tickets
from serving.policy import DEFAULT_POLICY
from serving.policy_file import PolicyFile
from serving.pool import Pool
from serving.remote_splitter import RemoteSplitter, Split
from serving.search_tool import with_search_tool
from serving.selector import Selector
from serving.service.observing import Observations
from serving.service.service import Service
from serving.service.slices import Slices
from serving.slice_cache import SliceCache
from serving.splitting import split
from serving.watch import Source

_LOG = logging.getLogger("toolcrib.door")

_POLL_S = 0.25
"""How often the bundle and the catalog are looked at: an approved change is found within a second."""
_RETENTION_S = 3600.0
_DRAIN_S = 20.0
_EVER = datetime(1, 1, 1, tzinfo=UTC)
"""Before anything that was kept."""


class Assembly:
    """Everything of one running service, opened in order and closed in the reverse order.

    Making one loads the bundle and the catalog, opens the store, and raises whatever is wrong with any of them.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        *,
        catalog: Path | Followed[Catalog],
        bundle: Source | None,
        authenticator: Authenticator,
        policy: Path | None = None,
    ) -> None:
        self._settings = settings
        self._policy = PolicyFile(policy) if policy is not None else None
        self._embeddings = EmbeddingCache(settings.cache.embeddings)
        cards = CatalogFile(catalog) if isinstance(catalog, Path) else catalog
        self.watch = Watch(cards, None if bundle is None else BundleFolder(bundle), self._build)
        self.database = open_database(_address(settings.traces))
        ledger, self.spool = Ledger(self.database), Spool(settings.traces.spool)
        self._closing = contextlib.ExitStack()
        self._closing.callback(self.database.close)
        self._closing.callback(self.spool.close)
        rules = text_rules(settings.traces.keep_text, self.database)
        self.writer = TraceWriter(ledger, self.spool, capacity=settings.traces.queue, text=rules)
        self.metrics = Metrics()
        self.pool = Pool(settings.pool.workers, settings.pool.queue, settings.pool.max_wait_ms)
        self.cache = SliceCache(settings.cache.slices)
        tickets = Tickets(self.database, timedelta(seconds=settings.confirmation.ttl_seconds))
        service = Service(
            self.watch.live,
            slices=Slices(ledger, rules),
            cache=self.cache,
            gate=Gate(tickets, ArgumentChecker()),
            tickets=tickets,
            observations=Observations(
                self.database,
                ttl=timedelta(seconds=settings.observations.ttl_seconds),
                cap_characters=settings.observations.cap_characters,
            ),
            writer=self.writer,
            observer=self.metrics,
            policy=self._policy,
            keep_vectors=not settings.traces.keep_text,
        )
        self.intake = self._intake(Waiting(ledger, rules)) if settings.otlp.enabled else None
        self.door = Door(
            service, authenticator, self.metrics, settings.limits, self.pool, self._splitter(), self.intake
        )
        self._ledger = ledger
        self._gauges()
        self._tasks: list[asyncio.Task[None]] = []

    def application(self) -> FastAPI:
        """The application; its life starts the watching and ends with everything drained and closed."""
        return create_app(self.door, started=self._start, stopped=self._stop)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The life around another door on the same service: watching inside, everything drained and closed after it."""
        await self._start()
        try:
            yield
        finally:
            await self._stop()

    def let_go(self) -> None:
        """Remove traces past their retention, and stored results past their end."""
        days = self._settings.traces.retention_days
        self._ledger.expire(_EVER if days is None else datetime.now(UTC) - timedelta(days=days))

    def count_showings(self) -> None:
        """Let the selector know what exploration has shown until now, by the traces that are kept, if it explores."""
        how = self._settings.selector
        if not any((how.explore_rate, *how.explore_rates.values())):
            return
        self.watch.live.set_showings(Showings.of(self._ledger.traces()))

    def _build(self, catalog: Catalog, bundle: Bundle | None, earlier: Selector | None) -> Selector:
        policy = self._policy.current if self._policy is not None else DEFAULT_POLICY
        how = self._settings.selector
        return Selector(bundle, with_search_tool(catalog), policy, how, self._embeddings, earlier)

    def _splitter(self) -> Callable[[str], Split]:
        chosen, at_most = self._settings.splitter, self._settings.limits.subgoals
        if chosen.kind == "none":
            return lambda text: Split((text,))
        if chosen.kind == "rules":
            return lambda text: Split(split(text, at_most))
        assert chosen.base_url is not None
        assert chosen.model is not None
        remote = RemoteSplitter(
            chosen.base_url, chosen.model, chosen.api_key_env or "", chosen.timeout_seconds, at_most
        )
        self._closing.callback(remote.close)
        return remote.split

    def _intake(self, waiting: Waiting) -> Intake:
        made = Intake(self._settings.otlp, waiting, self.writer, lambda: self.watch.live.current.catalog, self.metrics)
        self.metrics.gauge("spans_waiting", "Spans that no trace was made of, when last looked.", lambda: made.unmade)
        return made

    def _gauges(self) -> None:
        gauge, pool, writer, policy = self.metrics.gauge, self.pool, self.writer, self._policy
        cache, embeddings = self.cache, self._embeddings
        gauge("slice_cache_hit_ratio", "Hits / lookups of decisions since the start.", lambda: cache.hit_ratio)
        gauge("embedding_cache_hit_ratio", "Hits / lookups of vectors since the start.", lambda: embeddings.hit_ratio)
        gauge("pool_depth", "Decisions that wait or run.", lambda: pool.depth)
        gauge("pool_shed", "Requests refused for load since the start.", lambda: pool.figures().shed)
        gauge("store_queue_depth", "Records not kept yet.", lambda: writer.depth)
        gauge("store_degraded", "1 while the spool stands in for the database.", lambda: writer.state != "ok")
        gauge("policy_refused", "Policy files that were refused.", lambda: policy.refused if policy else 0)

    async def _start(self) -> None:
        self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._letting_go())]
        if self.intake is not None:
            self._tasks.append(asyncio.create_task(self.intake.run()))

    async def _stop(self) -> None:
        self.door.draining = True
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self.pool.drain, _DRAIN_S)
        await loop.run_in_executor(None, self.writer.close, _DRAIN_S)
        if self.intake is not None:
            await loop.run_in_executor(None, self.intake.end)
        self._closing.close()

    async def _follow(self) -> None:
        """Look at the sources again and again; what is new is loaded beside what serves."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_POLL_S)
            swap = await loop.run_in_executor(None, self.watch.poll)
            if swap is not None:
                self.metrics.swapped("selector", accepted=swap.accepted)

    async def _letting_go(self) -> None:
        """Let go of what has had its time and count what was explored, now and every hour."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                await loop.run_in_executor(None, self.let_go)
                await loop.run_in_executor(None, self.count_showings)
            except Exception:
                _LOG.exception("the store could not be tidied up and counted; tried again later")
            await asyncio.sleep(_RETENTION_S)


def _address(settings: TraceSettings) -> str:
    """Where the trace store is. Raises InputError where the variable that should say so says nothing."""
    if settings.database_env is None:
        return settings.database
    found = os.environ.get(settings.database_env, "")
    if not found:
        raise InputError(
            f"the environment has nothing in {settings.database_env}",
            field="traces.database_env",
            hint="set it to the address of the database: postgresql://USER:PASSWORD@HOST/NAME",
        )
    return found

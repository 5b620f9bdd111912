"""The service: every verb of the API as one call, with what it needs put together. Knows nothing of HTTP.

Menus come from the selector that serves at the moment, calls are judged by the grants, cards and policy of the moment,
and whatever happens is handed to the trace store. When the store is down, menus are still given, and say that they were
not recorded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from data.cards import ToolCard
from data.catalog import Catalog, content_hash
from data.context import Caller
from data.errors import ToolcribError
from data.store.errors import StoreError
from data.store.records import SHARED_STAGES, Decision, OutcomeRecord
from data.store.writer import Stored, TraceWriter
from serving.gate.gate import Call, CheckResult, Gate, Ground
from serving.gate.tickets import Tickets
from serving.live import Live
from serving.policy_file import PolicyFile
from serving.query import is_bare_reply
from serving.recovery import Refused, recover
from serving.selector import Selector, Versions
from serving.service.asking import Ask, Decided
from serving.service.errors import (
    NoRerankerError,
    NotShownError,
    RequestError,
    StoreUnavailableError,
    UnknownSliceError,
    UnknownTicketError,
)
from serving.service.explaining import Explanation, explain
from serving.service.learning import failed, learn, served
from serving.service.observer import Observer
from serving.service.observing import Kept, Observations, Range
from serving.service.reranking import Readers, Reranked, rerank
from serving.service.slices import Handed, Slices
from serving.several import select_several
from serving.slice import Slice
from serving.slice_cache import SliceCache, SliceKey, slice_key

_LOG = logging.getLogger("toolcrib.service")

KEPT_WITHIN_S = 0.25
"""A menu does not wait longer than this for the word that it has been recorded."""


class Service:
    """One running service. Threads may share it. `kept_within_s` bounds the wait for a menu's record."""

    def __init__(
        self,
        live: Live,
        *,
        slices: Slices,
        cache: SliceCache,
        gate: Gate,
        tickets: Tickets,
        observations: Observations,
        writer: TraceWriter,
        observer: Observer,
        policy: PolicyFile | None = None,
        keep_vectors: bool = False,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._live, self._slices, self._cache = live, slices, cache
        self._gate, self._tickets, self._observations = gate, tickets, observations
        self._writer, self._observer, self._policy, self._clock = writer, observer, policy, clock
        self._keep_vectors = keep_vectors
        self.kept_within_s = KEPT_WITHIN_S
        self._readers = Readers()

    @property
    def catalog(self) -> Catalog:
        """The catalog of the moment."""
        return self._live.current.catalog

    @property
    def versions(self) -> Versions:
        """What serves at the moment."""
        return self._live.current.versions

    @property
    def store_state(self) -> str:
        """How the trace store does: `ok`, or what stands in for it."""
        return self._writer.state

    # Menus

    def known(self, ask: Ask) -> Decided | None:
        """The answer to an ask, if it is in the cache: in microseconds, so it need not queue."""
        if ask.after is not None:
            return None
        found = self._cache.get(_key(self._selector(), ask), ask.request_id)
        return None if found is None else Decided(found, cached=True)

    def decide(self, ask: Ask) -> Decided:
        """Decide what to show. Raises InputError for what no menu can be made for, UnknownSliceError after a call of
        a slice that is not this caller's, RequestError after one whose step was not kept in words."""
        selector = self._selector()
        if ask.after is not None:
            handed = self._slices.of(ask.who, ask.after.slice_id, "$.after.slice_id")
            if handed.hashed:
                raise RequestError(
                    "what this slice was for is not kept in words",
                    path="$.after.slice_id",
                    hint="ask with the goal of the step instead of after",
                )
            failed = Refused(handed.found, ask.after.tool_id, ask.after.error_class)
            return Decided(recover(selector, failed, ask.who, request_id=ask.request_id), cached=False)
        key = _key(selector, ask)
        found = select_several(selector, ask.subgoals, ask.who, whole=ask.whole, request_id=ask.request_id)
        self._cache.put(key, found)
        return Decided(found, cached=False)

    async def kept(self, ask: Ask, decided: Decided) -> Decided:
        """Remember a decision and wait, for a moment, until it is stored; the decision, with whether it was."""
        found, recorded = decided.found, False
        if ask.degradations:
            found = found.model_copy(update={"degradations": (*ask.degradations, *found.degradations)}).sealed()
        self._slices.remember(found, ask.who)
        try:
            stored = asyncio.wrap_future(self._writer.submit(self._decision(ask, found)))
            stored.add_done_callback(_looked_at)
            await asyncio.wait_for(asyncio.shield(stored), self.kept_within_s)
            recorded = True
        except (TimeoutError, ToolcribError, OSError) as error:
            _LOG.warning("a decision was not recorded in time: %s", type(error).__name__)
        self._observer.decided(found, cached=decided.cached, recorded=recorded)
        return Decided(found, decided.cached, recorded)

    def describe(self, who: Caller, slice_id: str, tool_id: str) -> ToolCard:
        """The card of a tool that a slice showed and that its caller may still see.

        Raises UnknownSliceError and NotShownError.
        """
        selector, shown = self._selector(), self._slices.of(who, slice_id).found
        row = selector.catalog.row.get(tool_id)
        on_menu = any(entry.tool_id == tool_id and entry.verdict != "deny" for entry in shown.menu)
        if not on_menu or row is None or not selector.index.mask.apply(who, selector.unavailable).allowed[row]:
            raise NotShownError(
                "this menu offers no such tool now", path="$.tool_id", hint="choose from the menu, or ask for a new one"
            )
        return selector.catalog.cards[row]

    # Calls

    def check(self, who: Caller, slice_id: str, tool_id: str, arguments: Any, ticket: str | None) -> CheckResult:
        """The gate's verdict on one call, by what holds now. Raises StoreUnavailableError where a ticket is needed and
        cannot be had: no verdict, no call."""
        selector = self._selector()
        ground = Ground(selector.catalog, selector.index.mask, selector.policy, selector.unavailable)
        try:
            shown: Slice | None = self._slices.of(who, slice_id).found
        except UnknownSliceError:
            shown = None
        owner = None if shown is None else (who.principal, who.tenant)
        call = Call(tool_id, arguments, slice_id, ticket)
        with _store_needed("the call cannot be checked"):
            result = self._gate.check(call, shown, owner, who, ground, self._clock())
        self._observer.checked(result.verdict, result.rule)
        return result

    def confirm(self, who: Caller, ticket: str, approve: bool, by: str, note: str) -> tuple[str, datetime]:
        """A person's decision on a waiting call of their tenant: the tool, and when the approval ends.

        Raises UnknownTicketError for a ticket that does not wait.
        """
        with _store_needed("the decision cannot be kept"):
            decided = self._tickets.decide(
                ticket, approve=approve, tenant=who.tenant, by=by, now=self._clock(), note=note
            )
        if decided is None:
            raise UnknownTicketError(
                "no such ticket waits", path="$.ticket", hint="it may have been decided or have expired: check again"
            )
        self._observer.confirmed("approve" if approve else "refuse")
        return decided.binding.tool_id, decided.expires

    async def report(self, who: Caller, outcomes: Sequence[OutcomeRecord]) -> list[Stored]:
        """Keep what became of calls; each is on disk, in the database or in the spool, when this returns.

        A dry run's outcome settles its ticket. Raises StoreUnavailableError if one cannot be kept: report it again.
        """
        loop = asyncio.get_running_loop()
        for outcome in outcomes:
            if outcome.dry_run and outcome.ticket is not None:
                await loop.run_in_executor(None, self._settle, who, outcome)
        futures: list[Future[Stored]] = []
        try:
            futures.extend(self._writer.submit(outcome) for outcome in outcomes)
            stored = [await asyncio.wrap_future(future) for future in futures]
        except (ToolcribError, OSError) as error:
            raise StoreUnavailableError(
                "the outcomes cannot be kept at the moment", hint="send the same request again later: keys stay good"
            ) from error
        for outcome in outcomes:
            self._observer.reported(outcome.outcome, outcome.error_class)
            if served(outcome) or failed(outcome):
                await loop.run_in_executor(None, learn, self._live, self._slices, who, outcome)
        return stored

    def _settle(self, who: Caller, outcome: OutcomeRecord) -> None:
        assert outcome.ticket is not None
        ok = outcome.outcome == "success"
        with _store_needed("the dry run cannot be noted"):
            self._tickets.dry_run_done(
                outcome.ticket, ok, tenant=who.tenant, principal=who.principal, now=self._clock()
            )

    # Results

    def observe(
        self, who: Caller, content: object, *, slice_id: str, tool_id: str, media_type: str, cap_characters: int | None
    ) -> Kept:
        """Keep a tool's result whole and give its beginning. Raises UnknownSliceError and StoreUnavailableError."""
        self._slices.of(who, slice_id)
        with _store_needed("the result cannot be kept"):
            return self._observations.keep(
                who,
                content,
                slice_id=slice_id,
                tool_id=tool_id,
                media_type=media_type,
                cap_characters=cap_characters,
                now=self._clock(),
            )

    def observation(self, who: Caller, handle: str, start: int, length: int | None) -> Range:
        """A range of a kept result of this caller. Raises UnknownHandleError and StoreUnavailableError."""
        with _store_needed("the result cannot be read"):
            return self._observations.read(who, handle, start=start, length=length, now=self._clock())

    # Operators

    def recorded(self, slice_id: str, tenant: str | None) -> Handed:
        """A whole slice, for an operator of `tenant` (None: of all). Raises UnknownSliceError."""
        return self._slices.recorded(slice_id, tenant)

    def explain(self, slice_id: str, tool_id: str, tenant: str | None) -> tuple[Slice, Explanation]:
        """Why a tool was or was not on a recorded menu. Raises UnknownSliceError."""
        found = self._slices.recorded(slice_id, tenant).found
        named = {tool for record in found.record for tool in (*record.dropped, *record.scores)}
        known = tool_id in named or tool_id in self.catalog or any(entry.tool_id == tool_id for entry in found.menu)
        return found, explain(found, tool_id, known=known)

    # Rerank

    def rerank(self, query: str, documents: Sequence[str], top_n: int | None) -> list[Reranked]:
        """Documents by relevance. Raises NoRerankerError where the bundle has no cross-encoder, ModelFailedError where
        its scores cannot be used."""
        selector = self._selector()
        bundle = selector.bundle
        reader = None if bundle is None else self._readers.of(bundle, selector.settings.threads)
        if reader is None:
            raise NoRerankerError(
                "the served bundle has no cross-encoder", hint="train with `reranker: cross_encoder` in the recipe"
            )
        return rerank(reader, query, documents, top_n)

    def _decision(self, ask: Ask, found: Slice) -> Decision:
        """What is kept of a decision. A bare reply is kept as what it meant: "yes" alone teaches nobody anything."""
        said = found.subgoal.goal
        vector = self._live.current.vector(found.query) if self._keep_vectors else None
        return Decision(
            slice_id=found.slice_id,
            ts=self._clock(),
            tenant=ask.who.tenant,
            principal=ask.who.principal,
            trace_id=ask.trace_id,
            step=ask.step,
            request_id=found.request_id,
            catalog_version=found.catalog_version,
            bundle_version=found.bundle_version,
            policy_version=found.policy_version,
            request=ask.request,
            goal=found.query if is_bare_reply(said) else said,
            mutation=found.subgoal.mutation,
            embedding=None if vector is None else vector.tobytes(),
            mask_digest=_mask_digest(found),
            body=_body(found),
        )

    def _selector(self) -> Selector:
        """The selector of the moment, with the policy file as it is now."""
        current = self._live.current
        if self._policy is None:
            return current
        policy = self._policy.current
        if policy.version != current.policy.version:
            self._live.set_policy(policy)
            self._observer.swapped("policy", accepted=True)
        return self._live.current


@contextmanager
def _store_needed(problem: str) -> Iterator[None]:
    """Says that the store is out of reach, whatever the driver calls it."""
    try:
        yield
    except (sa.exc.SQLAlchemyError, StoreError) as error:
        raise StoreUnavailableError(f"{problem} at the moment", hint="try again later") from error


def _looked_at(stored: asyncio.Future[Stored]) -> None:
    """What becomes of a record after nobody waits for it any more is in the writer's counters."""
    if not stored.cancelled():
        stored.exception()


def _key(selector: Selector, ask: Ask) -> SliceKey:
    goals = ask.subgoals[0] if len(ask.subgoals) == 1 else ask.subgoals
    how = {} if ask.whole is None else {"whole": ask.whole.model_dump(mode="json")}
    return slice_key(selector, goals, ask.who, **how)


def _body(found: Slice) -> dict[str, Any]:
    """The slice as JSON. What its stages dropped may be ten thousand tools: shared with the slice, not copied."""
    record = [
        {"stage": stage.stage, "kept": stage.kept, "dropped": stage.dropped, "scores": stage.scores}
        for stage in found.record
    ]
    return {**found.model_dump(mode="json", exclude={"record"}), "record": record}


def _mask_digest(found: Slice) -> str:
    return content_hash([stage.digest for stage in found.record if stage.stage in SHARED_STAGES and stage.dropped])

"""Calls: a proposed call through the gate, past a person where one is needed, to its server, and into the traces."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

import anyio
import anyio.to_thread
import mcp_types as types

from data.cards import ToolCard
from data.invisible import escaped
from data.logs.outcomes import Judge
from data.store.records import OutcomeRecord
from data.traces import ErrorClass, Outcome
from serving.door.identity import Identity
from serving.gate.gate import CheckResult
from serving.mcp_door.credentials import Credentials
from serving.mcp_door.forwarding import Forwarded, forward
from serving.mcp_door.menus import Place
from serving.mcp_door.results import answer, capped, texts_of
from serving.mcp_door.upstream import Progress, UpstreamDownError
from serving.mcp_door.upstreams import Route, Upstreams
from serving.mcp_door.wording import question, refused
from serving.service.errors import ServiceError, StoreUnavailableError, UnknownTicketError
from serving.service.service import Service

_LOG = logging.getLogger("toolcrib.mcp")

_LAST_WORDS_S = 2.0
"""How long a cancelled call may take to leave its trace."""


@dataclass(frozen=True)
class Proposed:
    """A call that a model wants to make. `ticket`: what an earlier check of this very call gave."""

    place: Place
    arguments: Mapping[str, Any]
    ticket: str | None = None


Decision = Literal["approve", "refuse", "later"]
Ask = Callable[[str, Proposed], Awaitable[Decision]]
"""Asks a person the question about a call whose ticket waits."""


@dataclass(frozen=True)
class Client:
    """What the client that made a call can do: ask its user (None: not by this way, or they may not confirm), and show
    how far the call is."""

    ask: Ask | None = None
    progress: Progress | None = None


class Calls:
    """`cap` is the most characters of a result that a model is given at once."""

    def __init__(
        self, service: Service, upstreams: Upstreams, credentials: Credentials, *, judge: Judge, cap: int
    ) -> None:
        self._service, self._upstreams, self._credentials = service, upstreams, credentials
        self._judge, self._cap = judge, cap

    async def call(self, identity: Identity, proposed: Proposed, client: Client) -> types.CallToolResult:
        """Make the call if the gate allows it, and give its answer, or what the gate said.

        Raises ServiceError where the gate cannot be asked.
        """
        checked = await self._check(identity, proposed)
        rehearsed = ""
        if checked.verdict == "dry_run":
            checked, rehearsed = await self._rehearse(identity, proposed, checked)
        if checked.verdict == "confirm" and checked.ticket is not None and client.ask is not None:
            asked = replace(proposed, ticket=checked.ticket)
            card = self._service.catalog[proposed.place.tool_id]
            hidden = self._credentials.hidden_json(dict(proposed.arguments))
            decided = await client.ask(question(card, hidden, rehearsed), asked)
            if decided != "later":
                await self._decide(identity, asked, decided)
                checked = await self._check(identity, asked)
            if decided == "refuse":
                await self._trace(identity, asked, "failure", "auth")
        if checked.verdict != "allow":
            if checked.verdict == "invalid":
                await self._trace(identity, proposed, "failure", "validation")
            _LOG.info("call of '%s' by %s: %s", escaped(proposed.place.tool_id), identity.name, checked.verdict)
            return refused(checked, proposed.place)
        return await self._made(identity, proposed, client.progress)

    async def _check(self, identity: Identity, proposed: Proposed) -> CheckResult:
        place = proposed.place
        run = partial(
            self._service.check,
            identity.caller,
            place.slice_id,
            place.tool_id,
            dict(proposed.arguments),
            proposed.ticket,
        )
        return await anyio.to_thread.run_sync(run)

    async def _decide(self, identity: Identity, asked: Proposed, decided: Decision) -> None:
        assert asked.ticket is not None
        run = partial(
            self._service.confirm,
            identity.caller,
            asked.ticket,
            decided == "approve",
            identity.name,
            "asked by the client",
        )
        try:
            await anyio.to_thread.run_sync(run)
        except UnknownTicketError:
            _LOG.info("a ticket was decided or had expired while a person was asked")  # the next check says which

    async def _rehearse(self, identity: Identity, proposed: Proposed, checked: CheckResult) -> tuple[CheckResult, str]:
        """Run the call dry where its server can, note how it went, and ask the gate again."""
        route = self._route(proposed)
        if isinstance(route, str) or route.dry_run_argument is None or checked.ticket is None:
            return checked, ""
        ticketed = replace(proposed, ticket=checked.ticket)
        dry = await forward(route, {**proposed.arguments, route.dry_run_argument: True}, self._credentials, self._judge)
        await self._trace(identity, ticketed, dry.outcome, dry.error_class, dry.latency_ms, dry_run=True)
        return await self._check(identity, ticketed), texts_of(dry.result.content)

    async def _made(self, identity: Identity, proposed: Proposed, progress: Progress | None) -> types.CallToolResult:
        route = self._route(proposed)
        if isinstance(route, str):
            await self._trace(identity, proposed, "failure", "unavailable")
            return answer(f"not called: {route}", error=True)
        try:
            done = await forward(route, proposed.arguments, self._credentials, self._judge, progress)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_LAST_WORDS_S, shield=True):
                await self._trace(identity, proposed, "unknown", "none")
            raise
        await self._trace(identity, proposed, done.outcome, done.error_class, done.latency_ms)
        return await self._capped(identity, proposed, done)

    def _route(self, proposed: Proposed) -> Route | str:
        """Where the call goes; or why it cannot go there, for the approved card and the server as they are now."""
        card = self._card(proposed)
        try:
            return "the tool is not available any more" if card is None else self._upstreams.route(card)
        except UpstreamDownError as error:
            return f"{error}; try again later, or search for another tool"

    def _card(self, proposed: Proposed) -> ToolCard | None:
        catalog = self._service.catalog
        row = catalog.row.get(proposed.place.tool_id)
        return None if row is None else catalog.cards[row]

    async def _capped(self, identity: Identity, proposed: Proposed, done: Forwarded) -> types.CallToolResult:
        def keep(whole: str) -> str:
            place = proposed.place
            try:
                return self._service.observe(
                    identity.caller,
                    whole,
                    slice_id=place.slice_id,
                    tool_id=place.tool_id,
                    media_type="text/plain",
                    cap_characters=None,
                ).text
            except ServiceError:
                return f"{whole[: self._cap]}\n[... {len(whole) - self._cap} more characters, which could not be kept]"

        return await anyio.to_thread.run_sync(capped, done.result, self._cap, keep)

    async def _trace(
        self,
        identity: Identity,
        proposed: Proposed,
        outcome: Outcome,
        error_class: ErrorClass,
        latency_ms: float | None = None,
        dry_run: bool = False,
    ) -> None:
        """Keep what became of the call. A trace that cannot be kept is said in the log: the call has been made."""
        who, place, card = identity.caller, proposed.place, self._card(proposed)
        record = OutcomeRecord(
            tenant=who.tenant,
            principal=who.principal,
            key=uuid.uuid4().hex,
            ts=datetime.now(UTC),
            slice_id=place.slice_id,
            tool_id=place.tool_id,
            arguments=self._credentials.hidden_json(dict(proposed.arguments)),
            outcome=outcome,
            error_class=error_class,
            latency_ms=latency_ms,
            cost_usd=card.cost_usd if card is not None and latency_ms is not None else None,
            dry_run=dry_run,
            ticket=proposed.ticket,
        )
        _LOG.info(
            "call of '%s' by %s: %s, %s%s",
            escaped(place.tool_id),
            identity.name,
            outcome,
            error_class,
            "" if latency_ms is None else f", {latency_ms:.0f} ms",
        )
        try:
            await self._service.report(who, [record])
        except StoreUnavailableError as error:
            _LOG.warning("the outcome of a call was not kept: %s", error.message)

"""The door: its tools as calls, for one identity at a time. Knows nothing of transports."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio.to_thread
import mcp_types as types

from data.cards import ToolCard
from data.context import MAX_GOAL_CHARACTERS, Subgoal
from data.errors import InputError
from serving.door.identity import Identity
from serving.gate.arguments import ArgumentChecker
from serving.live import Live
from serving.mcp_door.calls import Calls, Client, Proposed
from serving.mcp_door.exposure import core_tools, exposed, names_at_hand
from serving.mcp_door.menus import Menus, Place
from serving.mcp_door.own_tools import CALL_TOOL, OWN_TOOLS
from serving.mcp_door.results import answer
from serving.mcp_door.wording import bad_arguments, menu_text, tool_text
from serving.pool import LateError, OverloadedError, Pool
from serving.search_tool import SEARCH_TOOLS_ID, search_subgoal
from serving.service.asking import Ask
from serving.service.errors import ServiceError
from serving.service.service import Service
from serving.slice import Slice


@dataclass(frozen=True)
class Waited:
    """A call that waited for a person: where its tool was shown, and its ticket."""

    place: Place
    ticket: str


class UnknownToolError(Exception):
    """No tool of this name is listed for the caller."""


class ToolDoor:
    """What stands behind the listed tools. Everything runs on one event loop."""

    def __init__(self, service: Service, live: Live, pool: Pool, calls: Calls) -> None:
        self._service, self._live, self._pool, self._calls = service, live, pool, calls
        self._menus, self._checker = Menus(), ArgumentChecker()

    def listed(self, identity: Identity) -> list[types.Tool]:
        """The tools that the caller has by name."""
        return exposed(self._live.current, identity.caller)

    async def answer(
        self, identity: Identity, name: str, arguments: Mapping[str, Any], client: Client, waited: Waited | None = None
    ) -> types.CallToolResult:
        """Answer a call of a listed tool. `waited`: it waited for a person, who has been asked now.

        Raises UnknownToolError for a name that is not listed for the caller; all else is an answer.
        """
        try:
            if name not in OWN_TOOLS:
                return await self._core(identity, name, arguments, client, waited)
            errors = self._checker.problems(OWN_TOOLS[name], dict(arguments))
            return bad_arguments(errors) if errors else await self._own(identity, name, arguments, client, waited)
        except (OverloadedError, LateError):
            return answer("there is more work than can be done in time; try again in a moment", error=True)
        except InputError as error:
            return answer(f"{error.field or 'the arguments'}: {error.problem}", error=True)
        except ServiceError as error:
            return answer(f"{error.message}; {error.hint}".removesuffix("; "), error=True)

    async def _own(
        self, identity: Identity, name: str, arguments: Mapping[str, Any], client: Client, waited: Waited | None
    ) -> types.CallToolResult:
        if name == CALL_TOOL.name:
            return await self._call(identity, arguments, client, waited)
        look = {"search_tools": self._search, "describe_tool": self._describe, "read_result": self._read}[name]
        return await look(identity, arguments)

    async def _call(
        self, identity: Identity, arguments: Mapping[str, Any], client: Client, waited: Waited | None
    ) -> types.CallToolResult:
        if waited is None:
            place = self._menus.place(identity.caller, arguments["tool"], arguments.get("menu"))
            if place.tool_id == SEARCH_TOOLS_ID:  # it is on every menu, and is this door's own
                return await self._search(identity, arguments["arguments"])
            proposed = Proposed(place, arguments["arguments"], arguments.get("ticket"))
        else:
            proposed = Proposed(waited.place, arguments["arguments"], waited.ticket)
        return await self._calls.call(identity, proposed, client)

    async def _search(self, identity: Identity, arguments: Mapping[str, Any]) -> types.CallToolResult:
        found = await self._decided(identity, search_subgoal(arguments))
        selector = self._live.current
        at_hand = core_tools(selector, identity.caller)
        named = frozenset(card.tool_id for card in at_hand.values()) | {card.tool_id for card in OWN_TOOLS.values()}
        shown = [
            entry.tool_id
            for entry in found.menu
            if entry.verdict != "deny"
            and entry.tool_id in selector.catalog
            and entry.tool_id not in selector.unavailable
        ]
        turn = [selector.catalog[tool_id] for tool_id in shown if tool_id not in named]
        return answer(menu_text(found, turn, names_at_hand(at_hand, frozenset(shown))))

    async def _describe(self, identity: Identity, arguments: Mapping[str, Any]) -> types.CallToolResult:
        place = self._menus.place(identity.caller, arguments["tool"], arguments.get("menu"))
        if not place.slice_id:
            return answer("no tool has been found yet; search for one with search_tools", error=True)
        card = await anyio.to_thread.run_sync(self._service.describe, identity.caller, place.slice_id, place.tool_id)
        return answer(tool_text(card))

    async def _read(self, identity: Identity, arguments: Mapping[str, Any]) -> types.CallToolResult:
        run = partial(
            self._service.observation,
            identity.caller,
            arguments["handle"],
            arguments.get("start", 0),
            arguments.get("length"),
        )
        part = await anyio.to_thread.run_sync(run)
        return answer(f"{part.text}\n[characters {part.start} to {part.end} of {part.size}]")

    async def _core(
        self, identity: Identity, name: str, arguments: Mapping[str, Any], client: Client, waited: Waited | None
    ) -> types.CallToolResult:
        """A core tool, called by its name: a decision of its own, for what the tool says that it does."""
        card = core_tools(self._live.current, identity.caller).get(name)
        if card is None:
            raise UnknownToolError(name)
        if waited is None:
            found = await self._decided(identity, Subgoal(goal=_purpose(card)))
            proposed = Proposed(Place(found.slice_id, card.tool_id), arguments)
        else:
            proposed = Proposed(waited.place, arguments, waited.ticket)
        return await self._calls.call(identity, proposed, client)

    async def _decided(self, identity: Identity, subgoal: Subgoal) -> Slice:
        asked = Ask(identity.caller, (subgoal,), uuid.uuid4().hex)
        made = self._service.known(asked)
        if made is None:
            made = await asyncio.wrap_future(self._pool.submit(partial(self._service.decide, asked)))
        decided = await self._service.kept(asked, made)
        self._menus.remember(identity.caller, decided.found)
        return decided.found


def _purpose(card: ToolCard) -> str:
    """The goal of a call that nobody searched for: nothing is known of it but the tool."""
    said = card.summary.strip() or card.description.strip() or card.name
    return said[:MAX_GOAL_CHARACTERS]

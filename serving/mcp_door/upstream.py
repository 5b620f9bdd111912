"""Upstream: one server behind the door, kept connected, its tools known as they are now."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Any

import anyio
import mcp_types as types
from mcp.client import Client
from mcp.client.session import IncomingMessage, MessageHandlerFnT
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError

from data.cards import ToolCard
from data.errors import InputError, ToolcribError
from data.importers.live import MAX_PAGES, MAX_TOOLS
from data.importers.mcp import listed_page, mcp_catalog
from data.invisible import escaped
from serving.mcp_door.settings import UpstreamSettings

_LOG = logging.getLogger("toolcrib.mcp")

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
_GRACE_S = 1.0
_SHOWN = 200

Connect = Callable[[MessageHandlerFnT], AbstractAsyncContextManager[Client]]
"""Opens a connection; what the server says of its own accord goes to the handler."""

Progress = Callable[[float, float | None], Awaitable[None]]
"""Told how much is done, and of how much, where that is known."""

_NOTHING: Mapping[str, ToolCard] = MappingProxyType({})


class UpstreamDownError(ToolcribError):
    """The server cannot be reached at the moment."""


class Upstream:
    """One server. `run` keeps it connected; everything else may be called from other tasks of the same loop.

    `tools` are its cards by tool id, as it lists them now, and empty while it is down. `changed` is called after every
    change of them. `hide` takes credentials out of a text; `pause` waits between attempts.
    """

    def __init__(
        self,
        name: str,
        settings: UpstreamSettings,
        connect: Connect,
        *,
        changed: Callable[[], None],
        hide: Callable[[str], str],
        check_seconds: float,
        pause: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.name, self.settings = name, settings
        self.tools: Mapping[str, ToolCard] = _NOTHING
        self._connect, self._changed, self._hide = connect, changed, hide
        self._check_seconds, self._pause = check_seconds, pause
        self._client: Client | None = None
        self._wake, self._asked, self._answered, self._settled = anyio.Event(), 0, 0, anyio.Event()
        self._checked = anyio.Event()
        self._problem = ""

    @property
    def up(self) -> bool:
        """Whether the server is connected and has listed its tools."""
        return self._client is not None

    async def settled(self) -> None:
        """Return once the first attempt has ended, in either way."""
        await self._settled.wait()

    async def check(self) -> None:
        """Have the server asked for its tools, and return once it has answered or is down."""
        self._asked += 1
        mine = self._asked
        self._wake.set()
        while self._answered < mine:
            await self._checked.wait()

    async def run(self) -> None:
        """Connect, follow, and connect again, with longer and longer pauses, for as long as this is not cancelled."""
        pause = FIRST_PAUSE_S
        while True:
            try:
                async with self._connect(self._heard) as client:
                    await self._list(client)
                    pause = FIRST_PAUSE_S
                    await self._follow(client)
            except Exception as error:  # whatever a foreign server makes the protocol's library raise
                self._lost(error)
            finally:
                self._down()
            await self._pause(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    async def call(
        self, tool: str, arguments: Mapping[str, Any], timeout_s: float, progress: Progress | None = None
    ) -> types.CallToolResult:
        """Call a tool by the server's own name of it; `progress` is told the figures of how far it is, and no text.

        Raises UpstreamDownError, TimeoutError, and what the protocol's library raises for an answer that is an error.
        """
        client = self._client
        if client is None:
            raise UpstreamDownError(f"the server '{self.name}' is not reachable at the moment")
        try:
            with anyio.fail_after(timeout_s):
                # the client's own patience is for its questions, not for calls
                patience = timeout_s + _GRACE_S
                return await client.call_tool(tool, dict(arguments), patience, _figures(progress))
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                self._wake.set()  # whoever follows the connection finds out, and connects again
                raise UpstreamDownError(f"the server '{self.name}' ended the connection") from error
            raise

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._wake.set()

    async def _follow(self, client: Client) -> None:
        """Ask for the tools whenever the server says that they changed, and every `check_seconds` whatever it says."""
        async with anyio.create_task_group() as listening:
            listening.start_soon(self._listen, client)
            while True:
                with anyio.move_on_after(self._check_seconds):
                    await self._wake.wait()
                await self._list(client)

    async def _listen(self, client: Client) -> None:
        """Hear of changes on a connection that has streams for it; on others they come by themselves."""
        while True:
            try:
                async with client.listen(tools_list_changed=True) as events:
                    self._wake.set()  # what changed before the stream was open was not heard
                    async for _ in events:
                        self._wake.set()
            except (ListenNotSupportedError, TimeoutError):
                return
            except MCPError as error:
                if error.code != types.CONNECTION_CLOSED:
                    return
                self._wake.set()
            except SubscriptionLost:
                self._wake.set()
            await anyio.sleep(min(self._check_seconds, FIRST_PAUSE_S))

    async def _list(self, client: Client) -> None:
        """Take what the server lists now. Raises whatever keeps it from listing."""
        self._wake = anyio.Event()
        asked = self._asked
        with anyio.fail_after(self.settings.timeout_seconds):
            found = await self._listed(client)
        news = not self.up or found != self.tools
        self.tools, self._client, self._problem = found, client, ""
        if news:
            _LOG.info("server '%s' lists %d tools", self.name, len(found))
            self._changed()
        self._settle(asked)

    async def _listed(self, client: Client) -> Mapping[str, ToolCard]:
        pages: list[dict[str, Any]] = []
        cursor: str | None = None
        seen: set[str | None] = set()
        tools = 0
        while cursor not in seen:
            seen.add(cursor)
            page = await client.list_tools(cursor=cursor)
            pages.append(listed_page(page.tools, client))
            tools, cursor = tools + len(page.tools), page.next_cursor
            if cursor is None:
                break
            if len(pages) >= MAX_PAGES or tools > MAX_TOOLS:
                raise InputError("its list of tools does not end", source=self.name)
        else:
            raise InputError("its list of tools does not end", source=self.name)
        if not tools:
            return _NOTHING
        catalog, _ = mcp_catalog(pages, self.name, self.name, self.settings.terms(self.name))
        return {card.tool_id: card for card in catalog}

    def _lost(self, error: Exception) -> None:
        """Say why, once for as long as it stays the reason."""
        first: BaseException = error
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        said = "it did not answer in time" if isinstance(first, TimeoutError) else str(first) or type(first).__name__
        problem = escaped(self._hide(" ".join(said.split())))[:_SHOWN]
        if problem != self._problem:
            self._problem = problem
            _LOG.warning("server '%s' is down, its tools are withheld: %s", self.name, problem)

    def _down(self) -> None:
        was_up = self.up
        self._client, self.tools = None, _NOTHING
        if was_up:
            self._changed()
        self._settle(self._asked)

    def _settle(self, asked: int) -> None:
        self._answered = asked
        self._settled.set()
        self._checked.set()
        self._checked = anyio.Event()


def _figures(tell: Progress | None) -> ProgressFnT | None:
    if tell is None:
        return None

    async def told(progress: float, total: float | None, message: str | None) -> None:
        await tell(progress, total)

    return told

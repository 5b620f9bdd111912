"""Running: the door on an assembled service, its servers kept connected and its mask kept true while it lives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from serving.door.assembly import Assembly
from serving.door.settings import ServiceSettings
from serving.mcp_door.calls import Calls
from serving.mcp_door.connecting import connector
from serving.mcp_door.credentials import Credentials, check_credentials
from serving.mcp_door.door import ToolDoor
from serving.mcp_door.forwarding import built_in_judge
from serving.mcp_door.server import DoorServer, IdentityOf
from serving.mcp_door.settings import UpstreamsFile
from serving.mcp_door.upstream import Connect
from serving.mcp_door.upstreams import Upstreams

_LOOK_S = 0.1
"""How often it is looked whether another catalog serves."""


class McpDoor:
    """Everything of one running door. `connect`, by a server's name, stands in for its url or command; `pause` waits
    between attempts to reach one.

    Raises InputError for credentials that are not there.
    """

    def __init__(
        self,
        assembly: Assembly,
        settings: ServiceSettings,
        found: UpstreamsFile,
        identity_of: IdentityOf,
        *,
        version: str = "",
        connect: Callable[[str], Connect] | None = None,
        pause: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.credentials = Credentials(found.secrets_file)
        check_credentials(found, self.credentials)
        self._live = assembly.watch.live
        self._news = anyio.Event()
        self.upstreams = Upstreams(
            found,
            connect or (lambda name: connector(found.upstreams[name], self.credentials)),
            self.credentials,
            changed=self._changed,
            pause=pause,
        )
        service = assembly.door.service
        calls = Calls(
            service, self.upstreams, self.credentials, judge=built_in_judge(), cap=settings.observations.cap_characters
        )
        self.door = ToolDoor(service, self._live, assembly.pool, calls)
        self.server = DoorServer(
            self.door, self._live, identity_of, version=version, asked_s=settings.confirmation.ttl_seconds
        )
        self._withhold()
        servers = self.upstreams
        assembly.metrics.gauge("mcp_servers_down", "MCP servers that cannot be reached.", lambda: servers.down)
        assembly.metrics.gauge(
            "mcp_tools_waiting", "New and changed tools that wait for approval.", lambda: servers.waiting
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Connected inside; every server was tried once when it begins."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.upstreams.run)
            group.start_soon(self._follow)
            await self.upstreams.settled()
            await self.refresh()
            yield
            group.cancel_scope.cancel()

    async def refresh(self) -> None:
        """Withhold what cannot be called now, give back what can, and tell whoever has another list."""
        self._withhold()
        await self.server.changed()

    def _changed(self) -> None:
        self._withhold()  # at once: what a server dropped is not shown while anybody is being told
        self._news.set()

    def _withhold(self) -> None:
        unavailable = self.upstreams.unavailable(self._live.current.catalog)
        if unavailable != self._live.current.unavailable:
            self._live.set_unavailable(unavailable)

    async def _follow(self) -> None:
        seen = self._live.current
        while True:
            with anyio.move_on_after(_LOOK_S):
                await self._news.wait()
            if self._news.is_set() or self._live.current is not seen:
                self._news = anyio.Event()
                seen = self._live.current
                await self.refresh()

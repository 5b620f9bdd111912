"""Small MCP servers for the tests of the door, the catalog that was approved of them, and a door before them."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.client import Client
from mcp.client.session import MessageHandlerFnT
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from data.cards import Trust
from data.catalog import Catalog
from data.importers.mcp import mcp_catalog
from data.importers.terms import Terms
from data.jsonl import save_catalog
from data.store.database import open_database
from data.store.ledger import Ledger
from data.traces import Trace
from serving.door.assembly import Assembly
from serving.door.granted import of_grant
from serving.door.grants import Grant, IdentitySettings
from serving.door.identity import Authenticator
from serving.door.settings import ObservationSettings, ServiceSettings, TraceSettings
from serving.mcp_door.running import McpDoor
from serving.mcp_door.settings import UpstreamsFile
from serving.mcp_door.upstream import Connect

Answer = Callable[[str, Mapping[str, Any]], Any]


class Desk:
    """A server whose tools a test changes as it likes; it says so (`tell`) or not. `calls` are those that arrived."""

    def __init__(self, *tools: types.Tool, answer: Answer | None = None) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.down = False
        self.steps = 0
        self.cancelled = anyio.Event()
        self._answer = answer or (lambda name, arguments: f"{name} did {dict(arguments)}")
        self._bus = InMemorySubscriptionBus()
        self._sessions: list[Any] = []
        self.server: Server[Any] = Server(
            "desk",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
        )

    async def _list(self, context: Any, _: Any) -> types.ListToolsResult:
        if self.down:
            raise RuntimeError("the desk is closed")
        self._sessions.append(context.session)
        return types.ListToolsResult(tools=list(self.tools.values()), ttl_ms=0, cache_scope="private")

    async def _call(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        self.calls.append((params.name, arguments))
        for step in range(self.steps):
            await context.session.report_progress(step + 1, self.steps, "said by the server")
        try:
            made = self._answer(params.name, arguments)
            found = await made if hasattr(made, "__await__") else made
        except anyio.get_cancelled_exc_class():
            self.cancelled.set()
            raise
        if isinstance(found, types.CallToolResult):
            return found
        return types.CallToolResult(content=[types.TextContent(type="text", text=str(found))])

    async def tell(self) -> None:
        """Say, in either of the protocol's ways, that the tools have changed."""
        await self._bus.publish(ToolsListChanged())
        for session in self._sessions[-1:]:
            await session.send_tool_list_changed()

    def connect(self, mode: str) -> Connect:
        """Connections to it, in the process."""

        def open_one(heard: MessageHandlerFnT) -> AbstractAsyncContextManager[Client]:
            return Client(self.server, mode=mode, message_handler=heard, cache=None)

        return open_one


def tool(name: str, description: str, *, reads: bool = True, **properties: Any) -> types.Tool:
    """A tool that needs all of its `properties`, which are JSON types by name."""
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": list(properties),
    }
    hints = types.ToolAnnotations(read_only_hint=reads, destructive_hint=not reads)
    return types.Tool(name=name, description=description, input_schema=schema, annotations=hints)


def approved(path: Path, core: tuple[str, ...] = (), **desks: Desk) -> Catalog:
    """Write the catalog of every tool that the desks have now, a moment ago.

    Those named in `core` are core tools, those of `pay` can run dry.
    """
    cards = []
    for name, desk in desks.items():
        listed = [one.model_dump(mode="json", by_alias=True, exclude_unset=True) for one in desk.tools.values()]
        found, _ = mcp_catalog({"tools": listed}, name, name, Terms(server=name, trust=Trust.TRUSTED))
        added = {"cost_usd": 0.01, "dry_run": name == "pay"}
        cards += [card.model_copy(update={"core": card.tool_id in core, **added}) for card in found]
    catalog = Catalog(cards)
    save_catalog(path, catalog)
    a_moment_ago = time.time() - 1.0
    os.utime(path, (a_moment_ago, a_moment_ago))
    return catalog


@dataclass
class Running:
    """A door before some desks, and the ways to it."""

    assembly: Assembly
    mcp: McpDoor
    catalog: Path
    desks: dict[str, Desk]
    refreshed: anyio.Event = field(default_factory=anyio.Event)
    """Set, and made anew, when the door has taken in a change and told those whom it concerns."""

    def traces(self) -> list[Trace]:
        """All traces that were kept."""
        assert self.assembly.writer.drain(5)
        now = datetime.now(UTC)
        day = timedelta(days=1)
        return list(Ledger(self.assembly.database).traces(now - day, now + day, "acme"))

    def client(self, mode: str = "auto", **how: Any) -> Client:
        """A client of the door, in the process, in the protocol's newer way or ("legacy") its older one."""
        return Client(self.mcp.server.protocol, mode=mode, cache=None, **how)

    async def approve(self, core: tuple[str, ...] = ()) -> None:
        """Approve whatever the desks have now."""
        approved(self.catalog, core, **self.desks)
        await anyio.to_thread.run_sync(self.assembly.watch.poll)
        await self.mcp.refresh()


@cache
def _empty_store() -> bytes:
    """A store with its tables and nothing in them: making it takes longer than most tests."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        open_database(str(path)).close()
        return path.read_bytes()


@asynccontextmanager
async def door_before(
    folder: Path,
    *,
    mode: str = "auto",
    grant: Grant | None = None,
    core: tuple[str, ...] = (),
    policy: Path | None = None,
    cap: int = 4000,
    upstream: Mapping[str, Any] | None = None,
    pause: Callable[[float], Awaitable[None]] = anyio.sleep,
    **desks: Desk,
) -> AsyncIterator[Running]:
    """A door that is connected to the desks, all of whose tools are approved; `mode` is how it speaks to them."""
    approved(folder / "catalog.jsonl", core, **desks)
    (folder / "traces.db").write_bytes(_empty_store())
    settings = ServiceSettings(
        traces=TraceSettings(database=str(folder / "traces.db"), spool=str(folder / "traces.spool")),
        observations=ObservationSettings(cap_characters=cap),
    )
    assembly = Assembly(
        settings,
        catalog=folder / "catalog.jsonl",
        bundle=None,
        authenticator=Authenticator(IdentitySettings(), dev=True),
        policy=policy,
    )
    found = UpstreamsFile.model_validate(
        {
            "check_seconds": 3600,
            "upstreams": {name: {"command": ["in-process"], "trust": "trusted", **(upstream or {})} for name in desks},
        }
    )
    identity = of_grant("ann", grant or Grant(tenant="acme", may_confirm=True), "ann")
    async with assembly.running():
        mcp = McpDoor(
            assembly, settings, found, lambda _: identity, connect=lambda name: desks[name].connect(mode), pause=pause
        )
        async with mcp.running():
            running = Running(assembly, mcp, folder / "catalog.jsonl", dict(desks))
            tell = mcp.server.changed

            async def changed() -> None:
                await tell()
                running.refreshed.set()
                running.refreshed = anyio.Event()

            mcp.server.changed = changed  # type: ignore[method-assign]
            yield running


def text(result: types.CallToolResult) -> str:
    """The texts of an answer."""
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))

"""Upstreams: all servers behind the door, and which approved tools can be called of them at this moment."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import mcp_types as types

from data.cards import ToolCard
from data.catalog import Catalog
from data.invisible import escaped
from serving.mcp_door.credentials import Credentials
from serving.mcp_door.settings import ToolSettings, UpstreamsFile
from serving.mcp_door.standing import Standing, changed_fields, in_words, standing
from serving.mcp_door.upstream import Connect, Progress, Upstream, UpstreamDownError
from serving.search_tool import SEARCH_TOOLS_ID

_LOG = logging.getLogger("toolcrib.mcp")

_SETTLE_S = 5.0


@dataclass(frozen=True)
class Route:
    """Where a tool's calls go: the server, its own name of the tool, and how it wants to be called."""

    upstream: Upstream
    tool: str
    timeout_s: float
    dry_run_argument: str | None

    async def call(self, arguments: Mapping[str, Any], progress: Progress | None = None) -> types.CallToolResult:
        """As `Upstream.call`."""
        return await self.upstream.call(self.tool, arguments, self.timeout_s, progress)


class Upstreams:
    """`connect` gives each server's way to connect, by its name. `changed` is called after any server changed; `pause`
    waits between attempts to reach one."""

    def __init__(
        self,
        found: UpstreamsFile,
        connect: Callable[[str], Connect],
        credentials: Credentials,
        *,
        changed: Callable[[], None],
        pause: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.all = tuple(
            Upstream(
                name,
                settings,
                connect(name),
                changed=changed,
                hide=credentials.hidden,
                check_seconds=found.check_seconds,
                pause=pause,
            )
            for name, settings in found.upstreams.items()
        )
        self._said: dict[str, Standing] = {}
        self._hide = credentials.hidden

    async def run(self) -> None:
        """Keep every server connected until cancelled."""
        async with anyio.create_task_group() as group:
            for upstream in self.all:
                group.start_soon(upstream.run)

    async def settled(self) -> None:
        """Return once every server was tried, or after a while."""
        with anyio.move_on_after(_SETTLE_S):
            for upstream in self.all:
                await upstream.settled()

    async def check(self) -> None:
        """Have all servers asked for their tools now."""
        async with anyio.create_task_group() as group:
            for upstream in self.all:
                group.start_soon(upstream.check)

    def route(self, card: ToolCard) -> Route:
        """Where calls of an approved tool go now.

        Raises UpstreamDownError where no server offers the tool as it was approved.
        """
        for upstream in self.all:
            live = upstream.tools.get(card.tool_id)
            if live is not None and not changed_fields(card, live):
                own = upstream.settings.tools.get(live.name, ToolSettings())
                return Route(upstream, live.name, upstream.settings.timeout_of(live.name), own.dry_run_argument)
        raise UpstreamDownError("the tool's server is not reachable at the moment, or does not offer the tool any more")

    def unavailable(self, catalog: Catalog) -> frozenset[str]:
        """The tools of the catalog that cannot be called now. What has changed is said in the log, once."""
        good = {SEARCH_TOOLS_ID}
        for upstream in self.all:
            if upstream.up:
                prefix = upstream.settings.terms(upstream.name).tool_id(upstream.name, "")
                approved = {card.tool_id: card for card in catalog if card.tool_id.startswith(prefix)}
                found = standing(approved, upstream.tools)
                good |= found.good
                self._say(upstream.name, found)
        return frozenset(tool_id for tool_id in catalog.ids if tool_id not in good)

    @property
    def down(self) -> int:
        """How many servers cannot be reached."""
        return sum(not upstream.up for upstream in self.all)

    @property
    def waiting(self) -> int:
        """How many tools are new or changed, and wait for approval."""
        return sum(len(found.changed) + len(found.fresh) for found in self._said.values())

    def standings(self) -> Mapping[str, Standing]:
        """By server, how its tools stood when they were last compared."""
        return dict(self._said)

    def _say(self, server: str, found: Standing) -> None:
        before = self._said.get(server, Standing())
        self._said[server] = found
        for tool_id, fields in found.changed.items():
            if before.changed.get(tool_id) != fields:
                _LOG.warning(
                    "'%s' has changed %s: withheld until that is approved in the catalog",
                    self._named(tool_id),
                    in_words(fields),
                )
        for tool_id in sorted(found.gone - before.gone):
            _LOG.warning("'%s' is not offered any more by server '%s': withheld", self._named(tool_id), server)
        fresh = sorted(found.fresh - before.fresh)
        if fresh:
            named = ", ".join(f"'{self._named(tool_id)}'" for tool_id in fresh[:5]) + (
                ", ..." if len(fresh) > 5 else ""
            )
            _LOG.info("server '%s' offers %d tools that wait for approval: %s", server, len(fresh), named)

    def _named(self, tool_id: str) -> str:
        """A name that a server has made up, fit for a log."""
        return escaped(self._hide(tool_id))

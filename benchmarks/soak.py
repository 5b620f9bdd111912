"""A soak of the MCP door: two servers add, rename, re-describe and drop tools at random while callers search and call.

    python -m benchmarks.soak --seconds 120 [--registry]

Half of the changes are announced, half are not and have to be found by the periodic check. An approver follows with a
delay, lets some of it wait for long, and writes the catalog that the door watches; or, with `--registry`, imports what
there is into the registry that the door follows, which ends what is gone, and approves some of what waits. Exits with
1 if a call reached a tool over a second after it had become another (for a change that nobody announced: after the next
check was due), if a text was shown that nobody had approved, if a tool stayed unfindable over a second after its
approval, or if at the end the tools that can be found are not those that are approved and as they were approved.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import random
import re
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.client import Client
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from data.cards import ToolCard, Trust
from data.catalog import Catalog
from data.importers.mcp import mcp_catalog
from data.importers.terms import Terms
from data.jsonl import save_catalog
from data.store.approved import Approved
from data.store.database import open_database
from data.store.registry import Registry
from serving.door.assembly import Assembly
from serving.door.granted import of_grant
from serving.door.grants import Grant, IdentitySettings
from serving.door.identity import Authenticator
from serving.door.settings import ServiceSettings, TraceSettings
from serving.mcp_door.running import McpDoor
from serving.mcp_door.settings import UpstreamsFile

BOUND_S = 1.0
CHECK_S = 0.5
TOOLS = 40
"""About as many has each server at any time."""
APPROVED_SHARE = 0.3
"""Of what waits, each time that somebody approves."""
_MARK = re.compile(r"mark\d{6}")
_SERIAL = itertools.count()


@dataclass
class Seen:
    """What happened, and what must not have."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    late_call_s: float = 0.0
    findable_s: list[float] = field(default_factory=list)
    approved_marks: set[str] = field(default_factory=set)

    def check_text(self, text: str) -> None:
        """Every mark is in the text of one version of one tool; what was never approved must not be shown."""
        for mark in set(_MARK.findall(text)) - self.approved_marks:
            self.wrong.append(f"{mark} was shown, and nobody had approved it")


class Shop:
    """A server whose tools change. `changed_at`, by name: since when a tool is not as approved, and for how many
    seconds a call of it may still come."""

    def __init__(self, name: str, seen: Seen, dice: random.Random) -> None:
        self.name, self._seen, self._dice = name, seen, dice
        self.tools: dict[str, types.Tool] = {}
        self.changed_at: dict[str, tuple[float, float]] = {}
        self.approved: dict[str, ToolCard] = {}
        self._bus = InMemorySubscriptionBus()
        self.server: Server[Any] = Server(
            name, on_list_tools=self._list, on_call_tool=self._call, on_subscriptions_listen=ListenHandler(self._bus)
        )
        for _ in range(TOOLS):
            self._add()

    def cards(self) -> dict[str, ToolCard]:
        """The tools as an import reads them now, by id."""
        listed = [tool.model_dump(mode="json", by_alias=True, exclude_unset=True) for tool in self.tools.values()]
        found, _ = mcp_catalog({"tools": listed}, self.name, self.name, Terms(server=self.name, trust=Trust.TRUSTED))
        return {card.tool_id: card for card in found}

    def as_approved(self, name: str) -> bool:
        """Whether the tool is there, and as it is approved."""
        card, live = self.approved.get(f"{self.name}.{name}"), self.tools.get(name)
        if card is None or live is None:
            return False
        return (card.description, card.input_schema) == (live.description, live.input_schema)

    async def change(self) -> None:
        """One change at random; every second one is announced."""
        kind = self._dice.choice(("add", "rename", "redescribe", "redescribe", "reschema", "drop", "drop_and_return"))
        if kind == "add" or len(self.tools) < TOOLS // 2:
            kind = "add"
            self._add()
            names = []
        else:
            name = self._dice.choice(sorted(self.tools))
            names = [name] if self.as_approved(name) else []  # what was outdated already, is so since then
            old = self.tools.pop(name)
            if kind == "rename":
                new = f"renamed_{next(_SERIAL):06d}"
                self.tools[new] = old.model_copy(update={"name": new})
            elif kind == "redescribe":
                self.tools[name] = old.model_copy(update={"description": _description()})
            elif kind == "reschema":
                self.tools[name] = old.model_copy(update={"input_schema": _schema(f"p{next(_SERIAL):06d}")})
            elif kind == "drop_and_return":
                self.tools[name] = old
        announced = self._dice.random() < 0.5
        bound = BOUND_S if announced else BOUND_S + CHECK_S
        for name in names if kind != "drop_and_return" else []:
            self.changed_at[name] = (time.monotonic(), bound)
        self._seen.counts[f"{kind}, {'announced' if announced else 'silent'}"] += 1
        if announced:
            await self._bus.publish(ToolsListChanged())

    def _add(self) -> None:
        name = f"tool_{next(_SERIAL):06d}"
        self.tools[name] = types.Tool(
            name=name,
            description=_description(),
            input_schema=_schema("what"),
            annotations=types.ToolAnnotations(read_only_hint=True),
        )

    async def _list(self, _: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(self.tools.values()), ttl_ms=0, cache_scope="private")

    async def _call(self, _: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool_id = f"{self.name}.{params.name}"
        self._seen.counts["calls that reached a server"] += 1
        if not self.as_approved(params.name):
            since, bound = self.changed_at.get(params.name, (0.0, 0.0))
            late = time.monotonic() - since
            self._seen.counts["of them before the change could be known"] += 1
            self._seen.late_call_s = max(self._seen.late_call_s, late)
            if late > bound:
                self._seen.wrong.append(f"{tool_id} was called {late:.2f} s after it had changed")
        return types.CallToolResult(content=[types.TextContent(type="text", text="done")])


def _description() -> str:
    return f"Do what mark{next(_SERIAL):06d} is for."


def _schema(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"}}, "additionalProperties": True}


class Soak:
    """The door, its servers, and those who change, approve, search and call."""

    def __init__(self, folder: Path, seed: int, registry: Registry | None = None) -> None:
        self.dice, self.seen = random.Random(seed), Seen()
        self.shops = [Shop(name, self.seen, self.dice) for name in ("east", "west")]
        self.catalog, self.registry = folder / "catalog.jsonl", registry
        self._publish()
        settings = ServiceSettings(
            traces=TraceSettings(database=str(folder / "traces.db"), spool=str(folder / "traces.spool"))
        )
        authenticator = Authenticator(IdentitySettings(), dev=True)
        followed = self.catalog if registry is None else Approved(registry.database)
        self.assembly = Assembly(settings, catalog=followed, bundle=None, authenticator=authenticator)
        ann = of_grant("ann", Grant(tenant="acme"), "ann")
        found = UpstreamsFile.model_validate(
            {
                "check_seconds": CHECK_S,
                "upstreams": {shop.name: {"command": ["here"], "trust": "trusted"} for shop in self.shops},
            }
        )
        servers = {shop.name: shop.server for shop in self.shops}
        self.door = McpDoor(
            self.assembly,
            settings,
            found,
            lambda _: ann,
            connect=lambda name: lambda heard: Client(servers[name], message_handler=heard, cache=None),
        )

    async def run(self, seconds: float) -> Seen:
        """All of it at once for so long, then the last look."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.assembly.running())
            await stack.enter_async_context(self.door.running())
            callers = [
                await stack.enter_async_context(Client(self.door.server.protocol, mode=mode, cache=None))
                for mode in ("auto", "legacy", "auto")
            ]
            with anyio.move_on_after(seconds):
                async with anyio.create_task_group() as group:
                    for shop in self.shops:
                        group.start_soon(self._disturb, shop)
                    group.start_soon(self._approve, callers[0])
                    for caller in callers:
                        group.start_soon(self._use, caller)
            await self._last_look(callers[0])
        return self.seen

    def _publish(self, share: float = 1.0) -> None:
        """Approve a share of what the servers have at this moment and of what they dropped; the rest waits on."""
        if self.registry is not None:
            self._decide(self.registry, share)
            return
        for shop in self.shops:
            live, approved = shop.cards(), dict(shop.approved)
            for tool_id in sorted(live.keys() | approved.keys()):
                if live.get(tool_id) == approved.get(tool_id) or self.dice.random() > share:
                    continue
                approved.pop(tool_id, None)
                if tool_id in live:
                    approved[tool_id] = live[tool_id]
            shop.approved = approved
            self.seen.approved_marks |= {mark for card in approved.values() for mark in _marks(card)}
        save_catalog(self.catalog, Catalog(card for shop in self.shops for card in shop.approved.values()))

    def _decide(self, registry: Registry, share: float) -> None:
        """Import what the servers have, and approve a share of what waits."""
        for shop in self.shops:
            registry.offer(shop.cards().values(), shop.name, "job")
        for tool in registry.waiting():
            if self.dice.random() <= share:
                self.seen.approved_marks |= set(_marks(registry.card(tool.pending[-1])))  # before anybody can see it
                registry.approve(tool.tool_id, tool.pending[-1], "anna", despite="these texts are made up")
        shown = registry.shown()
        for shop in self.shops:
            shop.approved = {card.tool_id: card for card in shown if card.domain == shop.name}

    async def _disturb(self, shop: Shop) -> None:
        while True:
            await anyio.sleep(self.dice.uniform(0.01, 0.15))
            await shop.change()

    async def _approve(self, client: Client) -> None:
        """Approve what waits, and see how long it takes until one of the newly approved tools is found."""
        while True:
            await anyio.sleep(self.dice.uniform(0.5, 1.5))
            before = {tool_id: card for shop in self.shops for tool_id, card in shop.approved.items()}
            self._publish(APPROVED_SHARE)
            self.seen.counts["approvals"] += 1
            fresh = [
                card for shop in self.shops for tool_id, card in shop.approved.items() if before.get(tool_id) != card
            ]
            if fresh:
                await self._findable(client, self.dice.choice(fresh))

    async def _findable(self, client: Client, card: ToolCard) -> None:
        started = time.monotonic()
        while self._stands(card):
            took = time.monotonic() - started
            if card.tool_id in await self._search(client, card):
                self.seen.findable_s.append(time.monotonic() - started)
                return
            if took > BOUND_S:
                self.seen.wrong.append(f"{card.tool_id} was not found {took:.2f} s after its approval")
                return
            await anyio.sleep(0.02)

    def _stands(self, card: ToolCard) -> bool:
        """Whether the server has the tool now as it is approved."""
        return next(shop for shop in self.shops if shop.name == card.domain).as_approved(card.name)

    async def _use(self, client: Client) -> None:
        while True:
            shop = self.dice.choice(self.shops)
            card = self.dice.choice(list(shop.approved.values()))
            found = await self._search(client, card)
            wanted = card.tool_id if self.dice.random() < 0.7 else self.dice.choice(sorted(shop.approved))
            self.seen.check_text(_text(await client.call_tool("describe_tool", {"tool": wanted})))
            called = await client.call_tool("call_tool", {"tool": wanted, "arguments": {"what": "it"}})
            self.seen.check_text(_text(called))
            self.seen.counts["searches"] += 1
            self.seen.counts["calls refused by the door" if called.is_error else "calls answered"] += 1
            self.seen.counts["searches that found the tool"] += card.tool_id in found
            await anyio.sleep(self.dice.uniform(0.0, 0.03))

    async def _search(self, client: Client, card: ToolCard) -> str:
        found = _text(await client.call_tool("search_tools", {"query": f"{card.name} {next(iter(_marks(card)))}"}))
        self.seen.check_text(found)
        return found

    async def _last_look(self, client: Client) -> None:
        """With nothing changing any more: found is exactly what is approved and as it was approved."""
        await self.door.upstreams.check()
        await anyio.to_thread.run_sync(self.assembly.watch.poll)
        await self.door.refresh()
        for shop in self.shops:
            for card in shop.approved.values():
                shown = f"{card.tool_id} (" in await self._search(client, card)
                if shown is not self._stands(card):
                    self.seen.wrong.append(f"at the end {card.tool_id} is {'' if shown else 'not '}found")
                self.seen.counts["tools looked at in the end"] += 1
                called = await client.call_tool("call_tool", {"tool": card.tool_id, "arguments": {"what": "it"}})
                if called.is_error and self._stands(card):
                    self.seen.wrong.append(f"at the end {card.tool_id} cannot be called: {_text(called)}")
                if not called.is_error and not self._stands(card):
                    self.seen.wrong.append(f"at the end {card.tool_id} is stale and can be called")


def _marks(card: ToolCard) -> list[str]:
    return _MARK.findall(card.description)


def _text(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


def main() -> int:
    parser = argparse.ArgumentParser(description="Soak the MCP door.")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--registry", action="store_true", help="follow a registry in place of a file")
    given = parser.parse_args()
    logging.getLogger().addHandler(logging.NullHandler())
    with tempfile.TemporaryDirectory() as folder, closing(open_database(Path(folder) / "registry.db")) as database:
        registry = Registry(database) if given.registry else None
        seen = anyio.run(Soak(Path(folder), given.seed, registry).run, given.seconds)
    for what, count in sorted(seen.counts.items()):
        print(f"{count:7,}  {what}")
    print(f"the latest call of a changed tool came {seen.late_call_s * 1000:.0f} ms after its change")
    if seen.findable_s:
        times = sorted(seen.findable_s)
        middle = times[len(times) // 2]
        print(f"approved tools were found after {middle * 1000:.0f} ms (median), {times[-1] * 1000:.0f} ms (longest)")
    for problem in seen.wrong[:20]:
        print(f"WRONG: {problem}")
    print("failed" if seen.wrong else "held")
    return 1 if seen.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

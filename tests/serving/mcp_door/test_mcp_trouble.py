"""Servers that are slow, fail, go away and come back; callers who change their minds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from upstream_servers import Desk, door_before, text, tool

pytestmark = pytest.mark.anyio

LIST = {"tool": "forge.list_issues", "arguments": {"repository": "a"}}


def desk(answer: Callable[[str, Mapping[str, Any]], Any] | None = None) -> Desk:
    return Desk(tool("list_issues", "List the issues of a repository.", repository="string"), answer=answer)


async def search(client: Client) -> str:
    return text(await client.call_tool("search_tools", {"query": "list the issues of a repository"}))


class Pauses:
    """What stands in for the time between attempts: they wait until the test lets them."""

    def __init__(self) -> None:
        self.lengths: list[float] = []
        self.begun, self.over = anyio.Event(), anyio.Event()

    async def __call__(self, seconds: float) -> None:
        self.lengths.append(seconds)
        over = self.over
        self.begun.set()
        await over.wait()

    async def next(self) -> None:
        """Let the attempt be made, and return when it has failed as well."""
        over, self.over, self.begun = self.over, anyio.Event(), anyio.Event()
        over.set()
        await self.begun.wait()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_server_that_goes_away_is_withheld_and_comes_back_by_itself(tmp_path: Path, mode: str) -> None:
    forge, pauses = desk(), Pauses()
    async with door_before(tmp_path, mode=mode, pause=pauses, forge=forge) as running, running.client() as client:
        with anyio.fail_after(20):
            assert "forge.list_issues" in await search(client)
            forge.down = True
            await running.mcp.upstreams.check()
            assert "forge.list_issues" not in await search(client)
            called = await client.call_tool("call_tool", LIST)
            assert called.is_error
            await pauses.begun.wait()
            await pauses.next()
            await pauses.next()
            assert pauses.lengths == sorted(set(pauses.lengths))
            forge.down = False
            refreshed = running.refreshed
            pauses.over.set()
            await refreshed.wait()
            assert "forge.list_issues" in await search(client)
            assert not (await client.call_tool("call_tool", LIST)).is_error


async def test_a_server_that_is_down_at_the_start_holds_up_nobody(tmp_path: Path) -> None:
    forge, other, pauses = desk(), Desk(tool("find_invoice", "Find an invoice.", number="integer")), Pauses()
    forge.down = True
    async with door_before(tmp_path, pause=pauses, forge=forge, billing=other) as running, running.client() as client:
        found = text(await client.call_tool("search_tools", {"query": "find an invoice"}))
        assert "billing.find_invoice" in found
        assert "forge" not in found


async def test_a_call_that_takes_too_long_ends_and_is_traced_as_such(tmp_path: Path) -> None:
    async def never(_: str, __: Mapping[str, Any]) -> None:
        await anyio.Event().wait()

    forge = desk(never)
    short = {"tools": {"list_issues": {"timeout_seconds": 0.05}}}
    async with door_before(tmp_path, upstream=short, forge=forge) as running, running.client() as client:
        await search(client)
        called = await client.call_tool("call_tool", LIST)
        assert called.is_error
        assert "did not answer within 0.05 s" in text(called)
        with anyio.fail_after(10):
            await forge.cancelled.wait()
        assert [(trace.outcome, trace.error_class) for trace in running.traces()] == [("failure", "timeout")]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_cancelled_call_is_cancelled_at_its_server(tmp_path: Path, mode: str) -> None:
    arrived = anyio.Event()

    async def never(_: str, __: Mapping[str, Any]) -> None:
        arrived.set()
        await anyio.Event().wait()

    forge = desk(never)
    async with door_before(tmp_path, mode=mode, forge=forge) as running, running.client(mode) as client:
        await search(client)
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "call_tool", LIST)
                await arrived.wait()
                group.cancel_scope.cancel()
            await forge.cancelled.wait()
        assert (await client.list_tools()).tools


def failing(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


def boom(_: str, __: Mapping[str, Any]) -> Any:
    raise RuntimeError("the database is on fire")


@pytest.mark.parametrize(
    ("answer", "error_class"),
    [
        (lambda *_: failing("401 Unauthorized: the token has expired"), "auth"),
        (lambda *_: failing("429 Too Many Requests"), "rate_limited"),
        (lambda *_: failing("the repository exploded"), "tool_error"),
        (boom, "tool_error"),
    ],
)
async def test_what_fails_at_the_server_is_classed_by_the_rules_of_logs(
    tmp_path: Path, answer: Callable[[str, Mapping[str, Any]], Any], error_class: str
) -> None:
    async with door_before(tmp_path, forge=desk(answer)) as running, running.client() as client:
        await search(client)
        assert (await client.call_tool("call_tool", LIST)).is_error
        assert [(trace.outcome, trace.error_class) for trace in running.traces()] == [("failure", error_class)]


async def test_a_tool_that_the_server_drops_without_a_word_fails_as_the_server_says(tmp_path: Path) -> None:
    def unknown(name: str, _: Mapping[str, Any]) -> Any:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {name}")

    async with door_before(tmp_path, forge=desk(unknown)) as running, running.client() as client:
        await search(client)
        called = await client.call_tool("call_tool", LIST)
        assert called.is_error
        assert "Unknown tool: list_issues" in text(called)


async def test_a_definition_that_is_none_is_left_out_and_the_others_stand(tmp_path: Path) -> None:
    forge = desk()
    async with door_before(tmp_path, forge=forge) as running, running.client() as client:
        forge.tools["endless"] = tool("e" * 600, "List the issues of a repository without end.")
        await running.mcp.upstreams.check()
        assert running.mcp.upstreams.standings()["forge"].fresh == frozenset()
        assert "forge.list_issues" in await search(client)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_failure_of_the_door_itself_tells_the_caller_nothing(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("postgresql://user:hunter2@db")

    async with door_before(tmp_path, forge=desk()) as running, running.client(mode) as client:
        monkeypatch.setattr(running.assembly.door.service, "check", broken)
        with pytest.raises(MCPError) as caught:
            await client.call_tool("call_tool", LIST)
    assert caught.value.error.message == "the door failed to answer; try again"


@pytest.mark.parametrize(
    "arguments",
    [
        {"tool": "forge.list_issues"},
        {"tool": "", "arguments": {}},
        {"tool": "forge.list_issues", "arguments": "none"},
        {"tool": "forge.list_issues", "arguments": {}, "menu": "a\x00b"},
        {"tool": "forge.list_issues", "arguments": {}, "ticket": "x" * 300},
        {"tool": "forge.list_issues", "arguments": {}, "as": "root"},
    ],
)
async def test_arguments_of_the_doors_own_tools_are_checked(tmp_path: Path, arguments: dict[str, Any]) -> None:
    forge = desk()
    async with door_before(tmp_path, forge=forge) as running, running.client() as client:
        called = await client.call_tool("call_tool", arguments)
    assert called.is_error
    assert text(called).startswith("the arguments cannot be used:")
    assert forge.calls == []

"""MCP proxy logs: the SDK's own client and server in this process, and between them a proxy that writes a log."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from desk import DESK, called, imported, imported_with_report, menu, write_lines
from mcp.client import Client
from mcp.client._memory import InMemoryTransport
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError

Log = list[dict[str, Any]]


class Tap:
    """One direction of a connection, written down as it passes."""

    def __init__(self, stream: Any, log: Log, direction: str) -> None:
        self._stream, self._log, self._direction = stream, log, direction

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> Tap:
        return self

    async def __anext__(self) -> Any:
        return self._noted(await self._stream.__anext__())

    async def __aenter__(self) -> Tap:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stream.aclose()

    async def receive(self) -> Any:
        return self._noted(await self._stream.receive())

    async def send(self, item: Any) -> None:
        await self._stream.send(self._noted(item))

    def _noted(self, item: Any) -> Any:
        message = item.message.model_dump(mode="json", by_alias=True, exclude_none=True)
        now = datetime.now(UTC).isoformat()
        self._log.append(
            {"direction": self._direction, "ts": now, "session": "s1", "server": "mail", "message": message}
        )
        return item


class Proxy:
    """A transport to a server in this process, with a tap on both directions."""

    def __init__(self, server: MCPServer, log: Log) -> None:
        self._inner, self._log = InMemoryTransport(server), log

    async def __aenter__(self) -> tuple[Tap, Tap]:
        read, write = await self._inner.__aenter__()
        return Tap(read, self._log, "out"), Tap(write, self._log, "in")

    async def __aexit__(self, *error: Any) -> None:
        await self._inner.__aexit__(*error)


def mail_server() -> MCPServer:
    server = MCPServer("mail")

    @server.tool()
    def search(query: str) -> str:
        """Search the mail."""
        return "" if "nothing" in query else f"one mail about {query}"

    @server.tool()
    def send_message(to: str) -> str:
        """Send a message."""
        raise ToolError(f"{to}: 429 too many requests")

    return server


@pytest.fixture(scope="module")
def log() -> Log:
    """A session: the list of tools, then four calls; the last is of a tool that there is not."""
    messages: Log = []

    async def talk() -> None:
        async with Client(Proxy(mail_server(), messages)) as client:  # type: ignore[arg-type]
            await client.list_tools()
            await client.call_tool("search", {"query": "last month's invoices"})
            await client.call_tool("search", {"query": "nothing at all"})
            await client.call_tool("send_message", {"to": "Ann from accounting"})
            try:
                await client.call_tool("archive", {"query": "old mails"})
            except MCPError:
                return

    anyio.run(talk)
    return messages


def test_calls_are_paired_with_their_results(log: Log, tmp_path: Path) -> None:
    traces, report = imported_with_report(write_lines(tmp_path / "mcp.jsonl", log), format="mcp")
    assert called(traces) == [
        ("mail.search", "success", "none"),
        ("mail.search", "success", "empty_result"),
        ("mail.send_message", "failure", "rate_limited"),
    ]
    first = traces[0]
    assert (first.goal, first.trace_id, first.step) == ("last month's invoices", "s1", 0)
    assert menu(first) == ["mail.search", "mail.send_message"]
    assert first.latency_ms is not None
    assert report.goals == {"arguments": 3}
    assert [(one.how, one.name) for one in report.unresolved] == [("unknown", "mail.archive")]


def test_bare_messages_are_told_from_other_forms(log: Log, tmp_path: Path) -> None:
    bare = write_lines(tmp_path / "mcp.jsonl", [line["message"] for line in log])
    assert [trace.tool_id for trace in imported(bare, catalog=DESK)][-1] == "mail.send_message"


def test_what_a_proxy_is_told_of_the_goal_is_the_goal(log: Log, tmp_path: Path) -> None:
    told = json.loads(json.dumps(log))
    for line in told:
        if line["message"].get("method") == "tools/call":
            line["message"]["params"]["_meta"] = {"goal": "find the invoices", "request": "Pay my bills"}
    first = imported(write_lines(tmp_path / "mcp.jsonl", told))[0]
    assert (first.goal, first.request) == ("find the invoices", "Pay my bills")


def test_a_result_without_a_call_and_a_call_without_a_result_are_counted(log: Log, tmp_path: Path) -> None:
    calls = [line["message"]["id"] for line in log if line["message"].get("method") == "tools/call"]
    kept = [
        line
        for line in log
        if not (line["message"].get("id") == calls[0] and "method" in line["message"])
        and not (line["message"].get("id") == calls[1] and "method" not in line["message"])
    ]
    traces, report = imported_with_report(write_lines(tmp_path / "mcp.jsonl", kept))
    assert called(traces)[0] == ("mail.search", "unknown", "none")
    assert report.skipped["a result without a call"].count == 1
    assert report.noticed["a call without a result"].count == 1

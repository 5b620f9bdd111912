"""Search, call, gate, server, trace: the whole way through the door, in both ways of the protocol."""

from __future__ import annotations

from pathlib import Path

import pytest
from upstream_servers import Desk, door_before, text, tool

pytestmark = pytest.mark.anyio


def issues() -> Desk:
    return Desk(
        tool("list_issues", "List the issues of a repository.", repository="string"),
        tool("close_issue", "Close an issue of a repository.", reads=False, number="integer"),
        answer=lambda name, arguments: f"{name} answered {sorted(arguments)}",
    )


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_found_tool_is_called_through_the_gate_and_traced(tmp_path: Path, mode: str) -> None:
    desk = issues()
    async with door_before(tmp_path, mode=mode, forge=desk) as running:
        async with running.client(mode) as client:
            listed = await client.list_tools()
            assert [one.name for one in listed.tools] == ["search_tools", "describe_tool", "call_tool", "read_result"]
            found = await client.call_tool("search_tools", {"query": "list the issues of a repository"})
            assert "forge.list_issues (reads only): List the issues of a repository." in text(found)
            described = await client.call_tool("describe_tool", {"tool": "forge.list_issues"})
            assert '"required":["repository"]' in text(described)
            called = await client.call_tool(
                "call_tool", {"tool": "forge.list_issues", "arguments": {"repository": "a"}}
            )
            assert (called.is_error, text(called)) == (False, "list_issues answered ['repository']")
        traces = running.traces()
    assert desk.calls == [("list_issues", {"repository": "a"})]
    assert [(t.tool_id, t.outcome, t.error_class, t.goal) for t in traces] == [
        ("forge.list_issues", "success", "none", "list the issues of a repository")
    ]


async def test_arguments_that_do_not_fit_reach_no_server(tmp_path: Path) -> None:
    desk = issues()
    async with door_before(tmp_path, forge=desk) as running, running.client() as client:
        await client.call_tool("search_tools", {"query": "list the issues of a repository"})
        called = await client.call_tool("call_tool", {"tool": "forge.list_issues", "arguments": {"repository": 3}})
    assert called.is_error
    assert "$.repository" in text(called)
    assert desk.calls == []


async def test_a_tool_that_was_never_found_is_not_called(tmp_path: Path) -> None:
    desk = issues()
    async with door_before(tmp_path, forge=desk) as running, running.client() as client:
        called = await client.call_tool("call_tool", {"tool": "forge.list_issues", "arguments": {"repository": "a"}})
    assert called.is_error
    assert "search_tools" in text(called)
    assert desk.calls == []


async def test_searching_by_way_of_a_call_is_searching(tmp_path: Path) -> None:
    async with door_before(tmp_path, forge=issues()) as running, running.client() as client:
        call = {"tool": "toolcrib.search_tools", "arguments": {"query": "list the issues of a repository"}}
        assert "forge.list_issues" in text(await client.call_tool("call_tool", call))
        missing = await client.call_tool("call_tool", {**call, "tool": "forge.no_such_tool"})
        assert missing.structured_content is not None
        assert missing.structured_content["available"] == ["forge.list_issues", "forge.close_issue"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_caller_sees_how_far_a_call_is(tmp_path: Path, mode: str) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, total, message))

    desk = issues()
    desk.steps = 2
    async with door_before(tmp_path, mode=mode, forge=desk) as running, running.client(mode) as client:
        await client.call_tool("search_tools", {"query": "list the issues of a repository"})
        call = {"tool": "forge.list_issues", "arguments": {"repository": "a"}}
        await client.call_tool("call_tool", call, progress_callback=progress)
    assert seen == [(1, 2, None), (2, 2, None)]


async def test_operators_see_what_waits_and_who_is_down(tmp_path: Path) -> None:
    desk = issues()
    async with door_before(tmp_path, forge=desk) as running:
        desk.tools["new"] = tool("new", "A new tool.")
        await running.mcp.upstreams.check()
        said = running.assembly.metrics.exposition().decode()
    assert "toolcrib_mcp_tools_waiting 1.0" in said
    assert "toolcrib_mcp_servers_down 0.0" in said

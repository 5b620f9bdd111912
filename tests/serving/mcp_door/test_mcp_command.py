"""`toolcrib mcp` over stdio before a server that it starts itself: processes, pipes and files, as a user has them."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from upstream_servers import text

from data.cards import Trust
from data.importers.live import Server, read_live
from data.importers.terms import Terms
from data.jsonl import save_catalog

pytestmark = pytest.mark.anyio

UPSTREAM = """
import os
from mcp.server.mcpserver import MCPServer

server = MCPServer("forge")


@server.tool()
def list_issues(repository: str) -> str:
    "List the issues of a repository."
    return f"{repository}: 2 issues for {os.environ.get('FORGE_TOKEN')} and {os.environ.get('OTHER_TOKEN')}"


@server.tool()
def crash() -> str:
    "Crash the server."
    os._exit(3)


server.run()
"""


async def test_the_whole_way_by_stdio(tmp_path: Path) -> None:
    (tmp_path / "forge.py").write_text(UPSTREAM)
    (tmp_path / "upstreams.yaml").write_text(
        "upstreams:\n  forge:\n    trust: trusted\n"
        f"    command: [{sys.executable}, {tmp_path / 'forge.py'}]\n"
        "    environment: {FORGE_TOKEN: {env: A_FORGE_TOKEN}}\n"
    )
    (tmp_path / "policy.yaml").write_text("rules: [{name: all, verdict: allow}]\n")
    (tmp_path / "service.yaml").write_text("identity: {dev: {tenant: acme}}\n")
    forge = Server(command=(sys.executable, str(tmp_path / "forge.py")))
    catalog, _ = await anyio.to_thread.run_sync(read_live, forge, Terms(server="forge", trust=Trust.TRUSTED))
    save_catalog(tmp_path / "catalog.jsonl", catalog)
    arguments = ["-m", "toolcrib", "mcp", "--bundle", "none", "--catalog", "catalog.jsonl"]
    arguments += ["--upstreams", "upstreams.yaml", "--config", "service.yaml", "--policy", "policy.yaml"]
    environment = {"A_FORGE_TOKEN": "s3cr3t-of-the-forge", "OTHER_TOKEN": "not-its-business"}
    door = StdioServerParameters(command=sys.executable, args=arguments, env=environment, cwd=tmp_path)
    with open(tmp_path / "stderr", "w") as stderr, anyio.fail_after(60):
        async with Client(stdio_client(door, errlog=stderr), cache=None) as client:
            found = await client.call_tool("search_tools", {"query": "list the issues of a repository"})
            assert "forge.list_issues" in text(found)
            call = {"tool": "forge.list_issues", "arguments": {"repository": "a"}}
            called = await client.call_tool("call_tool", call)
            assert text(called) == "a: 2 issues for [credential] and None"
            gone = await client.call_tool("call_tool", {"tool": "forge.crash", "arguments": {}})
            assert gone.is_error
            assert "ended the connection" in text(gone)
    said = (tmp_path / "stderr").read_text()
    assert "call of 'forge.list_issues' by dev: success" in said
    assert "call of 'forge.crash' by dev: failure, unavailable" in said
    assert "s3cr3t" not in said

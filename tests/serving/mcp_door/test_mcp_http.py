"""The door over HTTP: who is let in, whose session is whose, and the service's own routes beside it."""

from __future__ import annotations

import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from sse_starlette.sse import AppStatus
from starlette.applications import Starlette
from upstream_servers import Desk, approved, text, tool

from data.catalog import Catalog
from data.jsonl import save_catalog
from serving.door.assembly import Assembly
from serving.door.grants import IdentitySettings
from serving.door.identity import Authenticator
from serving.door.keys import digest, new_key
from serving.door.listening import listening
from serving.door.settings import ServiceSettings, ShutdownSettings, TraceSettings
from serving.mcp_door.http import application, end_streams, identity_of_request, keep_streams
from serving.mcp_door.running import McpDoor
from serving.mcp_door.settings import UpstreamsFile

pytestmark = pytest.mark.anyio

URL = "http://127.0.0.1:8700"
ANN, BOB = new_key(), new_key()
LIST = {"tool": "forge.list_issues", "arguments": {"repository": "a"}}
BEGIN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
JSON = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def built(folder: Path, **settings: Any) -> tuple[Starlette, Assembly, ServiceSettings]:
    """An application with two keys: ann's, who may list issues, and bob's, of another tenant, who may not."""
    forge = Desk(tool("list_issues", "List the issues of a repository.", repository="string"))
    catalog = approved(folder / "catalog.jsonl", forge=forge)
    of_acme = [card.model_copy(update={"tenants": ("acme",)}) for card in catalog]
    save_catalog(folder / "catalog.jsonl", Catalog(of_acme))
    keys = [
        {"name": "ann", "sha256": digest(ANN), "tenant": "acme", "may_confirm": True},
        {"name": "bob", "sha256": digest(BOB), "tenant": "rival"},
    ]
    loaded = ServiceSettings(
        identity=IdentitySettings.model_validate({"keys": keys}),
        traces=TraceSettings(database=str(folder / "traces.db"), spool=str(folder / "traces.spool")),
        **settings,
    )
    authenticator = Authenticator(loaded.identity)
    assembly = Assembly(loaded, catalog=folder / "catalog.jsonl", bundle=None, authenticator=authenticator)
    found = UpstreamsFile.model_validate({"upstreams": {"forge": {"command": ["x"], "trust": "trusted"}}})
    door = McpDoor(assembly, loaded, found, identity_of_request, connect=lambda _: forge.connect("auto"))
    return application(door, assembly, authenticator, "127.0.0.1"), assembly, loaded


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[httpx2.ASGITransport]:
    """The application, in this process."""
    app, _, _ = built(folder)
    async with app.router.lifespan_context(app):
        yield httpx2.ASGITransport(app=app, client=("127.0.0.1", 5000))


def caller(transport: httpx2.ASGITransport, key: str | None, **headers: str) -> httpx2.AsyncClient:
    credential = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx2.AsyncClient(transport=transport, base_url=URL, headers={**credential, **headers})


async def test_each_caller_finds_what_their_credential_grants(tmp_path: Path) -> None:
    async with served(tmp_path) as transport:
        async with (
            caller(transport, ANN) as http,
            Client(streamable_http_client(f"{URL}/mcp", http_client=http)) as ann,
        ):
            found = await ann.call_tool("search_tools", {"query": "list the issues of a repository"})
            assert "forge.list_issues" in text(found)
            assert text(await ann.call_tool("call_tool", LIST)) == "list_issues did {'repository': 'a'}"
            menu = text(found).splitlines()[0].removeprefix("menu: ")
        async with (
            caller(transport, BOB) as http,
            Client(streamable_http_client(f"{URL}/mcp", http_client=http)) as bob,
        ):
            found = await bob.call_tool("search_tools", {"query": "list the issues of a repository"})
            assert "list_issues" not in text(found)
            known = await bob.call_tool("call_tool", LIST)
            unknown = await bob.call_tool("call_tool", {**LIST, "tool": "forge.no_such_tool"})
            assert known.is_error
            assert known == unknown
            assert (await bob.call_tool("call_tool", {**LIST, "menu": menu})).is_error


@pytest.mark.parametrize("key", [None, "tck_nobody", new_key()])
async def test_nobody_else_is_let_in(tmp_path: Path, key: str | None) -> None:
    async with served(tmp_path) as transport, caller(transport, key) as http:
        answered = await http.post("/mcp", json=BEGIN, headers=JSON)
        assert answered.status_code == 401
        assert answered.json()["error"]["code"] == "unauthenticated"
        assert answered.headers["WWW-Authenticate"].startswith("Bearer")


async def test_a_session_is_its_beginners_alone(tmp_path: Path) -> None:
    async with served(tmp_path) as transport, caller(transport, ANN) as ann, caller(transport, BOB) as bob:
        begun = await ann.post("/mcp", json=BEGIN, headers=JSON)
        session = {**JSON, "Mcp-Session-Id": begun.headers["mcp-session-id"]}
        asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
        ready: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await ann.post("/mcp", json=ready, headers=session)).status_code == 202
        assert "search_tools" in (await ann.post("/mcp", json=asked, headers=session)).text
        assert (await bob.post("/mcp", json=asked, headers=session)).status_code == 404


async def test_a_web_page_of_elsewhere_reaches_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as transport, caller(transport, ANN) as ann:
        origin = await ann.post("/mcp", json=BEGIN, headers={**JSON, "Origin": "https://evil.example"})
        host = await ann.post("/mcp", json=BEGIN, headers={**JSON, "Host": "evil.example"})
    assert origin.status_code in (400, 403, 421)
    assert host.status_code in (400, 403, 421)


async def test_the_services_routes_are_beside_it(tmp_path: Path) -> None:
    async with served(tmp_path) as transport, caller(transport, ANN) as ann:
        answered = await ann.post("/v1/select", json={"goal": "list the issues of a repository"})
        assert [entry["tool_id"] for entry in answered.json()["menu"]][:1] == ["forge.list_issues"]


async def test_sessions_are_answered_until_the_server_has_lingered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AppStatus, "should_exit", False)
    monkeypatch.setattr(AppStatus, "enable_automatic_graceful_drain", True)
    app, assembly, loaded = built(tmp_path, shutdown=ShutdownSettings(linger_seconds=300))
    keep_streams()
    server = listening(app, assembly.door, loaded, "127.0.0.1", 0, end_streams)
    listener = server.config.bind_socket()
    listener.listen()
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    done = "list_issues did {'repository': 'a'}"
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {ANN}"}, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), mode="legacy") as ann,
    ):
        await ann.call_tool("search_tools", {"query": "list the issues of a repository"})
        assert text(await ann.call_tool("call_tool", LIST)) == done
        server.handle_exit(signal.SIGTERM, None)
        for _ in range(20):
            assert text(await ann.call_tool("call_tool", LIST)) == done
        assert (assembly.door.draining, AppStatus.should_exit) == (True, False)
        server.linger_s = 0.0  # it still holds a stream, on which it hears of changed tools
        await anyio.to_thread.run_sync(thread.join, 20)
        assert (thread.is_alive(), AppStatus.should_exit) == (False, True)

"""Credentials of servers: they reach their server, and nothing else, whatever a server does with them."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from upstream_servers import Desk, door_before, text, tool

from data.errors import InputError
from serving.mcp_door.credentials import HIDDEN, Credentials, check_credentials
from serving.mcp_door.settings import Taken, UpstreamSettings, UpstreamsFile

SECRET = "s3cr3t+value/of-the-forge"


def settings(**fields: Any) -> UpstreamSettings:
    return UpstreamSettings.model_validate(fields)


def test_values_come_from_the_environment_and_from_the_secrets_file(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.yaml"
    secrets.write_text(f"forge: {SECRET}\n")
    credentials = Credentials(str(secrets), {"TOKEN": "from-the-environment"})
    server = credentials.server(
        settings(
            url="https://forge.example/mcp",
            headers={
                "Authorization": {"secret": "forge", "prefix": "Bearer "},
                "X-Token": {"env": "TOKEN"},
                "X-Team": {"value": "red"},
            },
        )
    )
    assert server.headers == {"Authorization": f"Bearer {SECRET}", "X-Token": "from-the-environment", "X-Team": "red"}
    assert SECRET not in repr(server)
    assert credentials.hidden(f"{SECRET} red from-the-environment") == f"{HIDDEN} red {HIDDEN}"


def test_a_changed_secret_is_read_at_the_next_connection_and_both_are_hidden(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.yaml"
    secrets.write_text("forge: the-old-one\n")
    credentials = Credentials(str(secrets), {})
    asked = settings(command="serve", environment={"TOKEN": {"secret": "forge"}})
    assert credentials.server(asked).environment == {"TOKEN": "the-old-one"}
    secrets.write_text("forge: the-new-one\n")
    assert credentials.server(asked).environment == {"TOKEN": "the-new-one"}
    assert credentials.hidden("the-old-one the-new-one") == f"{HIDDEN} {HIDDEN}"


def test_an_address_that_holds_a_credential_is_hidden_whole_and_in_part() -> None:
    credentials = Credentials(None, {"FORGE_URL": "https://forge.example/mcp?key=abcdefgh"})
    credentials.server(settings(url={"env": "FORGE_URL"}))
    assert "abcdefgh" not in credentials.hidden("GET https://forge.example/mcp?key=abcdefgh; key 'abcdefgh' is bad")


def test_a_credential_is_hidden_wherever_it_is_in_json() -> None:
    credentials = Credentials(None, {"TOKEN": SECRET})
    credentials.server(settings(command="serve", environment={"TOKEN": {"env": "TOKEN"}}))
    value = {"a": [f"x {SECRET} y", {SECRET: 1}], "b": 2, "c": None}
    assert credentials.hidden_json(value) == {"a": [f"x {HIDDEN} y", {HIDDEN: 1}], "b": 2, "c": None}


def test_all_that_is_missing_is_said_at_once() -> None:
    found = UpstreamsFile(
        upstreams={
            "forge": settings(command="serve", environment={"A": {"env": "NO_SUCH_VARIABLE"}}),
            "billing": settings(url="https://billing.example/mcp", headers={"B": {"secret": "no-such-entry"}}),
        }
    )
    with pytest.raises(InputError, match=r"(?s)NO_SUCH_VARIABLE.*no-such-entry"):
        check_credentials(found, Credentials(None, {}))


def test_a_value_has_one_place() -> None:
    with pytest.raises(ValueError, match="one of env, secret and value"):
        Taken(env="A", secret="b")


def echo(name: str, arguments: Mapping[str, Any]) -> Any:
    """A server that gives away what it was given."""
    if arguments.get("how") == "error":
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=f"401: token {SECRET} has expired")], is_error=True
        )
    if arguments.get("how") == "raise":
        raise MCPError(types.INTERNAL_ERROR, f"upstream said: {SECRET}")
    link = types.ResourceLink(type="resource_link", name="it", uri=f"https://forge.example/?token={SECRET}")
    said = types.TextContent(type="text", text=f"my environment: TOKEN={SECRET} " + "x" * 300)
    return types.CallToolResult(content=[said, link], structured_content={"token": SECRET, SECRET: [SECRET]})


@pytest.mark.anyio
async def test_what_a_server_gives_away_of_its_credentials_goes_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORGE_TOKEN", SECRET)
    forge = Desk(tool("whoami", "Tell who is logged in.", how="string"), answer=echo)
    caplog.set_level(logging.DEBUG)
    logging.getLogger("toolcrib").addHandler(caplog.handler)
    seen: list[str] = []
    upstream = {"environment": {"TOKEN": {"env": "FORGE_TOKEN"}}}
    async with (
        door_before(tmp_path, upstream=upstream, cap=128, forge=forge) as running,
        running.client() as client,
    ):
        running.mcp.credentials.server(settings(command="serve", environment={"TOKEN": {"env": "FORGE_TOKEN"}}))
        seen.append(text(await client.call_tool("search_tools", {"query": "tell who is logged in"})))
        for how in ("plain", "error", "raise", f"mine is {SECRET}"):
            call = {"tool": "forge.whoami", "arguments": {"how": how}}
            called = await client.call_tool("call_tool", call)
            seen.append(called.model_dump_json(by_alias=True))
        handle = seen[1].partition("with handle ")[2].partition(" ")[0]
        seen.append(text(await client.call_tool("read_result", {"handle": handle, "start": 0, "length": 500})))
        assert HIDDEN in seen[-1]
        seen += [json.dumps(trace.model_dump(mode="json")) for trace in running.traces()]
        forge.tools["whoami"] = tool("whoami", f"Tell {SECRET}.", how="string")
        forge.tools[SECRET] = tool(SECRET, "A tool that is named after a secret.")
        await running.mcp.upstreams.check()
        forge.down = True
        await running.mcp.upstreams.check()
    logging.getLogger("toolcrib").removeHandler(caplog.handler)
    assert len(forge.calls) == 4
    assert forge.calls[0] == ("whoami", {"how": "plain"})
    assert "forge.whoami" in caplog.text
    out, err = capfd.readouterr()
    seen += [out, err, caplog.text]
    seen += [path.read_bytes().decode("latin-1") for path in tmp_path.iterdir() if path.is_file()]
    assert [part for part in seen if SECRET in part] == []

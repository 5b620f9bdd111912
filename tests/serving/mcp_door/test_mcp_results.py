"""Results: short ones pass as they are; of long ones the model gets the beginning and a handle to the rest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from upstream_servers import Desk, door_before, text, tool

from serving.mcp_door import results
from serving.mcp_door.results import capped

READ = {"tool": "files.read_file", "arguments": {"path": "a"}}


def said(*texts: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=one) for one in texts], **more)


def keep(whole: str) -> str:
    return f"kept {len(whole)}"


def test_a_short_answer_is_passed_on_as_it_is() -> None:
    given = said("one", "two", structured_content={"a": 1})
    assert capped(given, 100, keep) == given


def test_an_answer_of_structure_alone_is_given_as_text_too() -> None:
    found = capped(types.CallToolResult(content=[], structured_content={"a": 1}), 100, keep)
    assert (text(found), found.structured_content) == ('{"a": 1}', {"a": 1})


def test_a_long_answer_is_kept_and_its_structure_left_out() -> None:
    found = capped(said("x" * 60, "y" * 60, structured_content={"a": "x" * 120}, is_error=True), 100, keep)
    assert (text(found), found.structured_content, found.is_error) == ("kept 121", None, True)


def test_structure_that_is_too_long_is_left_out_beside_a_short_text() -> None:
    found = capped(said("short", structured_content={"a": "x" * 120}), 100, keep)
    assert (text(found), found.structured_content) == ("short", None)


def test_texts_in_files_count_as_text() -> None:
    inside = types.TextResourceContents(uri="file:///a", text="x" * 120)
    given = types.CallToolResult(content=[types.EmbeddedResource(type="resource", resource=inside)])
    assert text(capped(given, 100, keep)) == "kept 120"


def test_images_pass_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MEDIA_CHARACTERS", 200)
    image = types.ImageContent(type="image", data="A" * 100, mime_type="image/png")
    given = types.CallToolResult(content=[image, image])
    found = capped(given, 100, keep)
    assert found.content[0] == image
    assert "left out: too large" in text(found)


@pytest.mark.anyio
async def test_the_rest_of_a_long_result_is_read_by_its_handle_by_its_owner_alone(tmp_path: Path) -> None:
    whole = "".join(f"line {number}\n" for number in range(100))

    def answer(_: str, __: Mapping[str, Any]) -> str:
        return whole

    files = Desk(tool("read_file", "Read a file.", path="string"), answer=answer)
    async with door_before(tmp_path, cap=200, files=files) as running, running.client() as client:
        await client.call_tool("search_tools", {"query": "read a file"})
        called = text(await client.call_tool("call_tool", READ))
        assert called.startswith(whole[:200])
        assert len(called) < 350
        handle = called.partition("with handle ")[2].partition(" ")[0]
        rest = await client.call_tool("read_result", {"handle": handle, "start": 200, "length": 50})
        assert text(rest) == f"{whole[200:250]}\n[characters 200 to 250 of {len(whole)}]"
        missing = await client.call_tool("read_result", {"handle": "x" + handle})
        assert missing.is_error
        assert "no such observation" in text(missing)
        wrong = await client.call_tool("read_result", {"handle": handle, "start": -1})
        assert wrong.is_error
        assert "$.start" in text(wrong)

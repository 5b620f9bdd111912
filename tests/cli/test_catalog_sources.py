"""catalog import from where tools live: servers, OpenAPI documents, and files with something broken in them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from workshop import Run, write_json, write_lines

from data.jsonl import load_catalog

SERVER = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": message.get("id")}
    if message["method"] == "initialize":
        info = {"name": "x", "version": "1"}
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    elif message["method"] == "tools/list":
        answer["result"] = {"tools": [{"name": os.environ.get("POST_KEY", "none"), "inputSchema": {"type": "object"}}]}
    else:
        answer["error"] = {"code": -32601, "message": "?"}
    if "id" in message:
        print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def server(tmp_path: Path) -> str:
    path = tmp_path / "post_server.py"
    path.write_text(SERVER)
    return f"'{sys.executable}' '{path}'"


def test_a_started_server_is_asked_for_its_tools(
    run: Run, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POST_KEY", "k1")
    out = tmp_path / "c.jsonl"
    ran = run("catalog", "import", "--format", "mcp", "--command", server, "-o", out)
    assert ran.code == 0
    assert load_catalog(out).ids == ("post_server.none",)
    ran = run(
        "catalog", "import", "--format", "mcp", "--command", server, "--env", "POST_KEY", "--server", "p", "-o", out
    )
    assert load_catalog(out).ids == ("p.k1",)
    assert "1 of 1 imported" in ran.out


def test_a_dead_server_writes_nothing_and_is_one_line(run: Run, tmp_path: Path) -> None:
    command = f"'{sys.executable}' -c 'raise SystemExit(1)'"
    ran = run("catalog", "import", "--format", "mcp", "--command", command, "-o", tmp_path / "c.jsonl")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "ended before it had listed its tools" in ran.err
    assert not (tmp_path / "c.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["x.json", "--command", "y"], "either SRC or --command"),
        (["x.json", "--header", "A=B"], "for a live server"),
        (["x.json", "--env", "B"], "for a live server"),
        (["http://a", "--env", "B"], "for a server that is started"),
        (["http://a", "--header", "A"], "NAME=VARIABLE"),
        (["http://a", "--header", "A=UNSET_VARIABLE"], "no variable 'UNSET_VARIABLE'"),
        (["--command", "y", "--header", "A=B"], "at an address"),
        (["--command", "'"], "split into words"),
        (["--command", ""], "an address or a command"),
        (["--command", "y", "--env", "UNSET_VARIABLE"], "no variable 'UNSET_VARIABLE'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    run: Run, tmp_path: Path, arguments: list[str], words: str
) -> None:
    ran = run("catalog", "import", *arguments, "--format", "mcp", "-o", tmp_path / "c.jsonl")
    assert ran.code == 2
    assert words in ran.err


def test_an_openapi_document_is_imported_for_a_tenant(run: Run, tmp_path: Path) -> None:
    source = write_json(tmp_path / "shop.json", {"openapi": "3.1.0", "paths": {"/orders": {"get": {"summary": "All"}}}})
    out = tmp_path / "c.jsonl"
    assert run("catalog", "import", source, "--format", "openapi", "--tenant", "acme", "-o", out).code == 0
    (card,) = load_catalog(out)
    assert (card.tool_id, card.tenants, card.risk.word) == ("acme/shop.get_orders", ("acme",), "read_only")


def test_langchain_tools_are_imported_from_a_module_in_the_working_directory(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "crib_bench.py").write_text(
        "from langchain_core.tools import tool\n@tool\ndef add(a: int, b: int) -> int:\n    'Add two numbers.'\n"
    )
    monkeypatch.chdir(tmp_path)
    ran = run("catalog", "import", "crib_bench:add", "--format", "langchain", "--domain", "sums", "-o", "c.jsonl")
    assert (ran.code, "1 of 1 imported" in ran.out) == (0, True)
    assert load_catalog(tmp_path / "c.jsonl").ids == ("sums.add",)
    ran = run("catalog", "import", "crib_bench.py", "--format", "langchain", "-o", "d.jsonl")
    assert (ran.code, ran.err.count("\n"), "expected MODULE:ATTRIBUTE" in ran.err) == (2, 1, True)


def test_what_is_broken_stops_the_import_or_is_left_out_as_the_command_says(run: Run, tmp_path: Path) -> None:
    source, out = write_json(tmp_path / "s.json", {"tools": [{"name": "a"}, {"name": "a"}, 5]}), tmp_path / "c.jsonl"
    refused = run("catalog", "import", source, "--format", "mcp", "-o", out)
    assert (refused.code, out.exists()) == (2, False)
    ran = run("catalog", "import", source, "--format", "mcp", "--skip-bad", "-o", out)
    assert ran.code == 0
    assert "skipped 2: not usable" in ran.out
    assert [json.loads(line)["tool_id"] for line in out.read_text().splitlines()] == ["s.a"]


def test_an_overlay_adds_what_owners_know_and_names_what_fits_no_tool(run: Run, tmp_path: Path) -> None:
    source, out, owners = (
        write_json(tmp_path / "s.json", {"tools": [{"name": "a"}]}),
        tmp_path / "c.jsonl",
        tmp_path / "o",
    )
    owners.write_text("s.a: {summary: Say hello}\ns.b: {owner: x}\n")
    ran = run("catalog", "import", source, "--format", "mcp", "--overlay", owners, "-o", out)
    assert ran.code == 0
    assert load_catalog(out)["s.a"].summary == "Say hello"
    assert "'s.b' fits no tool" in ran.out
    owners.write_text("s.a: {risk: read_only}\n")
    ran = run("catalog", "import", source, "--format", "mcp", "--overlay", owners, "-o", tmp_path / "d.jsonl")
    assert (ran.code, ran.err.count("\n"), (tmp_path / "d.jsonl").exists()) == (2, 1, False)


def test_suggestions_are_written_as_an_overlay_that_an_import_takes(run: Run, tmp_path: Path) -> None:
    tools = [{"tool_id": "s.a", "name": "send", "description": "Send a mail. It is slow."}]
    catalog = write_lines(tmp_path / "c.jsonl", tools)
    log = write_lines(
        tmp_path / "t.jsonl", [{"trace_id": "1", "subgoal": "write to my aunt", "tool_id": "s.a", "ok": True}]
    )
    ran = run("catalog", "suggest", catalog, "--traces", log, "-o", tmp_path / "o.yaml")
    assert (ran.code, "summary for 1, examples for 1" in ran.out) == (0, True)
    out = tmp_path / "d.jsonl"
    assert run("catalog", "import", catalog, "--format", "jsonl", "--overlay", tmp_path / "o.yaml", "-o", out).code == 0
    assert load_catalog(out)["s.a"].examples == ("write to my aunt",)

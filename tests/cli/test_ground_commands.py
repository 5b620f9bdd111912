"""catalog import, catalog lint, traces import and mine: files in, files out, errors that say where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workshop import TOOLS, Run, write_json, write_lines

from data.jsonl import load_catalog
from data.trace_store import read_traces


def call(trace: int, goal: str, tool: str | None, ok: bool = True, **more: Any) -> dict[str, Any]:
    return {"trace_id": f"t{trace}", "step": 0, "task": goal, "subgoal": goal, "tool_id": tool, "ok": ok, **more}


TRACES = [
    call(1, "write to Ann about the offer", "mail.send_message"),
    call(2, "what did Bob send me last week", "mail.search_messages"),
    call(3, "am I free on Friday", "calendar.list_events"),
    call(4, "am I free on Monday", "mail.search_messages", ok=False, error_class="wrong_tool"),
    call(4, "am I free on Monday", "calendar.list_events"),
    call(5, "tell me a joke", None, ok=None, candidates=[]),
]


def test_no_arguments_print_the_commands(run: Run) -> None:
    ran = run()
    for command in ("demo", "catalog", "traces", "mine", "train", "evaluate", "select", "explain", "promote"):
        assert command in ran.out + ran.err


def test_importing_a_catalog_writes_every_tool(run: Run, catalog: Path, tmp_path: Path) -> None:
    ran = run("catalog", "import", catalog, "--format", "jsonl", "-o", tmp_path / "new" / "c.jsonl")
    assert ran.code == 0
    assert "4 of 4 imported" in ran.out
    assert load_catalog(tmp_path / "new" / "c.jsonl").ids == load_catalog(catalog).ids


def test_an_mcp_listing_takes_its_domain_and_trust_from_the_command_line(run: Run, tmp_path: Path) -> None:
    tool = {"name": "delete_page", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": False}}
    source = write_json(tmp_path / "tools.json", {"tools": [tool]})
    out = tmp_path / "c.jsonl"
    done = run("catalog", "import", source, "--format", "mcp", "--domain", "wiki", "--trust", "trusted", "-o", out)
    assert done.code == 0
    card = next(iter(load_catalog(out)))
    assert (card.domain, card.trust.word) == ("wiki", "trusted")


def test_an_unknown_format_is_refused_with_the_known_ones(run: Run, catalog: Path) -> None:
    ran = run("catalog", "import", catalog, "--format", "toml")
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("error: 'toml' is not a catalog format")
    assert "jsonl, mcp, openai, anthropic, bfcl" in ran.err


def test_a_broken_line_is_named_and_nothing_is_written(run: Run, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "c.jsonl", [TOOLS[0], {**TOOLS[1], "name": ""}])
    ran = run("catalog", "import", source, "--format", "jsonl", "-o", tmp_path / "out.jsonl")
    assert ran.code == 2
    assert f"error: {source}, line 2, field 'name'" in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "out.jsonl").exists()


def test_a_failed_import_leaves_the_old_catalog_as_it_was(run: Run, tmp_path: Path) -> None:
    out = write_lines(tmp_path / "out.jsonl", TOOLS)
    before = out.read_bytes()
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{")
    assert run("catalog", "import", broken, "--format", "jsonl", "-o", out).code == 2
    assert out.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["broken.jsonl", "out.jsonl"]


def test_unknown_keys_are_warned_of_on_stderr(run: Run, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "c.jsonl", [{**TOOLS[0], "colour": "red"}])
    ran = run("catalog", "lint", source)
    assert "warning:" in ran.err
    assert "colour (1)" in ran.err


def test_lint_finds_hidden_text_shows_it_and_fails(run: Run, tmp_path: Path) -> None:
    hidden = "Sends mail.\u202e Quietly.\x1b[31m"
    source = write_lines(tmp_path / "c.jsonl", [{**TOOLS[0], "description": hidden}])
    ran = run("catalog", "lint", source)
    assert ran.code == 1
    assert "invisible-text" in ran.out
    assert "\u202e" not in ran.out
    assert "\x1b" not in ran.out


def test_lint_speaks_json_and_sarif_alone_on_stdout(run: Run, catalog: Path) -> None:
    as_json = run("catalog", "lint", catalog, "--format", "json")
    assert as_json.code == 0
    assert set(as_json.json()) == {"findings", "counts"}
    sarif = run("catalog", "lint", catalog, "--format", "sarif").json()
    assert sarif["version"] == "2.1.0"
    lines = {
        result["locations"][0]["physicalLocation"].get("region", {}).get("startLine")
        for result in sarif["runs"][0]["results"]
        if result["message"]["text"].startswith("bank.transfer_money")
    }
    assert lines <= {4}


def test_importing_traces_writes_parquet_that_reads_back(run: Run, catalog: Path, tmp_path: Path) -> None:
    source, out = write_lines(tmp_path / "log.jsonl", TRACES), tmp_path / "traces.parquet"
    ran = run("traces", "import", source, "--format", "jsonl", "--catalog", catalog, "-o", out)
    assert ran.code == 0
    assert [t.tool_id for t in read_traces(out)] == [t["tool_id"] for t in TRACES]


def test_mining_prints_each_rule_and_writes_the_examples(run: Run, catalog: Path, tmp_path: Path) -> None:
    source, out = write_lines(tmp_path / "log.jsonl", TRACES), tmp_path / "mined"
    ran = run("mine", "--catalog", catalog, "--traces", source, "-o", out)
    assert ran.code == 0
    report = json.loads((out / "report.json").read_text())
    for rule in report["examples"]:
        assert rule in ran.out
    assert (out / "examples.parquet").is_file()


def test_mining_an_unknown_engine_is_refused(run: Run, catalog: Path, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "log.jsonl", TRACES)
    ran = run("mine", "--catalog", catalog, "--traces", source, "-o", tmp_path / "m", "--engine", "abacus")
    assert ran.code == 2
    assert "abacus" in ran.err
    assert not (tmp_path / "m").exists()

"""`toolcrib traces import`: any log in, traces and an honest report out, or an error that says what to check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from workshop import Run, write_lines

from data.trace_store import read_traces


def request(id: str, name: str, result: str, said: str = "") -> dict[str, Any]:
    call = {"id": id, "function": {"name": name, "arguments": "{}"}}
    messages = [
        {"role": "user", "content": f"task {id}"},
        {"role": "assistant", "content": said, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": result},
    ]
    return {"conversation_id": id, "messages": messages}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rows = [
        request("a", "mail__send_message", "sent"),
        request("b", "list_events", "Error: 401 unauthorized", said="Look up Ann's events, ann@example.com"),
        request("c", "send_mail", "sent"),
    ]
    return write_lines(tmp_path / "log.jsonl", rows)


def test_any_log_becomes_traces_with_a_report(run: Run, log: Path, catalog: Path, tmp_path: Path) -> None:
    out = tmp_path / "traces.parquet"
    ran = run("traces", "import", log, "--catalog", catalog, "-o", out)
    assert ran.code == 0
    assert [(t.tool_id, t.outcome) for t in read_traces(out)] == [
        ("mail.send_message", "success"),
        ("calendar.list_events", "failure"),
    ]
    for words in ("2 traces of 2 tasks", "auth 1", "unknown name, 1 calls: send_mail; nearest: mail.send_message"):
        assert words in ran.out
    for words in ("skipped 1: its tool is not in the catalog", "personal data: email 1", "--redact", "is this enough?"):
        assert words in ran.out


def test_json_is_one_object_and_nothing_else(run: Run, log: Path, catalog: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.parquet"
    told = run("traces", "import", log, "--format", "openai", "--catalog", catalog, "-o", out, "--json").json()
    assert told["traces"] == 2
    assert told["unresolved"][0] == {
        "name": "send_mail",
        "how": "unknown",
        "count": 1,
        "candidates": ["mail.send_message", "mail.search_messages"],
    }
    assert told["outcomes"] == {"success": 1, "failure": 1}


def test_a_dry_run_writes_nothing(run: Run, log: Path, catalog: Path, tmp_path: Path) -> None:
    out = tmp_path / "traces.parquet"
    ran = run("traces", "import", log, "--catalog", catalog, "-o", out, "--dry-run")
    assert ran.code == 0
    assert "nothing was written" in ran.out
    assert not out.exists()


def test_mapping_rules_and_redaction_are_heeded(run: Run, log: Path, catalog: Path, tmp_path: Path) -> None:
    mapping, rules, out = tmp_path / "names.yaml", tmp_path / "rules.yaml", tmp_path / "t.parquet"
    mapping.write_text("tools: {send_mail: mail.send_message}\n")
    rules.write_text("rules: [{name: sent, matches: ^sent$, outcome: unknown, error_class: none}]\n")
    options = ["--mapping", mapping, "--rules", rules, "--redact"]
    assert run("traces", "import", log, "--catalog", catalog, "-o", out, *options).code == 0
    traces = read_traces(out)
    assert [t.outcome for t in traces] == ["unknown", "failure", "unknown"]
    assert traces[1].goal == "Look up Ann's events, [email]"


def test_a_folder_without_logs_is_refused_with_what_to_check(run: Run, catalog: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    ran = run("traces", "import", empty, "--catalog", catalog, "-o", tmp_path / "t.parquet")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "there is no log file here" in ran.err
    (empty / "notes.txt").write_text("not a log\n")
    ran = run("traces", "import", empty, "--catalog", catalog, "-o", tmp_path / "t.parquet")
    assert ran.code == 2
    assert "no usable call" in ran.err
    assert "a file in no form that is known here" in ran.err
    assert not (tmp_path / "t.parquet").exists()


def test_when_nothing_usable_is_left_the_old_traces_stay(run: Run, log: Path, catalog: Path, tmp_path: Path) -> None:
    out = tmp_path / "traces.parquet"
    assert run("traces", "import", log, "--catalog", catalog, "-o", out).code == 0
    before = out.read_bytes()
    other = write_lines(tmp_path / "other.jsonl", [request("x", "somebody_elses_tool", "ok")])
    ran = run("traces", "import", other, "--catalog", catalog, "-o", out)
    assert ran.code == 2
    assert "is this the catalog that the log was made with? 'somebody_elses_tool' is not in it" in ran.err
    assert out.read_bytes() == before


def test_a_damaged_file_beside_a_good_one_costs_only_itself(run: Run, log: Path, catalog: Path, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    whole = log.read_bytes()
    (folder / "good.jsonl").write_bytes(whole)
    (folder / "cut.jsonl").write_bytes(whole.replace(b"task", b"ta\xffsk")[:-40])
    told = run("traces", "import", folder, "--catalog", catalog, "-o", tmp_path / "t.parquet", "--json").json()
    assert told["traces"] > 0
    assert told["skipped"]["the last line is cut off"]["count"] == 1
    assert told["noticed"]["bytes that are not UTF-8, replaced"]["count"] == 3


def test_standard_forms_keep_their_names(run: Run, catalog: Path) -> None:
    ran = run("traces", "import", "nowhere.jsonl", "--format", "xml", "--catalog", catalog)
    assert ran.code == 2
    for form in ("jsonl", "otel", "mlflow", "openai", "anthropic", "langsmith", "langfuse", "mcp", "bfcl"):
        assert form in ran.err


def test_bfcl_needs_no_source(run: Run, tmp_path: Path) -> None:
    catalog, out = tmp_path / "c.jsonl", tmp_path / "t.parquet"
    pytest.importorskip("bfcl_eval")
    assert run("catalog", "import", "--format", "bfcl", "-o", catalog).code == 0
    told = run("traces", "import", "--format", "bfcl", "--catalog", catalog, "-o", out, "--json").json()
    assert told["traces"] == told["records"] > 1000
    assert json.dumps(told["names"]).startswith('{"tool id"')

"""The plain form through the log import: whole or refused, tools looked up, everything counted."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from data.cards import ToolCard
from data.catalog import Catalog
from data.errors import InputError
from data.logs import import_logs, to_text

A = Catalog([ToolCard(tool_id="a", name="a")])


def calls(path: Path, *tools: str | None) -> Path:
    rows = [{"trace_id": str(n), "subgoal": "g", "tool_id": t, "candidates": ["a", "z"]} for n, t in enumerate(tools)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_calls_of_tools_outside_the_catalog_are_counted_and_left_out(tmp_path: Path) -> None:
    running = import_logs([calls(tmp_path / "t.jsonl", "a", "b", None, "b")], "jsonl", A)
    assert [trace.tool_id for trace in running.traces()] == ["a", None]
    report = running.report()
    assert (report.records, report.traces) == (4, 2)
    assert report.skipped["its tool is not in the catalog"].count == 2
    assert [(one.name, one.count) for one in report.unresolved] == [("b", 2)]


def test_traces_of_another_catalog_altogether_are_refused(tmp_path: Path) -> None:
    running = import_logs([calls(tmp_path / "t.jsonl", "b", None)], "jsonl", A)
    with pytest.raises(InputError, match=r"no usable call.*is this the catalog.*'b' is not in it"):
        list(running.traces())


def test_a_log_without_any_call_is_a_log_of_what_nothing_fitted(tmp_path: Path) -> None:
    running = import_logs([calls(tmp_path / "t.jsonl", None)], "jsonl", A)
    assert [trace.tool_id for trace in running.traces()] == [None]


def test_one_broken_line_refuses_the_file(tmp_path: Path) -> None:
    path = calls(tmp_path / "t.jsonl", "a", "a")
    path.write_text(path.read_text() + '{"trace_id": "3"\n')
    with pytest.raises(InputError, match=r"t\.jsonl, line 3: broken JSON"):
        list(import_logs([path], "jsonl", A).traces())


def test_a_field_that_does_not_fit_is_named_with_its_line(tmp_path: Path) -> None:
    path = calls(tmp_path / "t.jsonl", "a")
    path.write_text(path.read_text() + '{"trace_id": "3", "subgoal": "g", "tool_id": "a", "step": "x"}\n')
    with pytest.raises(InputError, match=r"t\.jsonl, line 2, field 'step'"):
        list(import_logs([path], "jsonl", A).traces())


def test_an_unknown_format_names_the_ones_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'yaml' is not a trace format.*auto, jsonl, otel"):
        import_logs([tmp_path], "yaml", A)


def test_folders_and_compressed_files_are_read_too(tmp_path: Path) -> None:
    calls(tmp_path / "one.jsonl", "a")
    plain = calls(tmp_path / "two.jsonl", "a", "a")
    (tmp_path / "two.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    running = import_logs([tmp_path], "auto", A)
    assert len(list(running.traces())) == 3
    assert running.report().files == 2


def test_the_report_reads_as_lines(tmp_path: Path) -> None:
    running = import_logs([calls(tmp_path / "t.jsonl", "a", "b")], "jsonl", A)
    list(running.traces())
    told = to_text(running.report())
    assert "1 traces of 1 tasks" in told
    assert "skipped 1: its tool is not in the catalog (first: " in told
    assert "is this enough?" in told

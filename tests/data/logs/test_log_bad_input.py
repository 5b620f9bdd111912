"""Bad input: each kind costs only itself, and the report says how often it came and what it was."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from desk import DESK, called, imported, imported_with_report, write_lines
from opentelemetry.trace import SpanKind
from traced import Traced

from data.logs.distinct import Counted
from data.logs.names import Names
from data.logs.report import LogReport, to_text
from toolcrib.cli import main

DAY_NS = 86_400 * 10**9
USER, DONE = {"role": "user", "content": "find the letter of Ann"}, {"role": "assistant", "content": "Done."}


def call(number: int = 1, name: str = "mail__search", arguments: str = '{"q": "Ann"}') -> dict[str, Any]:
    one = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": "I look for her letter.", "tool_calls": [one]}


def result(number: int = 1, text: str = "found") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


def chat(*messages: dict[str, Any], id: str = "s") -> dict[str, Any]:
    return {"messages": [USER, *messages, DONE], "conversation_id": id}


def counted(report: LogReport) -> dict[str, int]:
    """Every reason with its count."""
    return {reason: one.count for reason, one in (report.skipped | report.noticed).items()}


def told(span: str, log: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the spans of that name in a file of OTLP JSON."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        for one in (one for batch in line["resourceSpans"] for scope in batch["scopeSpans"] for one in scope["spans"]):
            if one["name"].startswith(span):
                change(one)
    write_lines(log, lines)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A task of an agent with one call, as OTLP JSON."""
    traced = Traced()
    start = traced.tracer.start_as_current_span
    with (
        start("invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent", "input.value": "Will it rain?"}),
        start("execute_tool get_forecast", kind=SpanKind.INTERNAL, attributes={"gen_ai.tool.name": "get_forecast"}),
    ):
        pass
    return traced.json_lines(tmp_path / "spans.jsonl")


def test_a_last_line_that_is_cut_off(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log.jsonl", [chat(call(), result(), id="a"), chat(call(), result(), id="b")])
    log.write_bytes(log.read_bytes()[:-40])
    traces, report = imported_with_report(log)
    assert (len(traces), counted(report)) == (1, {"the last line is cut off": 1})
    assert report.skipped["the last line is cut off"].first == f"{log}, line 2"


def test_records_of_other_schemas_in_one_file_and_one_folder(tmp_path: Path, log: Path) -> None:
    mixed = [chat(call(), result()), {"level": "info", "msg": "started"}, 7, {"resourceSpans": []}, "text", [1, 2]]
    write_lines(tmp_path / "chat.jsonl", mixed)
    (tmp_path / "notes.txt").write_text("no log at all\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    traces, report = imported_with_report(tmp_path)
    assert sorted(trace.tool_id or "" for trace in traces) == ["mail.search", "weather.get_forecast"]
    assert counted(report) == {"a file in no form that is known here": 2, "a record that is no chat": 5}


def test_spans_whose_parents_never_arrive(log: Path) -> None:
    told("execute_tool", log, lambda span: span.update(parentSpanId="0123456789abcdef"))
    traces, report = imported_with_report(log)
    assert called(traces) == [("weather.get_forecast", "success", "none")]
    assert traces[0].goal == "Will it rain?", "what the rest of the trace was for"
    assert counted(report) == {"a span whose parent never arrived": 1}


def test_a_child_that_starts_before_its_parent(log: Path) -> None:
    told("execute_tool", log, lambda span: span.update(startTimeUnixNano=str(int(span["startTimeUnixNano"]) - 10**9)))
    traces, report = imported_with_report(log)
    assert [(trace.tool_id, trace.goal) for trace in traces] == [("weather.get_forecast", "Will it rain?")]
    assert counted(report) == {"a span that starts before its parent, as by another clock": 1}


def test_a_span_that_ends_before_it_starts(log: Path) -> None:
    told("execute_tool", log, lambda span: span.update(endTimeUnixNano=str(int(span["startTimeUnixNano"]) - 1000)))
    traces, report = imported_with_report(log)
    assert (traces[0].latency_ms, traces[0].ts is None) == (None, False)
    assert counted(report) == {"a call that ends before it starts, its latency left out": 1}


@pytest.mark.parametrize("start", ["0", "1000", str(10**18 * 9), str(2_000 * 365 * DAY_NS), "-5", "soon"])
def test_times_that_are_years_off(log: Path, start: str) -> None:
    told("", log, lambda span: span.update(startTimeUnixNano=start, endTimeUnixNano=start))
    traces, report = imported_with_report(log)
    assert [(trace.tool_id, trace.ts) for trace in traces] == [("weather.get_forecast", None)]
    unended = {"a call without a result"} if start == "0" else set()
    assert counted(report).keys() <= {"a time before 2000 or in the future, left out of the trace"} | unended
    assert report.earliest is None


def test_a_call_without_a_result(tmp_path: Path) -> None:
    traces, report = imported_with_report(write_lines(tmp_path / "log.jsonl", [chat(call())]))
    assert (called(traces), counted(report)) == (
        [("mail.search", "unknown", "none")],
        {"a call without a result": 1},
    )


def test_a_result_without_a_call(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log.jsonl", [chat(result(9), call(), result())])
    traces, report = imported_with_report(log)
    assert (len(traces), counted(report)) == (1, {"a result without a call": 1})
    assert "id c9" in report.skipped["a result without a call"].first


def test_arguments_of_fifty_megabytes(tmp_path: Path) -> None:
    huge = json.dumps({"text": "x" * 50_000_000})
    log = write_lines(tmp_path / "log.jsonl", [chat(call(arguments=huge), result()), chat(call(), result(), id="b")])
    traces, report = imported_with_report(log)
    assert [trace.arguments for trace in traces] == [None, {"q": "Ann"}]
    assert counted(report) == {"arguments of over 64 KB, left out of the trace": 1}


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log.jsonl", [chat(call(), result())])
    log.write_bytes(log.read_bytes().replace(b"letter of Ann", b"letter of \xc4nn"))
    traces, report = imported_with_report(log)
    assert traces[0].request == "find the letter of \ufffdnn"
    assert counted(report) == {"bytes that are not UTF-8, replaced": 1}


def test_numbers_that_json_has_no_word_for(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log.jsonl", [chat(call(arguments='{"n": 1e999, "m": [NaN]}'), result())])
    assert imported(log)[0].arguments == {"n": None, "m": [None]}


def test_nesting_without_end(tmp_path: Path) -> None:
    deep = '{"a": ' * 500 + "1" + "}" * 500
    log = write_lines(tmp_path / "log.jsonl", [chat(call(arguments=deep), result(text=deep))])
    log.write_text(log.read_text() + deep + "\n")
    traces, report = imported_with_report(log)
    assert called(traces) == [("mail.search", "success", "none")]
    assert counted(report) == {"broken JSON": 1, "arguments that are no object, left out of the trace": 1}


def test_an_explosion_of_names_is_reported_by_its_top_and_its_number(tmp_path: Path) -> None:
    calls = [call(n, f"tool_{n}")["tool_calls"][0] for n in range(3_000)]
    calls.append(call(3_000, "tool_7")["tool_calls"][0])
    exploded = chat({"role": "assistant", "tool_calls": calls}, *(result(n) for n in range(3_001)), id="b")
    traces, report = imported_with_report(write_lines(tmp_path / "log.jsonl", [chat(call(), result()), exploded]))
    assert called(traces) == [("mail.search", "success", "none")]
    assert counted(report) == {"its tool is not in the catalog": 3_001}
    assert (report.unresolved_names, len(report.unresolved)) == (3_000, 20)
    assert (report.unresolved[0].name, report.unresolved[0].count) == ("tool_7", 2)
    assert "  3,000 different names without a tool in all" in to_text(report)


def test_names_without_end_take_bounded_memory() -> None:
    names = Names(DESK, kept=100)
    tracemalloc.start()
    for number in range(2_000):
        names.resolve(f"{number} " + "x" * 2_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000, "the names alone are four times that"
    assert names.distinct == pytest.approx(2_000, rel=0.1)


def test_names_beyond_those_that_are_counted_each_are_counted_within_a_few_percent() -> None:
    names = Counted(kept=1_000)
    for number in range(50_000):
        names.add(f"tool {number}")
        names.add("tool 7")
    assert (len(names.each), names.each["tool 7"], names.beyond) == (1_000, 50_001, 49_000)
    assert names.distinct == pytest.approx(50_000, rel=0.1)
    few = Counted(kept=10)
    for number in range(500):
        few.add(f"tool {number}")
        few.add(f"tool {number}")
    assert few.distinct == 500


def test_a_name_of_a_megabyte_is_kept_short() -> None:
    names = Counted()
    assert len(names.add("x" * 1_000_000)) < 250
    names.add("x" * 999_999)
    assert names.distinct == 2, "and still is another than one that begins alike"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "there is no log file here"),
        ({"README.md": "# how to"}, "no usable call in 0 files with 0 records: 1 times a file in no form"),
        ({".hidden.jsonl": json.dumps(chat(call(), result()))}, "there is no log file here"),
        ({"empty.jsonl": ""}, "no form"),
        ({"chat.jsonl": json.dumps(chat(id="a"))}, "no usable call in 1 files with 1 records"),
        ({"chat.jsonl": json.dumps(chat(call(name="gone"), result()))}, "'gone' is not in it"),
    ],
)
def test_a_folder_without_a_usable_log_ends_with_2_and_what_to_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], said: str
) -> None:
    folder, out = tmp_path / "logs", tmp_path / "traces.parquet"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)
    out.write_bytes(b"of before")
    rows = [{"tool_id": card.tool_id, "name": card.name, "domain": card.domain, "description": "d"} for card in DESK]
    write_lines(tmp_path / "catalog.jsonl", rows)
    words = ["traces", "import", str(folder), "--catalog", str(tmp_path / "catalog.jsonl"), "-o", str(out)]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert "(" in error, "what to check"
    assert out.read_bytes() == b"of before"

"""From decisions to lines: goals, doors, repeats, personal data, and values that do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from desk import called, imported, imported_with_report, menu, write_lines

from data.logs.events import Call, Decision
from data.logs.goals import goal_of
from data.logs.redact import PATTERNS, Found, masked


def log(path: Path, *steps: tuple[str, str, dict[str, Any], str], tools: list[str] | None = None) -> Path:
    """A transcript: (what the model says, tool, arguments, result) of each step after one request."""
    messages: list[Any] = [{"role": "user", "content": "the request"}]
    for number, (said, name, arguments, result) in enumerate(steps):
        call = {"id": f"c{number}", "function": {"name": name, "arguments": arguments}}
        messages.append({"role": "assistant", "content": said, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result})
    offered = None if tools is None else [{"function": {"name": name}} for name in tools]
    return write_lines(path, [{"conversation_id": "t", "messages": messages, "tools": offered}])


@pytest.mark.parametrize(
    ("more", "goal"),
    [
        ({"said": "I look up Ann's mail."}, ("I look up Ann's mail.", "model")),
        ({"said": "Let me check."}, ("the request", "request")),
        ({"said": "Sure!", "searched": "find mail"}, ("find mail", "search")),
        ({"plan": "write the report"}, ("write the report", "plan")),
        ({"request": "", "said": "Let me check."}, ("Let me check.", "model")),
        ({"request": "", "hint": "old invoices"}, ("old invoices", "arguments")),
        ({"request": ""}, None),
        ({"said": "I look up Ann's mail.", "calls": ()}, ("the request", "request")),
        ({"said": "今、確認します"}, ("今、確認します", "model")),
    ],
)
def test_the_goal_is_the_nearest_words_that_say_something(more: dict[str, Any], goal: object) -> None:
    given = {"request": "the request", "calls": (Call("x"),), **more}
    assert goal_of(Decision("t", **given)) == goal


def test_behind_a_search_and_a_call_by_name_is_the_real_tool(tmp_path: Path) -> None:
    found = '{"tools": [{"name": "search", "server": "mail"}, {"name": "get_forecast"}]}'
    path = log(
        tmp_path / "l.jsonl",
        ("", "search_tools", {"query": "find a mail"}, found),
        ("", "call_tool", {"tool_name": "search", "server_name": "mail", "arguments": {"q": "x"}}, "one mail"),
        tools=["search_tools", "call_tool"],
    )
    (trace,) = imported(path, format="openai")
    assert (trace.tool_id, trace.goal, trace.arguments) == ("mail.search", "find a mail", {"q": "x"})
    assert menu(trace) == ["mail.search", "weather.get_forecast"]


def test_doors_of_other_names_are_told_by_a_mapping(tmp_path: Path) -> None:
    mapping = tmp_path / "names.yaml"
    mapping.write_text("searches: {route: want}\nwrappers: {go: {name: which, arguments: with}}\n")
    path = log(
        tmp_path / "l.jsonl",
        ("", "route", {"want": "find a mail"}, "[]"),
        ("", "go", {"which": "mail.search", "with": {"q": "x"}}, "one mail"),
    )
    (trace,) = imported(path, format="openai", mapping=mapping)
    assert (trace.tool_id, trace.goal, trace.arguments, trace.menu) == ("mail.search", "find a mail", {"q": "x"}, None)


def test_the_open_step_of_a_plan_is_the_goal_of_what_follows(tmp_path: Path) -> None:
    todos = [{"content": "ask Ann", "status": "completed"}, {"content": "book Friday", "status": "in_progress"}]
    path = log(
        tmp_path / "l.jsonl", ("", "TodoWrite", {"todos": todos}, "ok"), ("", "calendar.search", {}, "free"),
    )  # fmt: skip
    (trace,) = imported(path, format="openai")
    assert (trace.tool_id, trace.goal) == ("calendar.search", "book Friday")


def test_a_retry_is_one_line_with_the_best_that_came_of_it(tmp_path: Path) -> None:
    path = log(
        tmp_path / "l.jsonl",
        ("Find Ann's mail", "mail.search", {"q": "Ann"}, "Error: timed out"),
        ("Once more, with feeling", "mail.search", {"q": "Ann"}, "one mail"),
        ("Find Bob's mail", "mail.search", {"q": "Bob"}, "two mails"),
    )
    traces, report = imported_with_report(path, format="openai")
    assert [(t.goal, t.outcome, t.arguments) for t in traces] == [
        ("Find Ann's mail", "success", {"q": "Ann"}),
        ("Find Bob's mail", "success", {"q": "Bob"}),
    ]
    assert report.repeats == 1


def test_a_loop_of_two_tools_is_each_of_them_once(tmp_path: Path) -> None:
    both = [("", "mail.search", {"q": "x"}, "[]"), ("", "calendar.search", {"q": "x"}, "Error: 500")]
    traces, report = imported_with_report(log(tmp_path / "l.jsonl", *both * 4), format="openai")
    assert called(traces) == [("mail.search", "success", "empty_result"), ("calendar.search", "failure", "tool_error")]
    assert report.repeats == 6


def test_lines_that_another_trace_has_word_for_word_are_suspected(tmp_path: Path) -> None:
    rows = []
    for name in ("a", "b", "c"):
        path = log(tmp_path / "l.jsonl", ("", "mail.search", {"q": name != "c"}, "found"))
        rows.append(path.read_text().replace('"t"', f'"{name}"'))
    (tmp_path / "l.jsonl").write_text("".join(rows))
    traces, report = imported_with_report(tmp_path / "l.jsonl", format="openai")
    assert (len(traces), report.duplicates) == (3, 1)


def test_arguments_that_do_not_fit_are_left_out_and_counted(tmp_path: Path) -> None:
    path = log(
        tmp_path / "l.jsonl",
        ("a b c", "mail.search", {"q": "x" * 50_000_000}, "found"),
        ("d e f", "mail.search", "just words", "found"),  # type: ignore[arg-type]
        ("g \ud800 h", "mail.search", {"q": float("nan")}, "found"),
    )
    traces, report = imported_with_report(path, format="openai")
    assert [(trace.goal, trace.arguments) for trace in traces] == [
        ("a b c", None),
        ("d e f", None),
        ("g ? h", {"q": None}),
    ]
    assert [one.count for one in report.noticed.values()] == [1, 1]


SAMPLES = {
    "secret": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "email": "ann.smith@example.com",
    "iban": "DE89 3704 0044 0532 0130 00",
    "card": "4111 1111 1111 1111",
    "us_ssn": "123-45-6789",
    "ip_address": "192.168.10.20",
    "phone": "+44 20 7946 0958",
    "phone_us": "(555) 010-9999",
}


@pytest.mark.parametrize("kind", PATTERNS)
def test_each_kind_of_personal_data_is_masked(kind: str) -> None:
    found = Found()
    name = "phone" if kind == "phone_us" else kind
    assert masked(f"see {SAMPLES[kind]}, thanks", found) == f"see [{name}], thanks"
    assert found == {name: 1}


@pytest.mark.parametrize(
    "text", ["order 4711", "2026-03-01 10:00", "version 1.2.3", "4111 1111 1111 1112", "a@b", "row 12345678901234"]
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    found = Found()
    assert masked(text, found) == text
    assert not found


def test_redaction_reaches_words_and_arguments_and_is_off_by_default(tmp_path: Path) -> None:
    path = log(tmp_path / "l.jsonl", ("Write to ann@example.com", "mail.search", {"a": ["bob@example.com"]}, "ok!"))
    plain, told = imported_with_report(path, format="openai")
    assert (plain[0].goal, told.personal, told.redacted) == ("Write to ann@example.com", {"email": 2}, False)
    (safe,) = imported(path, format="openai", redact=True)
    assert (safe.goal, safe.arguments) == ("Write to [email]", {"a": ["[email]"]})


def test_mixed_schemas_in_a_file_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    path = log(tmp_path / "l.jsonl", ("", "mail.search", {}, "found"))
    path.write_text(path.read_text() + '{"level": "info", "msg": "started"}\n[1]\n7\n')
    traces, report = imported_with_report(path)
    assert len(traces) == 1
    assert report.skipped["a record that is no chat"].count == 3

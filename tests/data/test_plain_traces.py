"""Plain trace lines: their words, what they mean together, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from data.errors import InputError
from data.plain import Place, trace_from_row
from data.traces import Shown, Trace

PLACE = Place("t.jsonl", 4)
ROW = {
    "trace_id": "t1",
    "step": 2,
    "task": "Tell Ann that I am late",
    "subgoal": "send a message",
    "tool_id": "mail.send",
    "arguments": {"to": "Ann"},
    "ok": True,
    "task_success": False,
    "candidates": ["mail.send", "chat.post"],
}


def test_the_plain_words_become_the_fields_of_a_trace() -> None:
    assert trace_from_row(ROW, PLACE) == Trace(
        trace_id="t1",
        step=2,
        request="Tell Ann that I am late",
        goal="send a message",
        tool_id="mail.send",
        arguments={"to": "Ann"},
        outcome="success",
        task_success=False,
        menu=(Shown(tool_id="mail.send", position=0), Shown(tool_id="chat.post", position=1)),
    )


def test_a_trace_in_its_own_words_comes_back_equal() -> None:
    trace = trace_from_row({**ROW, "ts": "2026-01-02T03:04:05+01:00", "tenant": "a", "mutation": True}, PLACE)
    assert trace_from_row(trace.model_dump(mode="json"), PLACE) == trace


def test_a_time_without_a_zone_is_utc() -> None:
    trace = trace_from_row({**ROW, "ts": "2026-01-02T03:04:05"}, PLACE)
    assert trace.ts == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_null_tool_says_that_none_was_called() -> None:
    trace = trace_from_row({"trace_id": "t", "subgoal": "sing", "tool_id": None}, PLACE)
    assert (trace.tool_id, trace.outcome, trace.menu) == (None, "unknown", None)


def test_a_line_without_a_subgoal_is_about_its_task() -> None:
    trace = trace_from_row({"trace_id": "t", "task": "sing", "tool_id": None}, PLACE)
    assert (trace.request, trace.goal) == ("sing", "sing")


@pytest.mark.parametrize(
    ("ok", "error_class", "outcome"),
    [
        (True, None, "success"),
        (True, "none", "success"),
        (True, "empty_result", "success"),
        (True, "tool_error", "failure"),
        (True, "timeout", "failure"),
        (True, "wrong_tool", "failure"),
        (False, None, "failure"),
        (None, None, "unknown"),
        (None, "empty_result", "unknown"),
        (None, "rate_limited", "failure"),
    ],
)
def test_an_error_class_outweighs_a_flag_that_says_ok(ok: bool | None, error_class: str | None, outcome: str) -> None:
    trace = trace_from_row({**ROW, "ok": ok, "error_class": error_class}, PLACE)
    assert trace.outcome == outcome
    assert trace.error_class == (error_class or "none")


def test_a_candidate_named_twice_keeps_its_first_place() -> None:
    trace = trace_from_row({**ROW, "candidates": ["b", "a", "b", "c"]}, PLACE)
    assert [(entry.tool_id, entry.position) for entry in trace.menu or ()] == [("b", 0), ("a", 1), ("c", 2)]


def test_an_empty_menu_is_not_an_unknown_menu() -> None:
    assert trace_from_row({**ROW, "candidates": []}, PLACE).menu == ()
    assert trace_from_row({**ROW, "candidates": None}, PLACE).menu is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"trace_id": None}, "trace_id"),
        ({"trace_id": " "}, "trace_id"),
        ({"trace_id": 5}, "trace_id"),
        ({"step": "2"}, "step"),
        ({"step": 1.5}, "step"),
        ({"task": 5}, "task"),
        ({"subgoal": ["send"]}, "subgoal"),
        ({"subgoal": "", "task": " "}, "subgoal"),
        ({"tool_id": ""}, "tool_id"),
        ({"tool_id": 1}, "tool_id"),
        ({"arguments": "{}"}, "arguments"),
        ({"ok": "true"}, "ok"),
        ({"ok": 1}, "ok"),
        ({"task_success": 0}, "task_success"),
        ({"candidates": "mail.send"}, "candidates"),
        ({"candidates": ["mail.send", None]}, "candidates.1"),
        ({"error_class": "boom"}, "error_class"),
        ({"ts": "soon"}, "ts"),
        ({"ts": "0001-01-01T00:00:00+14:00"}, "ts"),
        ({"request": "again"}, "task"),
        ({"goal": "again"}, "subgoal"),
        ({"outcome": "success"}, "ok"),
        ({"menu": []}, "candidates"),
        ({"candidates": None, "menu": [{"tool_id": "a", "position": 0, "propensity": 0}]}, "menu.0.propensity"),
        ({"latency_ms": float("inf")}, ""),
    ],
)
def test_a_wrong_trace_field_is_named_with_its_line(change: dict[str, object], field: str) -> None:
    with pytest.raises(InputError) as caught:
        trace_from_row({**ROW, **change}, PLACE)
    assert (caught.value.source, caught.value.line, caught.value.field) == ("t.jsonl", 4, field)


def test_a_line_that_does_not_say_which_tool_is_refused() -> None:
    with pytest.raises(InputError, match=r"'tool_id'.*null where none was called"):
        trace_from_row({"trace_id": "t", "subgoal": "sing"}, PLACE)

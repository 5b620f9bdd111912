"""Chat logs written by the official OpenAI and Anthropic clients, talking to a model on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from desk import DESK, called, imported, imported_with_report, menu, write_lines
from stand_in import answering

from data.wire_names import wire_name

ASK = "Am I free on Friday? Then tell Ann."
FUNCTIONS = [
    {"type": "function", "function": {"name": wire_name(t), "parameters": {"type": "object"}}} for t in DESK.ids
]


def chat_answer(text: str | None, *calls: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    tool_calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for id, name, arguments in calls
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": tool_calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"id": "c", "object": "chat.completion", "created": 1_770_000_000, "model": "m", "choices": [choice]}


def chat_log(path: Path, answers: list[dict[str, Any]], results: dict[str, str], ask: str = ASK) -> Path:
    """What an agent logs that writes down each request with its response."""
    lines = []
    messages: list[Any] = [{"role": "system", "content": "You help."}, {"role": "user", "content": ask}]
    with answering(answers) as url:
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        for _ in answers:
            request: dict[str, Any] = {"model": "m", "messages": list(messages), "tools": FUNCTIONS}
            response = client.chat.completions.create(**request)
            lines.append({"request": request, "response": response.model_dump(mode="json")})
            message = response.choices[0].message
            messages.append(message.model_dump(mode="json", exclude_none=True))
            for call in message.tool_calls or ():
                messages.append({"role": "tool", "tool_call_id": call.id, "content": results[call.id]})
    return write_lines(path, lines)


def test_openai_steps_have_goal_menu_arguments_and_outcome(tmp_path: Path) -> None:
    answers = [
        chat_answer("Let me list Friday's events.", ("c1", "calendar__list_events", {"day": "Friday"})),
        chat_answer(None, ("c2", "mail__send_message", {"to": "Ann"})),
        chat_answer("You are free, and Ann knows."),
    ]
    log = chat_log(tmp_path / "log.jsonl", answers, {"c1": "[]", "c2": "Error: token expired"})
    traces, report = imported_with_report(log, format="openai")
    assert called(traces) == [
        ("calendar.list_events", "success", "empty_result"),
        ("mail.send_message", "failure", "auth"),
    ]
    first, second = traces
    assert (first.goal, second.goal, first.request) == ("Let me list Friday's events.", ASK, ASK)
    assert first.arguments == {"day": "Friday"}
    assert menu(first) == list(DESK.ids)
    assert (first.trace_id, first.step, second.step) == (second.trace_id, 0, 1)
    assert first.ts is not None
    assert report.goals == {"model": 1, "request": 1}


def test_parallel_calls_are_one_step_of_two_calls(tmp_path: Path) -> None:
    calls = [("c1", "mail__search", {"q": "x"}), ("c2", "calendar__search", {"q": "x"})]
    answers = [chat_answer("Search both for x.", *calls), chat_answer("Done.")]
    log = chat_log(tmp_path / "log.jsonl", answers, {"c1": "one", "c2": "two"})
    traces = imported(log, format="openai")
    assert [(t.step, t.goal, t.tool_id) for t in traces] == [
        (0, "Search both for x.", "mail.search"),
        (0, "Search both for x.", "calendar.search"),
    ]


def test_a_request_answered_without_a_call_is_a_step_without_one(tmp_path: Path) -> None:
    log = chat_log(tmp_path / "log.jsonl", [chat_answer("A joke: ...")], {}, ask="Tell me a joke")
    other = chat_log(tmp_path / "other.jsonl", [chat_answer("For which day?")], {}, ask="Am I free?")
    traces = imported(log, other, format="openai")
    assert [(t.tool_id, t.goal, t.outcome) for t in traces] == [(None, "Tell me a joke", "unknown")]


def test_two_conversations_that_begin_alike_stay_two(tmp_path: Path) -> None:
    for number, tool in enumerate(("mail__search", "calendar__search")):
        answers = [chat_answer(None, (f"c{number}", tool, {"q": "x"})), chat_answer("Done.")]
        chat_log(tmp_path / f"{number}.jsonl", answers, {f"c{number}": "found"})
    traces = imported(tmp_path, format="openai")
    assert len({trace.trace_id for trace in traces}) == 2
    assert {trace.tool_id for trace in traces} == {"mail.search", "calendar.search"}


def test_the_same_file_twice_counts_once(tmp_path: Path) -> None:
    answers = [chat_answer(None, ("c1", "mail__search", {})), chat_answer("Done.")]
    log = chat_log(tmp_path / "log.jsonl", answers, {"c1": "found"})
    (tmp_path / "copy.jsonl").write_bytes(log.read_bytes())
    assert len(imported(tmp_path, format="openai")) == 1


def test_a_last_call_without_a_result_is_kept_as_unknown(tmp_path: Path) -> None:
    log = chat_log(tmp_path / "log.jsonl", [chat_answer(None, ("c1", "mail__search", {}))], {"c1": "never sent"})
    traces, report = imported_with_report(log, format="openai")
    assert called(traces) == [("mail.search", "unknown", "none")]
    assert report.noticed["a call without a result"].count == 1


def response(id: str, *output: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": id, "object": "response", "created_at": 1_770_000_000, "model": "m", "output": list(output),
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip


def test_responses_are_chained_by_their_ids(tmp_path: Path) -> None:
    said = {"type": "output_text", "text": "I look for the invoice.", "annotations": []}
    message = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [said]}
    call = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "mail__search", "arguments": '{"q": "i"}'}
    bye = {**message, "id": "m2", "content": [{**said, "text": "Found."}]}
    tools = [{"type": "function", "name": wire_name(t), "parameters": {}, "strict": False} for t in DESK.ids]
    lines = []
    with answering([response("r1", message, call), response("r2", bye)]) as url:
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        first: dict[str, Any] = {"model": "m", "input": "Where is the invoice?", "tools": tools}
        answered = client.responses.create(**first)
        lines.append({"request": first, "response": answered.model_dump(mode="json")})
        output = [{"type": "function_call_output", "call_id": "c1", "output": "invoice.pdf"}]
        second: dict[str, Any] = {"model": "m", "input": output, "previous_response_id": answered.id, "tools": tools}
        lines.append({"request": second, "response": client.responses.create(**second).model_dump(mode="json")})
    (trace,) = imported(write_lines(tmp_path / "log.jsonl", lines), format="openai")
    assert (trace.tool_id, trace.outcome, trace.goal) == ("mail.search", "success", "I look for the invoice.")
    assert (trace.request, trace.arguments) == ("Where is the invoice?", {"q": "i"})
    assert menu(trace) == list(DESK.ids)


def anthropic_answer(*content: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    stop = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": list(content),
        "stop_reason": stop, "stop_sequence": None, "usage": usage,
    }  # fmt: skip


def anthropic_log(
    path: Path, answers: list[dict[str, Any]], results: list[dict[str, Any]], tools: list[dict[str, Any]]
) -> Path:
    lines = []
    messages: list[Any] = [{"role": "user", "content": ASK}]
    with answering(answers) as url:
        client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
        for number in range(len(answers)):
            request: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": list(messages), "tools": tools}
            answered = client.messages.create(**request)
            lines.append({"request": request, "response": answered.model_dump(mode="json")})
            messages.append({"role": "assistant", "content": [b.model_dump(mode="json") for b in answered.content]})
            if number < len(results):
                messages.append({"role": "user", "content": [results[number]]})
    return write_lines(path, lines)


def tool(tool_id: str, **more: Any) -> dict[str, Any]:
    return {"name": wire_name(tool_id), "description": "", "input_schema": {"type": "object"}, **more}


def test_anthropic_errors_are_believed(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "mcp__mail__search", "input": {"q": "Ann"}}
    answers = [anthropic_answer({"type": "text", "text": "Search Ann's mail."}, use), anthropic_answer()]
    refused = {"type": "tool_result", "tool_use_id": "t1", "content": "429 Too Many Requests", "is_error": True}
    log = anthropic_log(tmp_path / "log.jsonl", answers, [refused], [tool(t) for t in DESK.ids])
    (trace,) = imported(log)
    assert called([trace]) == [("mail.search", "failure", "rate_limited")]
    assert (trace.goal, trace.arguments) == ("Search Ann's mail.", {"q": "Ann"})
    assert menu(trace) == list(DESK.ids)


def test_a_search_for_tools_gives_the_goal_and_what_it_found_joins_the_menu(tmp_path: Path) -> None:
    search = {"type": "server_tool_use", "id": "s1", "name": "tool_search_tool_bm25", "input": {"query": "free days"}}
    references = [{"type": "tool_reference", "tool_name": "calendar__list_events"}]
    found = {
        "type": "tool_search_tool_result", "tool_use_id": "s1",
        "content": {"type": "tool_search_tool_search_result", "tool_references": references},
    }  # fmt: skip
    use = {"type": "tool_use", "id": "t1", "name": "calendar__list_events", "input": {}}
    answers = [anthropic_answer(search, found, use), anthropic_answer({"type": "text", "text": "Free."})]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "no meetings but one"}]}
    deferred = [tool(t, defer_loading=t != "mail.search") for t in DESK.ids]
    server = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    (trace,) = imported(anthropic_log(tmp_path / "log.jsonl", answers, [result], [server, *deferred]))
    assert (trace.tool_id, trace.goal, trace.outcome) == ("calendar.list_events", "free days", "success")
    assert menu(trace) == ["mail.search", "calendar.list_events"]


@pytest.mark.parametrize("agent", ["", "reviewer"])
def test_a_session_log_of_one_message_a_line_is_one_conversation(tmp_path: Path, agent: str) -> None:
    shared = {"sessionId": "s1", "timestamp": "2026-03-01T10:00:00Z", **({"agentId": agent} if agent else {})}
    use = {"type": "tool_use", "id": "t1", "name": "mcp__forge__create_issue", "input": {"title": "Broken"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "created #4"}
    lines = [
        {"type": "summary", "summary": "no message"},
        {"type": "user", "message": {"role": "user", "content": "File a bug"}, **shared},
        {"type": "assistant", "message": {"role": "assistant", "content": [use]}, **shared},
        {"type": "user", "message": {"role": "user", "content": [result]}, **shared},
    ]
    traces, report = imported_with_report(write_lines(tmp_path / "s.jsonl", lines), format="anthropic")
    (trace,) = traces
    assert called(traces) == [("forge.create_issue", "success", "none")]
    assert (trace.goal, trace.menu) == ("File a bug", None)
    assert trace.caller == ({"agent": agent} if agent else None)
    assert report.skipped["a record that is no chat"].count == 1

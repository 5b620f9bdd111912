"""Spans that the OpenTelemetry SDK exported, in the attribute names of today and of before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from desk import DESK, called, imported, imported_with_report, menu
from opentelemetry.trace import SpanKind, Status, StatusCode
from traced import Traced

from data.errors import InputError
from data.wire_names import wire_name

ASK = "Am I free on Friday? Then tell Ann."
OFFERED = json.dumps([{"type": "function", "name": wire_name(tool_id)} for tool_id in DESK.ids])


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def assistant(text: str, *calls: tuple[str, str]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "content": text}] if text else []
    parts += [{"type": "tool_call", "id": id, "name": name, "arguments": {"n": id}} for id, name in calls]
    return {"role": "assistant", "parts": parts, "finish_reason": "tool_call" if calls else "stop"}


def answered(id: str, result: Any) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": id, "response": result}]}


def chat(traced: Traced, asked: list[Any], answer: Any) -> None:
    names = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.tool.definitions": OFFERED}
    with traced.tracer.start_as_current_span("chat m", kind=SpanKind.CLIENT, attributes=names) as span:
        span.set_attribute("gen_ai.input.messages", json.dumps(asked))
        span.set_attribute("gen_ai.output.messages", json.dumps([answer]))


def execute(traced: Traced, name: str, *, id: str = "", result: Any = None, error: str = "", **more: Any) -> None:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **more}
    with traced.tracer.start_as_current_span(f"execute_tool {name}", attributes=attributes) as span:
        if id:
            span.set_attribute("gen_ai.tool.call.id", id)
        if result is not None:
            span.set_attribute("gen_ai.tool.call.result", json.dumps(result))
        if error:
            span.set_attribute("error.type", error)
            span.set_status(Status(StatusCode.ERROR, error))


@pytest.fixture
def agent() -> Traced:
    """One task in the names of today: two steps, the second a failure, under an agent."""
    traced = Traced()
    first = assistant("Let me list Friday's events.", ("c1", "calendar__list_events"))
    second = assistant("", ("c2", "mail__send_message"))
    names = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "secretary"}
    with traced.tracer.start_as_current_span("invoke_agent secretary", attributes=names):
        chat(traced, [user(ASK)], first)
        execute(traced, "calendar__list_events", id="c1", result=["standup"])
        chat(traced, [user(ASK), first, answered("c1", ["standup"])], second)
        execute(traced, "mail__send_message", id="c2", error="timeout")
        chat(traced, [user(ASK), first, answered("c1", ["standup"]), second, answered("c2", "")], assistant("Sorry."))
    return traced


Write = Callable[[Traced, Path], Path]


@pytest.mark.parametrize("write", [Traced.json_lines, Traced.protobuf, Traced.framed_protobuf, Traced.printed])
def test_every_form_of_export_gives_the_same_steps(agent: Traced, tmp_path: Path, write: Write) -> None:
    traces = imported(write(agent, tmp_path / "spans.out"))
    assert called(traces) == [("calendar.list_events", "success", "none"), ("mail.send_message", "failure", "timeout")]
    first, second = traces
    assert (first.goal, second.goal) == ("Let me list Friday's events.", ASK)
    assert (first.request, first.arguments, first.tenant) == (ASK, {"n": "c1"}, "acme")
    assert (first.step, second.step, first.trace_id == second.trace_id) == (0, 1, True)
    assert first.caller == {"agent": "secretary"}
    assert menu(first) == list(DESK.ids)
    assert first.ts is not None
    assert first.latency_ms is not None


def test_a_folder_of_single_spans_in_any_order_is_the_same_trace(agent: Traced, tmp_path: Path) -> None:
    for number, span in enumerate(reversed(agent.spans)):
        agent.json_lines(tmp_path / f"{number:02}.jsonl", [span])
    traces = imported(tmp_path)
    assert [trace.tool_id for trace in traces] == ["calendar.list_events", "mail.send_message"]


def test_parents_that_never_arrive_are_counted_and_the_calls_are_kept(agent: Traced, tmp_path: Path) -> None:
    children = [span for span in agent.spans if span.parent is not None]
    traces, report = imported_with_report(agent.json_lines(tmp_path / "s.jsonl", children))
    assert len(traces) == 2
    assert report.noticed["a span whose parent never arrived"].count == len(children)


def test_spans_exported_twice_count_once(agent: Traced, tmp_path: Path) -> None:
    traces, report = imported_with_report(agent.json_lines(tmp_path / "s.jsonl", [*agent.spans, *agent.spans]))
    assert len(traces) == 2
    assert report.skipped["a span that was given already"].count == len(agent.spans)


def test_client_and_server_spans_of_one_mcp_call_are_one_call(tmp_path: Path) -> None:
    traced = Traced()
    chat(traced, [user("Will it rain?")], assistant("", ("c1", "get_forecast")))
    outer = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_forecast", "gen_ai.tool.call.id": "c1"}
    mcp = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "get_forecast"}
    start = traced.tracer.start_as_current_span
    agent = {"gen_ai.operation.name": "invoke_agent", "input.value": "Will it rain?"}
    with (
        start("agent", attributes=agent),
        start("execute_tool get_forecast", attributes=outer),
        start("tools/call get_forecast", kind=SpanKind.CLIENT, attributes=mcp),
        start("tools/call get_forecast", kind=SpanKind.SERVER, attributes=mcp) as server,
    ):
        server.set_attribute("error.type", "tool_error")
        server.set_status(Status(StatusCode.ERROR, "503 Service Unavailable"))
    traces = imported(traced.json_lines(tmp_path / "s.jsonl", [s for s in traced.spans if s.name != "chat m"]))
    assert called(traces) == [("weather.get_forecast", "failure", "unavailable")]
    assert traces[0].goal == "Will it rain?"


def test_a_tool_span_without_content_is_a_success_unless_it_says_error(tmp_path: Path) -> None:
    traced = Traced()
    with traced.tracer.start_as_current_span("invoke_agent a", attributes={"input.value": "Write to Ann"}):
        execute(traced, "mail__send_message")
    assert called(imported(traced.json_lines(tmp_path / "s.jsonl"))) == [("mail.send_message", "success", "none")]


def test_older_events_of_messages_are_read(tmp_path: Path) -> None:
    traced = Traced()
    names = {"gen_ai.system": "openai", "gen_ai.operation.name": "chat"}
    call = {"id": "c1", "type": "function", "function": {"name": "mail.search", "arguments": '{"q": "x"}'}}
    with traced.tracer.start_as_current_span("root"):
        with traced.tracer.start_as_current_span("chat m", attributes=names) as span:
            span.add_event("gen_ai.user.message", {"content": "Find x"})
            message = {"content": "I search the mail for x.", "tool_calls": [call]}
            span.add_event("gen_ai.choice", {"index": 0, "message": json.dumps(message)})
        with traced.tracer.start_as_current_span("chat m", attributes=names) as span:
            span.add_event("gen_ai.user.message", {"content": "Find x"})
            span.add_event("gen_ai.assistant.message", {**message, "tool_calls": json.dumps([call])})
            span.add_event("gen_ai.tool.message", {"id": "c1", "content": '{"error": "401 Unauthorized"}'})
            span.add_event("gen_ai.choice", {"index": 0, "message": '{"content": "No luck."}'})
    (trace,) = imported(traced.json_lines(tmp_path / "s.jsonl"))
    assert called([trace]) == [("mail.search", "failure", "auth")]
    assert (trace.goal, trace.arguments, trace.request) == ("I search the mail for x.", {"q": "x"}, "Find x")


def test_numbered_attributes_of_older_instrumentations_are_read(tmp_path: Path) -> None:
    traced = Traced()
    openllmetry = {
        "llm.request.type": "chat",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Find x",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "mail__search",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"q": "x"}',
        "llm.request.functions.0.name": "mail__search",
        "llm.request.functions.1.name": "weather__get_forecast",
    }
    tool = {"traceloop.span.kind": "tool", "traceloop.entity.name": "mail__search", "traceloop.entity.output": '"mail"'}
    with traced.tracer.start_as_current_span("root"):
        traced.tracer.start_span("openai.chat", attributes=openllmetry).end()
        traced.tracer.start_span("mail__search.tool", attributes=tool).end()
    (trace,) = imported(traced.json_lines(tmp_path / "s.jsonl"))
    assert called([trace]) == [("mail.search", "success", "none")]
    assert (trace.goal, trace.arguments) == ("Find x", {"q": "x"})
    assert menu(trace) == ["mail.search", "weather.get_forecast"]


def test_openinference_spans_are_read(tmp_path: Path) -> None:
    traced = Traced()
    llm = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Find x",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Searching mail for x",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "mail__search",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"q": "x"}',
        "llm.tools.0.tool.json_schema": json.dumps({"type": "function", "function": {"name": "mail__search"}}),
    }
    tool = {"openinference.span.kind": "TOOL", "tool.name": "mail__search", "output.value": "[]"}
    with traced.tracer.start_as_current_span("agent", attributes={"openinference.span.kind": "AGENT"}):
        traced.tracer.start_span("ChatCompletion", attributes=llm).end()
        traced.tracer.start_span("mail__search", attributes=tool).end()
    (trace,) = imported(traced.json_lines(tmp_path / "s.jsonl"))
    assert called([trace]) == [("mail.search", "success", "empty_result")]
    assert (trace.goal, menu(trace)) == ("Searching mail for x", ["mail.search"])


def test_calls_of_a_sub_agent_are_told_apart(tmp_path: Path) -> None:
    traced = Traced()
    start = traced.tracer.start_as_current_span
    boss, helper = ({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name} for name in ("boss", "helper"))
    with start("invoke_agent boss", attributes=boss):
        chat(traced, [user("Plan a trip")], assistant("Check the weather first", ("c1", "weather__get_forecast")))
        execute(traced, "weather__get_forecast", id="c1", result="sun")
        with start("invoke_agent helper", attributes=helper):
            chat(traced, [user("Block the days")], assistant("", ("c2", "calendar__search")))
            execute(traced, "calendar__search", id="c2", result="free")
    traces = imported(traced.json_lines(tmp_path / "s.jsonl"))
    assert [(t.tool_id, t.goal, t.caller) for t in traces] == [
        ("weather.get_forecast", "Check the weather first", {"agent": "boss"}),
        ("calendar.search", "Block the days", {"agent": "helper"}),
    ]


def test_an_evaluation_of_the_task_is_its_verdict(tmp_path: Path) -> None:
    traced = Traced()
    with traced.tracer.start_as_current_span("invoke_agent a", attributes={"input.value": "Write to Ann"}) as root:
        execute(traced, "mail__send_message")
        verdict = {"gen_ai.evaluation.name": "TaskSuccess", "gen_ai.evaluation.score.label": "fail"}
        root.add_event("gen_ai.evaluation.result", verdict)
    (trace,) = imported(traced.json_lines(tmp_path / "s.jsonl"))
    assert trace.task_success is False


def test_a_clock_from_the_future_is_no_time(tmp_path: Path) -> None:
    traced = Traced()
    far = 4_100_000_000_000_000_000
    root = traced.tracer.start_span("invoke_agent a", attributes={"input.value": "Write to Ann"}, start_time=far)
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "mail__send_message"}
    traced.tracer.start_span("execute_tool", attributes={**tool, "input.value": "{}"}, start_time=far).end(far - 10**9)
    root.end(far)
    spans = traced.json_lines(tmp_path / "s.jsonl")
    document = spans.read_text().replace(format(traced.spans[0].context.trace_id, "032x"), "a" * 32)
    spans.write_text(document.replace(format(traced.spans[1].context.trace_id, "032x"), "a" * 32))
    traces, report = imported_with_report(spans)
    assert (traces[0].ts, traces[0].latency_ms) == (None, None)
    assert sum(one.count for one in report.noticed.values()) == 2


def test_spans_of_anything_else_leave_nothing_usable(tmp_path: Path) -> None:
    traced = Traced()
    traced.tracer.start_span("GET", attributes={"http.request.method": "GET"}).end()
    with pytest.raises(InputError, match=r"no usable call in 1 files with 1 records.*does the log keep tool calls"):
        imported(traced.json_lines(tmp_path / "s.jsonl"))

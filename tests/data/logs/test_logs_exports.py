"""LangSmith and Langfuse exports: the trees of their own models, in the forms in which they leave the two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from desk import called, imported, imported_with_report, menu, write_lines

ASK = "Find Ann's invoice"
TOOLS = [{"type": "function", "function": {"name": "mail__search"}}, {"type": "function", "function": {"name": "send"}}]
CALL = {"id": "c1", "type": "function", "function": {"name": "mail__search", "arguments": '{"q": "invoice"}'}}


def ai(text: str, *calls: dict[str, Any]) -> dict[str, Any]:
    """A message as LangChain serialises it."""
    kwargs = {"content": text, "type": "ai", "tool_calls": [{**call, "type": "tool_call"} for call in calls]}
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": kwargs}


def human(text: str) -> dict[str, Any]:
    kwargs = {"content": text, "type": "human"}
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "HumanMessage"], "kwargs": kwargs}


def run(id: str, kind: str, parent: str | None, second: int, **more: Any) -> dict[str, Any]:
    times = {"start_time": f"2026-03-01T10:00:{second:02}", "end_time": f"2026-03-01T10:00:{second + 1:02}"}
    return {"id": id, "trace_id": "t1", "parent_run_id": parent, "run_type": kind, "name": id, **times, **more}


def langsmith(error: str | None = None) -> list[dict[str, Any]]:
    call = {"name": "mail__search", "args": {"q": "invoice"}, "id": "c1"}
    generations = {"generations": [[{"text": "", "message": ai("I search her mail.", call)}]]}
    result = {"content": "invoice.pdf", "type": "tool", "tool_call_id": "c1", "status": "success"}
    return [
        run("root", "chain", None, 0, inputs={"input": ASK}, feedback_stats={"correctness": {"n": 1, "avg": 0.0}}),
        run(
            "model",
            "llm",
            "root",
            1,
            inputs={"messages": [[human(ASK)]]},
            outputs=generations,
            extra={"invocation_params": {"tools": TOOLS}, "metadata": {"tenant": "acme"}},
        ),
        {
            **run("tool", "tool", "root", 3, inputs={"input": "{'q': 'invoice'}"}, error=error),
            "name": "mail__search",
            "outputs": None if error else {"output": result},
        },
    ]


def test_langsmith_runs_are_steps(tmp_path: Path) -> None:
    (trace,) = imported(write_lines(tmp_path / "runs.jsonl", reversed(langsmith())))
    assert called([trace]) == [("mail.search", "success", "none")]
    assert (trace.goal, trace.request, trace.arguments) == ("I search her mail.", ASK, {"q": "invoice"})
    assert (menu(trace), trace.latency_ms, trace.task_success, trace.tenant) == (["mail.search"], 1000.0, False, "acme")


def test_langsmith_errors_and_unfinished_runs_are_told(tmp_path: Path) -> None:
    failed = langsmith(error="TimeoutError('Request timed out')")
    unfinished = [{**one, "trace_id": "t2", "id": f"{one['id']}2", "parent_run_id": "root2"} for one in langsmith()]
    unfinished[2] |= {"outputs": None, "end_time": None}
    traces = imported(write_lines(tmp_path / "runs.jsonl", [*failed, *unfinished]), format="langsmith")
    assert called(traces) == [("mail.search", "failure", "timeout"), ("mail.search", "unknown", "none")]


def langfuse() -> dict[str, Any]:
    message = {"role": "assistant", "content": "I search her mail.", "tool_calls": [CALL]}
    shared = {"traceId": "t1", "parentObservationId": None}
    return {
        "id": "t1",
        "timestamp": "2026-03-01T10:00:00.000Z",
        "input": {"question": ASK},
        "scores": [{"name": "task_success", "value": 1, "dataType": "BOOLEAN"}],
        "observations": [
            {
                **shared,
                "id": "o2",
                "type": "TOOL",
                "name": "mail__search",
                "input": {"q": "invoice"},
                "output": [],
                "level": "DEFAULT",
                "startTime": "2026-03-01T10:00:03.000Z",
                "endTime": "2026-03-01T10:00:03.250Z",
            },
            {
                **shared,
                "id": "o1",
                "type": "GENERATION",
                "name": "chat",
                "input": {"messages": [{"role": "user", "content": ASK}], "tools": TOOLS},
                "output": message,
                "startTime": "2026-03-01T10:00:01.000Z",
                "endTime": "2026-03-01T10:00:02.000Z",
            },
        ],
    }


def test_langfuse_traces_are_steps(tmp_path: Path) -> None:
    (trace,) = imported(write_lines(tmp_path / "traces.jsonl", [langfuse()]))
    assert called([trace]) == [("mail.search", "success", "empty_result")]
    assert (trace.goal, trace.request, trace.arguments) == ("I search her mail.", ASK, {"q": "invoice"})
    assert (menu(trace), trace.latency_ms, trace.task_success) == (["mail.search"], 250.0, True)


def test_langfuse_observations_come_alone_and_in_pages_too(tmp_path: Path) -> None:
    path = tmp_path / "page.json"
    failed = {**langfuse()["observations"][0], "level": "ERROR", "statusMessage": "403 Forbidden", "output": None}
    page = {"data": [failed, langfuse()["observations"][1]], "meta": {"page": 1}}
    path.write_text(json.dumps(page, indent=2))
    traces, report = imported_with_report(path)
    assert called(traces) == [("mail.search", "failure", "auth")]
    assert report.format == "auto"
    assert report.records == 2

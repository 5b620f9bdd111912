"""Round trip: real traces written in each foreign form, imported again and mined, beside the plain form.

    python -m benchmarks.round_trip DATA [--sets livemcpbench toolbench] [--keep DIR]

DATA holds folders with tools.jsonl and traces.jsonl in the plain form. A failure without an error class is written as
an error of the tool, in the plain form too, since every other form has to say something; and the plain form has its
repeated calls folded as an import folds them. Step numbers and times are the form's own and are not compared;
everything else of the mined examples, preferences and no-tool requests is.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from data.catalog import Catalog
from data.jsonl import load_catalog, load_traces, write_jsonl
from data.logs import import_logs
from data.logs.collapse import collapsed
from data.mining.miner import Mined, mine
from data.trace_store import write_traces
from data.traces import Trace
from data.wire_names import wire_name

Row = dict[str, Any]
Writer = Callable[[list[Trace], Catalog], Iterable[Row]]

EPOCH_NS = 1_770_000_000 * 10**9
ANSWER = "Done, here is what was asked for."
ERROR = "Error: the tool could not do it"


def main() -> None:
    parser = argparse.ArgumentParser(description="Write real traces in foreign forms, import and mine them again.")
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=["livemcpbench", "toolbench"])
    parser.add_argument("--keep", type=Path, help="a folder to leave the written logs in")
    given = parser.parse_args()
    print(f"{'set':<14} {'form':<10} {'lines':>6} {'traces':>6} {'folded':>6}  examples same / plain's / only here")
    for name in given.sets:
        catalog = load_catalog(given.data / name / "tools.jsonl")
        plain = [classed(trace) for trace in load_traces(given.data / name / "traces.jsonl")]
        with TemporaryDirectory() as scratch:
            folder = given.keep / name if given.keep else Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            _compare(name, catalog, plain, folder)


def _compare(name: str, catalog: Catalog, plain: list[Trace], folder: Path) -> None:
    known = [[trace for trace in steps if trace.tool_id in catalog] for steps in tasks(plain)]
    wanted = mined(folder / "plain.parquet", (trace for steps in known for trace in collapsed(steps)), catalog)
    for form, writer in WRITERS.items():
        log = folder / f"{form}.jsonl"
        write_jsonl(log, (row for steps in tasks(plain) for row in writer(steps, catalog)))
        running = import_logs([log], form, catalog)
        found = mined(folder / f"{form}.parquet", running.traces(), catalog)
        told = running.report()
        parts = []
        for table in ("examples", "preferences", "no_tool", "history"):
            here, there = rows_of(getattr(found, table)), rows_of(getattr(wanted, table))
            parts.append(f"{(here & there).total()} / {there.total()} / {(here - there).total()}")
        head = f"{name:<14} {form:<10} {told.lines:>6} {told.traces:>6} {told.repeats:>6}"
        print(f"{head}  {parts[0]}; preferences {parts[1]}; no-tool {parts[2]}; history {parts[3]}")


def mined(path: Path, traces: Iterable[Trace], catalog: Catalog) -> Mined:
    write_traces(path, traces)
    return mine(path, catalog)


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows of a mined table as a multiset, without what every form counts its own way."""
    rows = table.drop_columns([name for name in ("step", "ts") if name in table.column_names]).to_pylist()
    return Counter(tuple(sorted((key, str(value)) for key, value in row.items())) for row in rows)


def classed(trace: Trace) -> Trace:
    vague = trace.outcome == "failure" and trace.error_class == "none"
    return trace.model_copy(update={"error_class": "tool_error"}) if vague else trace


def tasks(plain: list[Trace]) -> Iterator[list[Trace]]:
    ordered = sorted(plain, key=lambda trace: (trace.trace_id, trace.step))
    for _, steps in groupby(ordered, key=lambda trace: trace.trace_id):
        yield list(steps)


def _said(step: Trace) -> str:
    return "" if step.goal == step.request else step.goal


def _offered(step: Trace) -> list[str]:
    return [wire_name(shown.tool_id) for shown in step.menu or ()]


def _result(step: Trace) -> str | None:
    """What came back; None where nobody knows."""
    return None if step.outcome == "unknown" else ERROR if step.outcome == "failure" else ANSWER


def openai_rows(steps: list[Trace], catalog: Catalog) -> Iterator[Row]:
    """A record a request: the conversation so far, the tools of this step, the answer."""
    messages: list[Row] = [{"role": "user", "content": steps[0].request}]
    for number, step in enumerate(steps):
        function = {"name": wire_name(step.tool_id or ""), "arguments": json.dumps(step.arguments or {})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        message = {"role": "assistant", "content": _said(step), "tool_calls": [call]}
        tools = [{"type": "function", "function": {"name": name}} for name in _offered(step)]
        meta = {"conversation_id": step.trace_id, "task_success": step.task_success}
        request = {"messages": list(messages), "tools": tools}
        yield {"request": request, "response": {"choices": [{"message": message}]}, "metadata": meta}
        messages.append(message)
        if (result := _result(step)) is not None:
            messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result})
    bye = {"role": "assistant", "content": "That is all."}
    request = {"messages": messages, "tools": tools}
    yield {"request": request, "response": {"choices": [{"message": bye}]}, "metadata": meta}


def anthropic_rows(steps: list[Trace], catalog: Catalog) -> Iterator[Row]:
    """The same in content blocks, a result with its `is_error`."""
    messages: list[Row] = [{"role": "user", "content": steps[0].request}]
    meta = {"session_id": steps[0].trace_id, "task_success": steps[0].task_success}
    tools: list[Row] = []
    for number, step in enumerate(steps):
        use = {"type": "tool_use", "id": f"t{number}", "name": wire_name(step.tool_id or "")}
        content = [{"type": "text", "text": _said(step)}, {**use, "input": step.arguments or {}}]
        tools = [{"name": name, "input_schema": {}} for name in _offered(step)]
        response = {"type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use"}
        yield {"request": {"messages": list(messages), "tools": tools}, "response": response, "metadata": meta}
        messages.append({"role": "assistant", "content": content})
        if (result := _result(step)) is not None:
            block = {"type": "tool_result", "tool_use_id": f"t{number}", "content": result}
            messages.append({"role": "user", "content": [{**block, "is_error": step.outcome == "failure"}]})
    yield {"request": {"messages": messages, "tools": tools}, "response": {}, "metadata": meta}


def otel_rows(steps: list[Trace], catalog: Catalog) -> Iterator[Row]:
    """OTLP JSON: an agent's span with a chat's and a tool's for each step; no tool's where the outcome is unknown."""
    trace = steps[0].trace_id
    text = [{"type": "text", "content": steps[0].request}]
    messages: list[Row] = [{"role": "user", "parts": text}]
    spans = [_span(trace, "root", "", "invoke_agent a", 0, len(steps) * 2 + 1, {"task_success": steps[0].task_success})]
    for number, step in enumerate(steps):
        name = wire_name(step.tool_id or "")
        call = {"type": "tool_call", "id": f"c{number}", "name": name, "arguments": step.arguments or {}}
        answer = {"role": "assistant", "parts": [{"type": "text", "content": _said(step)}, call]}
        chat = {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps(messages),
            "gen_ai.output.messages": json.dumps([answer]),
            "gen_ai.tool.definitions": json.dumps([{"type": "function", "name": one} for one in _offered(step)]),
        }
        spans.append(_span(trace, f"m{number}", "root", "chat m", number * 2, number * 2 + 1, chat))
        messages.append(answer)
        if (result := _result(step)) is not None:
            tool = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": name,
                "gen_ai.tool.call.id": f"c{number}",
            }
            tool |= {"gen_ai.tool.call.result": result} if step.outcome == "success" else {"error.type": "tool_error"}
            spans.append(
                _span(trace, f"t{number}", "root", f"execute_tool {name}", number * 2 + 1, number * 2 + 2, tool)
            )
            messages.append({"role": "tool", "parts": [{"type": "tool_call_response", "id": f"c{number}"}]})
    yield {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": spans}]}]}


def _span(trace: str, id: str, parent: str, name: str, start: int, end: int, attributes: Row) -> Row:
    pairs = [
        {"key": key, "value": {"boolValue": value} if isinstance(value, bool) else {"stringValue": value}}
        for key, value in attributes.items()
        if value is not None
    ]
    times = {"startTimeUnixNano": str(EPOCH_NS + start * 10**6), "endTimeUnixNano": str(EPOCH_NS + end * 10**6)}
    return {"traceId": trace, "spanId": id, "parentSpanId": parent, "name": name, "attributes": pairs, **times}


def langsmith_rows(steps: list[Trace], catalog: Catalog) -> Iterator[Row]:
    """A run a line: the chain, and a model's and a tool's run for each step, unfinished if the outcome is unknown."""
    trace = steps[0].trace_id

    def run(id: str, kind: str, second: int, **more: Any) -> Row:
        times = {"start_time": EPOCH_NS / 1e9 + second, "end_time": EPOCH_NS / 1e9 + second + 1}
        parent = None if kind == "chain" else f"{trace}-root"
        return {"id": f"{trace}-{id}", "trace_id": trace, "run_type": kind, "parent_run_id": parent, **times, **more}

    verdict = steps[0].task_success
    stats = {} if verdict is None else {"task_success": {"n": 1, "avg": float(verdict)}}
    yield run("root", "chain", 0, name="agent", inputs={"input": steps[0].request}, feedback_stats=stats)
    messages: list[Row] = [{"type": "human", "content": steps[0].request}]
    for number, step in enumerate(steps):
        call = {"name": wire_name(step.tool_id or ""), "args": step.arguments or {}, "id": f"c{number}"}
        answer = {"type": "ai", "content": _said(step), "tool_calls": [call]}
        extra = {"invocation_params": {"tools": [{"name": name} for name in _offered(step)]}}
        outputs = {"generations": [[{"message": answer}]]}
        inputs = {"messages": [list(messages)]}
        yield run(f"m{number}", "llm", number * 2, name="model", inputs=inputs, outputs=outputs, extra=extra)
        tool = run(f"t{number}", "tool", number * 2 + 1, name=call["name"], inputs={"tool_call_id": call["id"]})
        result = _result(step)
        if result is None:
            tool["end_time"] = None
        elif step.outcome == "failure":
            tool["error"] = result
        else:
            tool["outputs"] = {"output": result}
        yield tool
        messages.append(answer)
        if result is not None:
            messages.append({"type": "tool", "tool_call_id": f"c{number}", "content": result})


def langfuse_rows(steps: list[Trace], catalog: Catalog) -> Iterator[Row]:
    """A trace a line with its observations."""
    trace = steps[0].trace_id
    observations: list[Row] = []
    messages: list[Row] = [{"role": "user", "content": steps[0].request}]

    def observation(id: str, kind: str, second: int, **more: Any) -> Row:
        times = {"startTime": EPOCH_NS / 1e9 + second, "endTime": EPOCH_NS / 1e9 + second + 1}
        return {"id": f"{trace}-{id}", "traceId": trace, "type": kind, "level": "DEFAULT", **times, **more}

    for number, step in enumerate(steps):
        function = {"name": wire_name(step.tool_id or ""), "arguments": json.dumps(step.arguments or {})}
        answer = {
            "role": "assistant",
            "content": _said(step),
            "tool_calls": [{"id": f"c{number}", "function": function}],
        }
        given = {"messages": list(messages), "tools": [{"name": name} for name in _offered(step)]}
        observations.append(
            observation(f"m{number}", "GENERATION", number * 2, name="chat", input=given, output=answer)
        )
        tool = observation(f"t{number}", "TOOL", number * 2 + 1, name=function["name"], output=_result(step))
        tool["metadata"] = {"tool_call_id": f"c{number}"}
        if step.outcome == "unknown":
            tool["endTime"] = None
        if step.outcome == "failure":
            tool |= {"level": "ERROR", "statusMessage": ERROR}
        observations.append(tool)
        messages.append(answer)
        if (result := _result(step)) is not None:
            messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result})
    verdict = steps[0].task_success
    scores = [] if verdict is None else [{"name": "task_success", "value": float(verdict)}]
    asked = {"input": steps[0].request, "timestamp": EPOCH_NS / 1e9}
    yield {"id": trace, **asked, "scores": scores, "observations": observations}


def mcp_rows(steps: list[Trace], catalog: Catalog) -> Iterator[Row]:
    """A message a line; what a step was for is in the `_meta` of its call, what was offered in a listing before it."""
    for number, step in enumerate(steps):
        shared = {"session_id": step.trace_id, "ts": EPOCH_NS / 1e9 + number, "task_success": step.task_success}
        listing = {"tools": [{"name": shown.tool_id} for shown in step.menu or ()]}
        yield {**shared, "message": {"jsonrpc": "2.0", "id": f"l{number}", "method": "tools/list"}}
        yield {**shared, "message": {"jsonrpc": "2.0", "id": f"l{number}", "result": listing}}
        words = {"request": step.request, "goal": _said(step)}
        params = {"name": step.tool_id, "arguments": step.arguments or {}, "_meta": words}
        yield {**shared, "message": {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}}
        if (result := _result(step)) is not None:
            content = {"content": [{"type": "text", "text": result}], "isError": step.outcome == "failure"}
            yield {**shared, "message": {"jsonrpc": "2.0", "id": number, "result": content}}


def mlflow_rows(steps: list[Trace], catalog: Catalog) -> Iterator[Row]:
    """A trace a line as `Trace.to_json` has it, its spans' attributes as JSON text; a tool's span that never ended."""
    trace = steps[0].trace_id
    messages: list[Row] = [{"role": "user", "content": steps[0].request}]
    spans: list[Row] = []

    def span(id: str, kind: str, millisecond: int, **more: Any) -> Row:
        start = EPOCH_NS + millisecond * 10**6
        values = {
            "mlflow.spanType": kind,
            "mlflow.spanInputs": more["inputs"],
            "mlflow.spanOutputs": more.get("outputs"),
        }
        attributes = {key: json.dumps(value) for key, value in values.items() if value is not None}
        parent = None if kind == "AGENT" else "root"
        times = {"start_time_unix_nano": start, "end_time_unix_nano": start + 10**6 if more["ended"] else None}
        code = "STATUS_CODE_ERROR" if more.get("error") else "STATUS_CODE_OK"
        status = {"code": code, "message": more.get("error", "")}
        told = {"name": more["name"], "attributes": attributes, "status": status, "events": []}
        return {"trace_id": "t", "span_id": id, "parent_span_id": parent, **told, **times}

    spans.append(span("root", "AGENT", 0, name="agent", inputs={"question": steps[0].request}, ended=True))
    for number, step in enumerate(steps):
        name = wire_name(step.tool_id or "")
        function = {"name": name, "arguments": json.dumps(step.arguments or {})}
        answer = {
            "role": "assistant",
            "content": _said(step),
            "tool_calls": [{"id": f"c{number}", "function": function}],
        }
        tools = [{"type": "function", "function": {"name": one}} for one in _offered(step)]
        given = {"messages": list(messages), "tools": tools}
        outputs = {"choices": [{"message": answer}]}
        chat = span(f"m{number}", "CHAT_MODEL", number * 2, name="chat", inputs=given, outputs=outputs, ended=True)
        result, arguments = _result(step), step.arguments or {}
        failed = {"error": ERROR} if step.outcome == "failure" else {"outputs": result}
        known = result is not None
        spans += [chat, span(f"t{number}", "TOOL", number * 2 + 1, name=name, inputs=arguments, ended=known, **failed)]
        messages.append(answer)
        if known:
            messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result})
    verdict = steps[0].task_success
    assessments = [] if verdict is None else [{"assessment_name": "task_success", "feedback": {"value": verdict}}]
    yield {"info": {"trace_id": trace, "assessments": assessments}, "data": {"spans": spans}}


WRITERS: dict[str, Writer] = {
    "openai": openai_rows,
    "anthropic": anthropic_rows,
    "otel": otel_rows,
    "mlflow": mlflow_rows,
    "langsmith": langsmith_rows,
    "langfuse": langfuse_rows,
    "mcp": mcp_rows,
}

if __name__ == "__main__":
    main()

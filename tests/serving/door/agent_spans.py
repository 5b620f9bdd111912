"""An agent of the shop, traced by the OpenTelemetry SDK with the GenAI names, and its spans as OTLP."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

ASK = "Which orders has customer 4711, and what does the mail say?"
OFFERED = json.dumps([{"type": "function", "name": name} for name in ("shop__orders", "mail__search", "mail__send")])


class Agent:
    """A tracer and the spans that have ended, in the order in which they did; `also` sees each span too."""

    def __init__(self, also: SpanProcessor | None = None) -> None:
        self._memory = InMemorySpanExporter()
        self.provider = TracerProvider(resource=Resource.create({"service.name": "agent", "tenant.id": "rival"}))
        self.provider.add_span_processor(SimpleSpanProcessor(self._memory))
        if also is not None:
            self.provider.add_span_processor(also)
        self.tracer: Tracer = self.provider.get_tracer("agent")

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self._memory.get_finished_spans()

    def run(self, ask: str = ASK) -> None:
        """One task: two steps under an agent, the first with a result, the second without content."""
        names = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk"}
        first = _assistant("Let me list the orders.", ("c1", "shop__orders"))
        second = _assistant("Now I search the mail.", ("c2", "mail__search"))
        asked: list[Any] = [{"role": "user", "parts": [{"type": "text", "content": ask}]}]
        with self.tracer.start_as_current_span("invoke_agent clerk", attributes=names):
            self._chat(asked, first)
            self._execute("shop__orders", "c1", {"orders": ["A-17"]})
            asked += [first, _result("c1", {"orders": ["A-17"]})]
            self._chat(asked, second)
            self._execute("mail__search", "c2", None)
            self._chat([*asked, second, _result("c2", "")], _assistant("One order, no mail."))

    def _chat(self, asked: list[Any], answer: Any) -> None:
        names = {"gen_ai.operation.name": "chat", "gen_ai.tool.definitions": OFFERED}
        with self.tracer.start_as_current_span("chat m", attributes=names) as span:
            span.set_attribute("gen_ai.input.messages", json.dumps(asked))
            span.set_attribute("gen_ai.output.messages", json.dumps([answer]))

    def _execute(self, name: str, call_id: str, result: Any) -> None:
        names = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id}
        with self.tracer.start_as_current_span(f"execute_tool {name}", attributes=names) as span:
            if result is not None:
                span.set_attribute("gen_ai.tool.call.result", json.dumps(result))


def protobuf(spans: Sequence[ReadableSpan]) -> bytes:
    """One export as OTLP/HTTP sends it."""
    body: bytes = encode_spans(spans).SerializeToString()
    return body


def document(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    """The same as OTLP JSON, its ids in hexadecimal."""
    made: dict[str, Any] = MessageToDict(encode_spans(spans))
    ids = {format(span.context.span_id, "016x"): span for span in spans}
    told = [one for batch in made["resourceSpans"] for scope in batch["scopeSpans"] for one in scope["spans"]]
    for one, (span_id, span) in zip(told, ids.items(), strict=True):
        one |= {"traceId": format(span.context.trace_id, "032x"), "spanId": span_id}
        if span.parent is not None:
            one["parentSpanId"] = format(span.parent.span_id, "016x")
    return made


def _assistant(text: str, *calls: tuple[str, str]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "content": text}]
    parts += [{"type": "tool_call", "id": id, "name": name, "arguments": {"customer": 4711}} for id, name in calls]
    return {"role": "assistant", "parts": parts, "finish_reason": "tool_call" if calls else "stop"}


def _result(call_id: str, result: Any) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": result}]}

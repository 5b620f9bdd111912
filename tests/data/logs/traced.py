"""An agent traced by the OpenTelemetry SDK, and what it exports as files in OTLP's forms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer


class Traced:
    """A tracer, and the spans that have ended so far, in the order in which they ended."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(resource=Resource.create({"service.name": "agent", "tenant.id": "acme"}))
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer: Tracer = provider.get_tracer("test")

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()

    def json_lines(self, path: Path, spans: Sequence[ReadableSpan] | None = None) -> Path:
        """OTLP JSON as a collector writes it: a line an export, ids in hexadecimal."""
        lines = []
        for span in self.spans if spans is None else spans:
            document = MessageToDict(encode_spans([span]))
            for batch in document["resourceSpans"]:
                for told in (told for scope in batch["scopeSpans"] for told in scope["spans"]):
                    told["traceId"] = format(span.context.trace_id, "032x")
                    told["spanId"] = format(span.context.span_id, "016x")
                    if span.parent is not None:
                        told["parentSpanId"] = format(span.parent.span_id, "016x")
            lines.append(json.dumps(document))
        path.write_text("\n".join(lines) + "\n")
        return path

    def protobuf(self, path: Path) -> Path:
        """One export as a message alone."""
        path.write_bytes(encode_spans(self.spans).SerializeToString())
        return path

    def framed_protobuf(self, path: Path) -> Path:
        """An export a span, each after the four bytes of its length, as the collector's file exporter does."""
        messages = [encode_spans([span]).SerializeToString() for span in self.spans]
        path.write_bytes(b"".join(len(message).to_bytes(4, "big") + message for message in messages))
        return path

    def printed(self, path: Path) -> Path:
        """What the SDK's console exporter prints: one indented document after the other."""
        path.write_text("\n".join(span.to_json() for span in self.spans) + "\n")
        return path

"""OpenTelemetry spans, with the attribute names of the GenAI conventions and the slice id.

Spans go to whatever provider the process has; `send_spans` sets one up as the standard environment variables say
(`OTEL_TRACES_EXPORTER` = `otlp` or `console`; none by default). No span holds a goal, an argument or a credential.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from data.errors import InputError

_TRACER = trace.get_tracer("toolcrib")

SLICE = "toolcrib.slice.id"
OPERATION = "gen_ai.operation.name"
TOOL = "gen_ai.tool.name"
CONVERSATION = "gen_ai.conversation.id"


@contextmanager
def span(name: str, attributes: Mapping[str, str | int | float | bool]) -> Iterator[Span]:
    """A server span around one request; an error that leaves it is marked by its class alone."""
    with _TRACER.start_as_current_span(
        name, kind=SpanKind.SERVER, attributes=dict(attributes), record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except BaseException as error:
            current.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise


def stage_events(current: Span, timings_ms: Mapping[str, float]) -> None:
    """The stages of a decision as attributes of its span, in milliseconds."""
    for stage, milliseconds in timings_ms.items():
        current.set_attribute(f"toolcrib.stage.{stage}.ms", round(milliseconds, 3))


def send_spans() -> None:
    """Set up the exporter that `OTEL_TRACES_EXPORTER` names. Raises InputError for one that cannot be had."""
    wanted = os.environ.get("OTEL_TRACES_EXPORTER", "none").strip().lower()
    if wanted in ("", "none"):
        return
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter  # noqa: PLC0415

    exporter: SpanExporter
    if wanted == "console":
        exporter = ConsoleSpanExporter()
    elif wanted == "otlp":
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        except ImportError as error:
            raise InputError(
                "the OTLP exporter is not installed",
                source="OTEL_TRACES_EXPORTER",
                hint="pip install opentelemetry-exporter-otlp-proto-http",
            ) from error
        exporter = OTLPSpanExporter()
    else:
        raise InputError(f"is '{wanted}'", source="OTEL_TRACES_EXPORTER", hint="expected otlp, console or none")
    provider = TracerProvider(resource=Resource.create({"service.name": "toolcrib"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)

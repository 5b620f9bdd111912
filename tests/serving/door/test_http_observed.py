"""What is seen from outside: figures that move, spans with the slice's id, log lines without values."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from shop import Shop, open_shop

from data.errors import InputError
from serving.door import spans as spans_module
from serving.door.logs import JsonLines, log_as_json
from serving.door.spans import send_spans

REFUND = {"order": "A-17", "amount": 12.5}


class Kept(logging.Handler):
    """The lines as they are written."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.setFormatter(JsonLines())

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def lines() -> Iterator[list[str]]:
    handler, log = Kept(), logging.getLogger("toolcrib")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler.lines
    log.removeHandler(handler)
    log.setLevel(level)


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(spans_module, "_TRACER", provider.get_tracer("toolcrib"))
    return exporter


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_every_figure_moves_with_what_it_counts(shop: Shop) -> None:
    shop.select("refund the order", request_id="a")
    slice_id = shop.select("refund the order", request_id="b")["slice_id"]
    ticket = shop.check(slice_id, "shop.cancel", REFUND)["ticket"]
    shop.check(slice_id, "shop.refund", {})
    shop.ok("/v1/confirm", {"ticket": ticket, "decision": "refuse"}, "carl")
    shop.report("k", slice_id, "shop.cancel", outcome="failure", error_class="timeout")
    shop.get("/nowhere")
    figures = {
        ("decisions_total", ("cached", "false")): 1,
        ("decisions_total", ("cached", "true")): 1,
        ("verdicts_total", ("verdict", "confirm")): 1,
        ("verdicts_total", ("verdict", "invalid")): 1,
        ("confirmations_total", ("decision", "refuse")): 1,
    }
    for (name, label), expected in figures.items():
        assert shop.figure(name, **dict([label])) == expected, name
    assert shop.figure("outcomes_total", outcome="failure", error_class="timeout") == 1
    assert shop.figure("http_requests_total", route="/v1/select", status="200") == 2
    assert shop.figure("http_requests_total", route="unmatched", status="404") == 1
    assert shop.figure("http_seconds_count", route="/v1/check") == 2
    assert shop.figure("stage_seconds_count", stage="retrieve") == 1, "a cached decision ran no stage"
    assert shop.figure("slice_cache_hit_ratio") == 0.5
    assert shop.figure("unrecorded_total") == 0
    assert shop.figure("pool_depth") == shop.figure("store_queue_depth") == shop.figure("store_degraded") == 0


def test_ids_in_a_path_make_no_labels(shop: Shop) -> None:
    for handle in ("one", "two"):
        shop.get(f"/v1/observations/{handle}")
    text = shop.client.get("/metrics").text
    assert 'route="/v1/observations/{handle}",status="404"} 2.0' in text
    assert not {"one", "two", "ann", "acme", "shop.refund"} & set(text.replace('"', " ").split())


def test_alive_ready_and_the_figures_need_no_credential(shop: Shop) -> None:
    assert shop.client.get("/healthz").json() == {"status": "ok"}
    ready = shop.client.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["status"] == ready.json()["store"] == "ok"
    assert ready.json()["catalog"] == shop.select()["versions"]["catalog"]
    shop.assembly.door.draining = True
    assert shop.client.get("/readyz").status_code == 503
    assert shop.client.get("/metrics").headers["content-type"].startswith("text/plain")


def test_a_log_line_says_what_happened_without_what_was_said(shop: Shop, lines: list[str]) -> None:
    found = shop.select("refund the order of Zebulon", messages=None, trace_id="run-7")
    shop.check(found["slice_id"], "shop.refund", {"order": "A-4711", "amount": 1.25})
    shop.post("/v1/select", {"goal": "Zebulon", "caller": {"scopes": ["Zebulon"]}})
    access = [json.loads(line) for line in lines if json.loads(line)["logger"] == "toolcrib.access"]
    select, check, refused = access
    assert (select["route"], select["status"], select["slice"]) == ("/v1/select", 200, found["slice_id"])
    assert (select["identity"], select["tenant"], select["cached"]) == ("ann", "acme", False)
    assert (check["verdict"], check["rule"]) == ("dry_run", "destructive_dry_run")
    assert refused["status"] == 403
    written = "\n".join(lines)
    assert not [word for word in ("Zebulon", "4711", "1.25", "tck_") if word in written]


def test_a_failure_is_logged_by_its_class_and_place_alone(
    shop: Shop, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("said by Zebulon")

    monkeypatch.setattr(shop.assembly.door.service, "decide", fail)
    shop.post("/v1/select", {"goal": "a"})
    (line,) = [json.loads(line) for line in lines if json.loads(line)["level"] == "error"]
    assert line["error"] == "RuntimeError"
    assert line["at"].startswith("test_http_observed.py:")
    assert "Zebulon" not in "\n".join(lines)


def test_a_span_has_the_slice_and_the_stages_and_no_words(shop: Shop, exported: InMemorySpanExporter) -> None:
    found = shop.select("refund the order of Zebulon", trace_id="run-7")
    shop.check(found["slice_id"], "shop.refund", REFUND)
    shop.get("/v1/slices/never", "olga")
    select, check, missing = exported.get_finished_spans()
    assert select.name == "POST /v1/select"
    said = attributes(select)
    assert (said["toolcrib.slice.id"], said["gen_ai.conversation.id"]) == (found["slice_id"], "run-7")
    assert said["gen_ai.operation.name"] == "select"
    assert said["http.response.status_code"] == 200
    assert {f"toolcrib.stage.{stage}.ms" for stage in found["timings_ms"]} <= said.keys()
    assert attributes(check)["gen_ai.operation.name"] == "execute_tool"
    assert attributes(check)["gen_ai.tool.name"] == "shop.refund"
    assert attributes(missing)["http.route"] == "/v1/slices/{slice_id}"
    written = json.dumps([attributes(span) for span in exported.get_finished_spans()])
    assert not [word for word in ("Zebulon", "A-17", "tck_") if word in written]


def test_what_names_no_tool_and_no_slice_of_the_caller_is_not_passed_on(
    shop: Shop, exported: InMemorySpanExporter, lines: list[str]
) -> None:
    slice_id = shop.select()["slice_id"]
    shop.check(slice_id, "Zebulon")
    shop.check("Zebulon", "Zebulon")
    ids = [attributes(span).get("toolcrib.slice.id") for span in exported.get_finished_spans()]
    assert ids == [slice_id, slice_id, None]
    written = json.dumps([attributes(span) for span in exported.get_finished_spans()]) + "\n".join(lines)
    assert "Zebulon" not in written


@pytest.mark.parametrize("wanted", ["zipkin", "otlp"])
def test_an_exporter_that_cannot_be_had_is_said_at_start(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", wanted)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(InputError, match="OTEL_TRACES_EXPORTER"):
        send_spans()


def test_no_exporter_is_set_up_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_TRACES_EXPORTER", raising=False)
    before = trace.get_tracer_provider()
    send_spans()
    assert trace.get_tracer_provider() is before


def test_logs_of_the_server_become_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("toolcrib", "uvicorn", "uvicorn.error")
    before = {name: (list(logging.getLogger(name).handlers), logging.getLogger(name).propagate) for name in names}
    try:
        log_as_json()
        logging.getLogger("uvicorn.error").info("listening on %s", "here")
        (line,) = capsys.readouterr().err.splitlines()
        assert json.loads(line)["message"] == "listening on here"
    finally:
        for name, (handlers, propagate) in before.items():
            logging.getLogger(name).handlers, logging.getLogger(name).propagate = handlers, propagate


def test_abstentions_and_degradations_are_counted(tmp_path: Path) -> None:
    with open_shop(tmp_path, selector={"explore_rate": 0.0, "token_budget": 10}) as shop:
        found = shop.select()
        assert found["degradations"]
        assert shop.figure("degradations_total", stage="menu") == len(found["degradations"])

"""Spans that are not taken: each refusal in OTLP's own form, and what is worth sending again says so."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_spans import Agent, document, protobuf
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from shop import PEOPLE, Shop, error_of, open_shop

from data.errors import InputError
from data.store.errors import QueueFullError
from data.store.writer import Stored
from serving.door.otlp_body import document_of

PROTOBUF = {"content-type": "application/x-protobuf"}
GZIPPED = {"content-type": "application/json", "content-encoding": "gzip"}
BOUNDS = {"request_bytes": 20_000, "trace_spans": 4, "settle_seconds": 3600}


@pytest.fixture(scope="module")
def intake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with open_shop(tmp_path_factory.mktemp("intake"), otlp={"enabled": True, **BOUNDS}) as opened:
        yield opened


def span(**more: Any) -> dict[str, Any]:
    ids = {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331"}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [{**ids, "name": "s", **more}]}]}]}


def refused(answer: httpx.Response, status: int, code: str) -> str:
    """The message of a google.rpc.Status in JSON."""
    assert answer.headers["content-type"] == "application/json"
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"code", "message"}
    message: str = answer.json()["message"]
    assert message.startswith(f"{code}: ")
    return message


def test_the_route_is_there_only_where_it_is_switched_on(standing: Shop) -> None:
    error_of(standing.post("/v1/traces", span(), "probe"), 404, "not_found")
    assert "/v1/traces" not in standing.client.get("/openapi.json").json()["paths"]


@pytest.mark.parametrize("who", [name for name, grant in PEOPLE.items() if not grant.get("may_send_spans")])
def test_nobody_sends_spans_without_the_right_to(intake: Shop, who: str) -> None:
    assert "may_send_spans" in refused(intake.post("/v1/traces", span(), who), 403, "not_permitted")


def test_nobody_sends_spans_without_a_credential(intake: Shop) -> None:
    answer = intake.post("/v1/traces", span(), None)
    refused(answer, 401, "unauthenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    as_protobuf = intake.send("POST", "/v1/traces", None, content=b"", headers=PROTOBUF)
    assert (as_protobuf.status_code, as_protobuf.headers["content-type"]) == (401, PROTOBUF["content-type"])
    assert b"unauthenticated: no credential" in as_protobuf.content


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"{", {"content-type": "application/json"}, 400, "invalid_json"),
        (b"\xff", {"content-type": "application/json; charset=utf-8"}, 400, "invalid_json"),
        (b"[]", {"content-type": "application/json"}, 400, "invalid_body"),
        (b"[" * 9_000, {"content-type": "application/json"}, 400, "invalid_json"),
        (b"{}", {"content-type": "application/json", "content-encoding": "zstd"}, 415, "unsupported_media_type"),
        (b"{}", GZIPPED, 400, "invalid_body"),
        (gzip.compress(b"{}")[:-4], GZIPPED, 400, "invalid_body"),
        (gzip.compress(b" " * 9_000_000), GZIPPED, 413, "too_large"),
        (b" " * 20_001, {"content-type": "application/json"}, 413, "too_large"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_for_good(
    intake: Shop, body: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    answer = intake.send("POST", "/v1/traces", "probe", content=body, headers=headers)
    refused(answer, status, code)
    assert "retry-after" not in answer.headers


def test_protobuf_that_is_none_is_refused_in_protobuf(intake: Shop) -> None:
    answer = intake.send("POST", "/v1/traces", "probe", content=b"\x0a\xff\xff", headers=PROTOBUF)
    assert (answer.status_code, answer.headers["content-type"]) == (400, PROTOBUF["content-type"])
    assert answer.content.startswith(b"\x08\x03\x12"), "INVALID_ARGUMENT, then the message"


def test_a_body_of_another_kind_is_refused_as_everywhere(intake: Shop) -> None:
    answer = intake.send("POST", "/v1/traces", "probe", content=b"x", headers={"content-type": "text/plain"})
    error_of(answer, 415, "unsupported_media_type")


def test_without_the_library_protobuf_is_refused_and_json_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise InputError("OTLP in protobuf needs opentelemetry-proto, which is not installed")

    monkeypatch.setattr("serving.door.otlp_body.parser", missing)
    with pytest.raises(Exception, match="protobuf is not read here"):
        document_of(b"", PROTOBUF, 100)
    assert document_of(b"{}", {"content-type": "application/json"}, 100) == {"resourceSpans": []}


def test_a_span_that_is_nested_too_deeply_is_rejected_alone(tmp_path: Path) -> None:
    deep = "x"
    for _ in range(4):
        deep = "[" * 190 + json.dumps(deep) + "]" * 190  # JSON in a text in JSON, each part within the bound
    both = span(name="execute_tool x", attributes=[{"key": "gen_ai.tool.name", "value": {"stringValue": deep}}])
    both["resourceSpans"] += span()["resourceSpans"]
    with open_shop(tmp_path, otlp={"enabled": True, "redact": True}) as shop:
        partial = shop.post("/v1/traces", both, "probe").json()["partialSuccess"]
    assert partial == {"rejectedSpans": "1", "errorMessage": "spans whose attributes are nested too deeply: 1"}


def test_an_empty_export_is_a_success(intake: Shop) -> None:
    assert intake.post("/v1/traces", {}, "probe").json() == {}
    assert intake.send("POST", "/v1/traces", "probe", content=b"", headers=PROTOBUF).content == b""


@pytest.mark.parametrize("ids", [{"traceId": "0" * 32}, {"spanId": "xyz"}, {"traceId": "abc"}, {"spanId": "0" * 16}])
def test_spans_without_ids_are_rejected_alone(intake: Shop, ids: dict[str, str]) -> None:
    both = span(**ids)
    both["resourceSpans"] += span()["resourceSpans"]
    partial = intake.post("/v1/traces", both, "probe").json()["partialSuccess"]
    assert partial == {"rejectedSpans": "1", "errorMessage": "spans whose trace id or span id is none: 1"}


def test_spans_beyond_the_bound_of_a_trace_are_rejected_and_counted_in_protobuf_too(intake: Shop, agent: Agent) -> None:
    before = intake.figure("spans_total", fate="rejected")
    answer = intake.send("POST", "/v1/traces", "probe", content=protobuf(agent.spans), headers=PROTOBUF)
    partial = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert (partial.rejected_spans, partial.error_message) == (2, "spans beyond the bound of one trace: 2")
    assert intake.figure("spans_total", fate="rejected") == before + 2


def test_numbers_without_an_end_are_null(intake: Shop) -> None:
    endless = json.dumps(span(name="execute_tool x", attributes=[{"key": "n", "value": {"doubleValue": 1}}]))
    body = endless.replace('"doubleValue": 1', '"doubleValue": 1e999').encode()
    answer = intake.send("POST", "/v1/traces", "spy", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()) == (200, {})


def test_a_sender_of_too_much_is_told_to_come_back(tmp_path: Path, agent: Agent) -> None:
    with open_shop(tmp_path, otlp={"enabled": True, "waiting_bytes": 1_024}) as shop:
        assert shop.post("/v1/traces", document(agent.spans), "probe").status_code == 200
        answer = shop.post("/v1/traces", document(agent.spans), "probe")
        refused(answer, 429, "too_many_spans")
        assert int(answer.headers["retry-after"]) >= 1
        assert shop.post("/v1/traces", document(agent.spans), "spy").status_code == 200, "others are not held up"


def test_under_load_the_sender_is_told_to_come_back(intake: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake.assembly.intake, "inside", 8)
    answer = intake.post("/v1/traces", span(), "probe")
    refused(answer, 503, "overloaded")
    assert int(answer.headers["retry-after"]) >= 1


def test_what_cannot_be_kept_is_not_acknowledged(intake: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> Future[Stored]:
        raise QueueFullError("full")

    monkeypatch.setattr(intake.assembly.writer, "submit", full)
    answer = intake.post("/v1/traces", span(), "probe")
    refused(answer, 503, "store_unavailable")
    assert int(answer.headers["retry-after"]) >= 1


def test_a_mapping_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "names.yaml").write_text("tools: {a: no.such_tool}")
    with (
        pytest.raises(InputError, match=r"names.yaml.*no.such_tool"),
        open_shop(tmp_path, otlp={"enabled": True, "mapping": "names.yaml"}),
    ):
        pass

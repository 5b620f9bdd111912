"""Spans that agents stream in: what an import of the same file would make, whoever sends them in whatever order."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_spans import ASK, Agent, document, protobuf
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import ReadableSpan
from shop import Shop, open_shop

from data.jsonl import load_catalog
from data.logs import import_logs
from data.store.ledger import Ledger
from data.traces import Trace

PROTOBUF = {"content-type": "application/x-protobuf"}
SLOW = {"enabled": True, "settle_seconds": 3600, "idle_seconds": 3600}
"""Nothing is made until a test has it made."""


@pytest.fixture
def intake(tmp_path: Path) -> Iterator[Shop]:
    with open_shop(tmp_path, otlp=SLOW) as opened:
        yield opened


@pytest.fixture(scope="module")
def agent() -> Agent:
    traced = Agent()
    traced.run()
    return traced


def sent(shop: Shop, spans: Sequence[ReadableSpan], who: str = "probe", **headers: str) -> httpx.Response:
    return shop.send("POST", "/v1/traces", who, content=protobuf(spans), headers=PROTOBUF | headers)


def made(shop: Shop) -> list[Trace]:
    """All that the spans so far make."""
    assert shop.assembly.intake is not None
    shop.assembly.intake.make(everything=True)
    return list(Ledger(shop.assembly.database).traces())


def bare(trace: Trace) -> Trace:
    """Without what a file's import does not have: an id of the decision, and the tenant of whoever sent it."""
    return trace.model_copy(update={"slice_id": "", "tenant": ""})


def imported(shop: Shop, spans: Sequence[ReadableSpan], folder: Path) -> list[Trace]:
    (folder / "spans.json").write_text(json.dumps(document(spans)))
    running = import_logs([folder / "spans.json"], "otel", load_catalog(shop.folder / "catalog.jsonl"))
    return [bare(trace) for trace in running.traces()]


def test_streamed_spans_make_what_an_import_of_them_makes(intake: Shop, agent: Agent, tmp_path: Path) -> None:
    answer = sent(intake, agent.spans)
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, PROTOBUF["content-type"], b"")
    traces = made(intake)
    assert [(trace.tool_id, trace.goal, trace.outcome) for trace in traces] == [
        ("shop.orders", "Let me list the orders.", "success"),
        ("mail.search", "Now I search the mail.", "success"),
    ]
    assert traces[0].request == ASK
    assert traces[0].menu is not None
    assert traces[0].caller == {"agent": "clerk"}
    assert [bare(trace) for trace in traces] == imported(intake, agent.spans, tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_in_several_requests_out_of_order_and_twice_they_make_the_same(
    intake: Shop, agent: Agent, tmp_path: Path, seed: int
) -> None:
    chosen = random.Random(seed)
    spans = [*agent.spans, *agent.spans]
    chosen.shuffle(spans)
    whenever = chosen.randrange(len(spans))
    for number, span in enumerate(spans):
        assert sent(intake, [span]).status_code == 200
        if number == whenever:
            made(intake)  # too early, as after a pause
    assert [bare(trace) for trace in made(intake)] == imported(intake, agent.spans, tmp_path)


def test_json_makes_the_same_as_protobuf_also_where_a_trace_comes_in_both(intake: Shop, agent: Agent) -> None:
    half = len(agent.spans) // 2
    answer = intake.post("/v1/traces", document(agent.spans[:half]), "probe")
    assert (answer.status_code, answer.json()) == (200, {})
    sent(intake, agent.spans[half:])
    assert [trace.tool_id for trace in made(intake)] == ["shop.orders", "mail.search"]
    assert len({trace.trace_id for trace in made(intake)}) == 1


def test_gzip_is_read(intake: Shop, agent: Agent) -> None:
    body = gzip.compress(protobuf(agent.spans))
    headers = PROTOBUF | {"content-encoding": "gzip"}
    assert intake.send("POST", "/v1/traces", "probe", content=body, headers=headers).status_code == 200
    assert len(made(intake)) == 2


def test_the_tenant_is_the_senders_whatever_the_spans_say(intake: Shop, agent: Agent) -> None:
    sent(intake, agent.spans)
    assert {trace.tenant for trace in made(intake)} == {"acme"}, "their resource says rival"
    sent(intake, agent.spans, "spy")
    by_tenant: dict[str, list[Any]] = {}
    for trace in made(intake):
        by_tenant.setdefault(trace.tenant, []).append(trace.tool_id)
    assert by_tenant == {tenant: ["shop.orders", "mail.search"] for tenant in ("acme", "rival")}

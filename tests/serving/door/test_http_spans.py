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
import sqlalchemy as sa
from agent_spans import ASK, Agent, document, protobuf
from opentelemetry.sdk.trace import ReadableSpan
from shop import Shop, open_shop

from data.jsonl import load_catalog
from data.logs import import_logs
from data.logs.to_traces import Maker
from data.mining.miner import mine
from data.store.ledger import Ledger
from data.store.privacy import names_of
from data.store.rows import unpacked
from data.store.tables import spans as kept_spans
from data.traces import Trace
from toolcrib.cli import main

PROTOBUF = {"content-type": "application/x-protobuf"}
SLOW = {"enabled": True, "settle_seconds": 3600, "idle_seconds": 3600}
"""Nothing is made until a test has it made."""


@pytest.fixture
def intake(tmp_path: Path) -> Iterator[Shop]:
    with open_shop(tmp_path, otlp=SLOW) as opened:
        yield opened


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


def test_a_trace_that_goes_on_is_made_again_and_says_nothing_twice(intake: Shop) -> None:
    traced = Agent()
    with traced.tracer.start_as_current_span("a session"):
        traced.run("Which orders has customer 1?")
        sent(intake, traced.spans)
        assert len(made(intake)) == 2
        traced.run("Which orders has customer 2?")
    sent(intake, traced.spans)
    traces = made(intake)
    assert [trace.step for trace in traces] == [0, 1, 2, 3]
    assert [trace.request[-2] for trace in traces] == ["1", "1", "2", "2"]


def test_streamed_spans_are_exported_mined_and_become_examples(
    intake: Shop, agent: Agent, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sent(intake, agent.spans)
    exported = ["traces", "export", "--database", str(intake.folder / "traces.db"), "-o", str(tmp_path / "t.parquet")]
    assert main([*exported, "--json"]) == 0
    waiting = json.loads(capsys.readouterr().out)
    assert (waiting["traces"], waiting["left_out"]["spans"]) == (0, len(agent.spans))
    made(intake)
    assert main([*exported, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "traces": 2,
        "left_out": {"decisions": 0, "outcomes": 0, "hashed": 0, "spans": 0},
    }
    mined = mine(tmp_path / "t.parquet", load_catalog(intake.folder / "catalog.jsonl"))
    rows = mined.examples.to_pylist()
    found = {
        (row["goal"], row["tool_id"]) for row in rows if row["label"] == 1.0 and row["reason"].startswith("chosen")
    }
    assert found == {("Let me list the orders.", "shop.orders"), ("Now I search the mail.", "mail.search")}
    assert any(row["label"] == 0.0 and row["tool_id"] == "mail.send" for row in rows), "it was on the menu"


def everything_on_disk(shop: Shop) -> bytes:
    with shop.assembly.database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(FULL)")
        bodies = b"".join(connection.scalars(sa.select(kept_spans.c.body)))
    return bodies + (shop.folder / "traces.db").read_bytes()


def test_where_no_text_is_kept_none_is_and_the_waiting_spans_are_sealed(tmp_path: Path, agent: Agent) -> None:
    with open_shop(tmp_path, otlp=SLOW, traces={"keep_text": False}) as shop:
        sent(shop, agent.spans)
        assert made(shop) == [], "hashed decisions do not train"
        left = Ledger(shop.assembly.database).unpaired()
        assert (left.hashed, left.decisions, left.spans) == (2, 0, 0)
        assert b"list the orders" not in everything_on_disk(shop)
        assert Ledger(shop.assembly.database).forget(names_of("probe", shop.assembly.database))["spans"] == 6


def test_personal_data_is_masked_before_anything_is_kept(tmp_path: Path) -> None:
    traced = Agent()
    traced.run("Mail ann@example.com the orders")
    with open_shop(tmp_path, otlp={**SLOW, "redact": True}) as shop:
        sent(shop, traced.spans)
        traces = made(shop)
        assert {trace.request for trace in traces} == {"Mail [email] the orders"}
        assert [trace.goal for trace in traces] == ["Let me list the orders.", "Now I search the mail."]
        with shop.assembly.database.engine.connect() as connection:
            bodies = [unpacked(body) for body in connection.scalars(sa.select(kept_spans.c.body))]
        assert "ann@example.com" not in json.dumps(bodies)


def test_while_the_database_is_away_spans_go_to_the_spool_and_come_home(intake: Shop, agent: Agent) -> None:
    database = intake.assembly.database
    with database.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE spans RENAME TO hidden")
    assert sent(intake, agent.spans).status_code == 200
    assert sent(intake, agent.spans[:2]).status_code == 200
    with database.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE hidden RENAME TO spans")
    intake.assembly.writer.recover()
    assert len(made(intake)) == 2


def test_what_came_before_the_end_is_made_when_the_service_stops(tmp_path: Path, agent: Agent) -> None:
    with open_shop(tmp_path, otlp=SLOW) as shop:
        sent(shop, agent.spans)
    with open_shop(tmp_path) as shop:
        assert len(list(Ledger(shop.assembly.database).traces())) == 2


def test_spans_are_counted_and_what_they_made_too(intake: Shop, agent: Agent) -> None:
    traced = Agent()
    with traced.tracer.start_as_current_span("execute_tool gone", attributes={"gen_ai.tool.name": "gone"}):
        pass
    sent(intake, [*agent.spans, *traced.spans])
    made(intake)
    assert intake.figure("spans_total", fate="accepted") == len(agent.spans) + 1
    assert (intake.figure("span_traces_total", fate="made"), intake.figure("span_calls_total")) == (2, 2)
    assert intake.figure("spans_unusable_total", reason="its tool is not in the catalog") == 1
    assert intake.figure("spans_waiting") == 0


def test_a_trace_that_nothing_can_be_made_of_does_not_hold_up_the_others(
    intake: Shop, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Agent()
    broken.run("break")
    make = Maker.traces

    def failing(maker: Maker, steps: Iterator[Any]) -> Iterator[Trace]:
        for trace in make(maker, steps):
            if trace.request == "break":
                raise ZeroDivisionError
            yield trace

    monkeypatch.setattr(Maker, "traces", failing)
    sent(intake, [*broken.spans, *agent.spans])
    assert [trace.tool_id for trace in made(intake)] == ["shop.orders", "mail.search"]
    assert intake.figure("span_traces_total", fate="failed") == 1

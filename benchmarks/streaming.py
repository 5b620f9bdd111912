"""Streaming: real traces sent as OTLP requests, shuffled and partly twice, beside an import of the same spans.

    python -m benchmarks.streaming DATA [--sets livemcpbench toolbench]

DATA is as for `benchmarks.round_trip`. The spans of all traces of a set are shuffled, every tenth comes twice, and they
go into requests of 512; in between, whatever waits is made into traces too early, twice. Times are of the intake alone:
reading JSON bodies and keeping spans in SQLite, then making traces of them; no HTTP.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.round_trip import classed, mined, otel_rows, rows_of, tasks
from data.catalog import Catalog
from data.context import Caller
from data.jsonl import load_catalog, load_traces, write_jsonl
from data.logs import import_logs
from data.store.database import open_database
from data.store.ledger import Ledger
from data.store.privacy import TextRules
from data.store.spool import Spool
from data.store.waiting import Waiting
from data.store.writer import TraceWriter
from data.traces import Trace
from serving.door.intake import Intake
from serving.door.metrics import Metrics
from serving.door.otlp_body import document_of
from serving.door.settings import OtlpSettings

REQUEST_SPANS = 512
JSON = {"content-type": "application/json"}


def main() -> None:
    parser = argparse.ArgumentParser(description="Stream real traces as OTLP requests and mine what they make.")
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=["livemcpbench", "toolbench"])
    given = parser.parse_args()
    print(f"{'set':<14} {'spans':>7} {'kept/s':>7} {'made/s':>7} {'traces':>7}  examples same / import's / only here")
    for name in given.sets:
        catalog = load_catalog(given.data / name / "tools.jsonl")
        plain = [classed(trace) for trace in load_traces(given.data / name / "traces.jsonl")]
        with TemporaryDirectory() as scratch:
            _compare(name, catalog, plain, Path(scratch))


def _compare(name: str, catalog: Catalog, plain: list[Trace], folder: Path) -> None:
    documents = [_with_ids(row) for steps in tasks(plain) for row in otel_rows(steps, catalog)]
    write_jsonl(folder / "spans.jsonl", documents)
    wanted = mined(folder / "import.parquet", import_logs([folder / "spans.jsonl"], "otel", catalog).traces(), catalog)
    bodies = list(_bodies(documents))
    database = open_database(folder / "traces.db")
    ledger, spool = Ledger(database), Spool(folder / "traces.spool")
    writer = TraceWriter(ledger, spool)
    settings = OtlpSettings(enabled=True)
    intake = Intake(settings, Waiting(ledger, TextRules()), writer, lambda: catalog, Metrics())
    taking, making, spans = asyncio.run(_streamed(intake, bodies))
    traces = list(ledger.traces())
    found = mined(folder / "stream.parquet", iter(traces), catalog)
    writer.close()
    spool.close()
    database.close()
    here, there = rows_of(found.examples), rows_of(wanted.examples)
    same = f"{(here & there).total()} / {there.total()} / {(here - there).total()}"
    print(f"{name:<14} {spans:>7} {spans / taking:>7.0f} {spans / making:>7.0f} {len(traces):>7}  {same}")


async def _streamed(intake: Intake, bodies: list[bytes]) -> tuple[float, float, int]:
    """Seconds of taking and of making, and how many spans were taken."""
    taking = making = 0.0
    spans = 0
    for number, body in enumerate(bodies):
        begun = time.perf_counter()
        document = document_of(body, JSON, intake.settings.request_bytes)
        spans += (await intake.take(Caller(principal="agent"), document)).accepted
        taking += time.perf_counter() - begun
        if number in (len(bodies) // 3, len(bodies) * 2 // 3, len(bodies) - 1):
            begun = time.perf_counter()
            intake.make(everything=True)
            making += time.perf_counter() - begun
    return taking, making, spans


def _bodies(documents: list[dict[str, Any]]) -> Iterator[bytes]:
    chosen = random.Random(0)
    spans = [span for document in documents for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    spans += spans[::10]
    chosen.shuffle(spans)
    for start in range(0, len(spans), REQUEST_SPANS):
        some = spans[start : start + REQUEST_SPANS]
        yield json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": some}]}]}).encode()


def _with_ids(document: dict[str, Any]) -> dict[str, Any]:
    """The same spans under ids that are ids."""
    for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        trace = span["traceId"]
        span["spanId"] = _hex(f"{trace} {span['spanId']}", 16)
        span["parentSpanId"] = _hex(f"{trace} {span['parentSpanId']}", 16) if span["parentSpanId"] else ""
        span["traceId"] = _hex(trace, 32)
    return document


def _hex(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]


if __name__ == "__main__":
    main()

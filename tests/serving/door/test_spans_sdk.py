"""The OpenTelemetry SDK's own exporter against a running service; what it was told is kept is there after a kill."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from agent_spans import Agent
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from port import open_port
from shop import KEYS, TOOLS, open_shop, write_catalog, write_config

from data.store.ledger import Ledger

exporter = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
ROOT, HERE = Path(__file__).resolve().parents[3], Path(__file__).resolve().parent
WAITS = {"enabled": True, "settle_seconds": 3600, "idle_seconds": 3600}
CHILD = """
import sys
from pathlib import Path
from serving.door.assembly import Assembly
from serving.door.identity import Authenticator
from serving.door.listening import listening
from serving.door.settings import load_settings

folder = Path(sys.argv[1])
settings = load_settings(folder / "service.yaml")
authenticator = Authenticator(settings.identity, source=folder / "service.yaml")
made = Assembly(settings, catalog=folder / "catalog.jsonl", bundle=None, authenticator=authenticator)
server = listening(made.application(), made.door, settings, "127.0.0.1", 0)
listener = server.config.bind_socket()
listener.listen()
print(listener.getsockname()[1], flush=True)
server.run([listener])
"""


def sender(url: str, who: str = "probe", **more: object) -> object:
    return exporter.OTLPSpanExporter(endpoint=f"{url}/v1/traces", headers={"X-API-Key": KEYS[who]}, **more)


@pytest.mark.parametrize("compression", [exporter.Compression.NoCompression, exporter.Compression.Gzip])
def test_an_instrumented_agent_streams_and_its_traces_are_there(tmp_path: Path, compression: object) -> None:
    with open_port(tmp_path, otlp=WAITS, shutdown={"linger_seconds": 0}) as (url, _, assembly):
        agent = Agent(BatchSpanProcessor(sender(url, compression=compression), max_export_batch_size=2))
        agent.run()
        agent.run("Which orders has customer 2?")
        assert agent.provider.force_flush()
        agent.provider.shutdown()
        assert assembly.intake is not None
        assert assembly.intake.make(everything=True) == 2
        traces = list(Ledger(assembly.database).traces())
    assert [trace.tool_id for trace in traces] == ["shop.orders", "mail.search"] * 2
    assert len({trace.trace_id for trace in traces}) == 2


def test_a_sender_without_the_right_is_told_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent()
    agent.run()
    with open_port(tmp_path, otlp=WAITS, shutdown={"linger_seconds": 0}) as (url, _, _):
        assert sender(url, "ann").export(agent.spans) is SpanExportResult.FAILURE
    assert "code: 403" in caplog.text


def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path) -> None:
    write_catalog(tmp_path / "catalog.jsonl", TOOLS)
    write_config(tmp_path / "service.yaml", otlp=WAITS)
    agent = Agent()
    agent.run()
    root = next(span for span in agent.spans if span.parent is None)
    others = [span for span in agent.spans if span is not root]
    command = [sys.executable, "-c", CHILD, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        assert child.stdout is not None
        send = sender(f"http://127.0.0.1:{child.stdout.readline().strip()}")
        assert send.export(others) is SpanExportResult.SUCCESS
        child.kill()
    assert child.returncode == -signal.SIGKILL
    with open_shop(tmp_path, otlp=WAITS) as shop:
        assert shop.assembly.intake is not None
        shop.assembly.intake.make(everything=True)
        early = [(trace.tool_id, trace.goal) for trace in Ledger(shop.assembly.database).traces()]
        assert early == [("shop.orders", "Let me list the orders."), ("mail.search", "Now I search the mail.")]

"""The end of the server: it says so while it still answers, then closes."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx
import pytest
from port import open_port
from shop import KEYS
from sse_starlette.sse import AppStatus


@pytest.fixture(autouse=True)
def streams_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server's signal ends every stream of its process, once that package is loaded: not those of other tests."""
    monkeypatch.setattr(AppStatus, "should_exit", False)


def test_readyz_says_503_before_connections_are_closed(tmp_path: Path) -> None:
    with open_port(tmp_path, shutdown={"linger_seconds": 300}) as (url, server, _):
        with httpx.Client(base_url=url, headers={"X-API-Key": KEYS["ann"]}, timeout=60, trust_env=False) as kept:
            assert kept.get("/readyz").json()["status"] == "ok"
            server.should_exit = True
            told = kept.get("/readyz")
            while told.status_code == 200:
                told = kept.get("/readyz")
            assert (told.status_code, told.json()["status"]) == (503, "draining")
            assert kept.get("/healthz").status_code == 200
            assert kept.post("/v1/select", json={"goal": "refund the order"}).status_code == 200
        assert httpx.get(f"{url}/readyz", trust_env=False).status_code == 503, "new connections are taken too"
        server.linger_s = 0.0


@pytest.mark.parametrize(("sent", "lingers"), [(signal.SIGTERM, 300.0), (signal.SIGINT, 0.0)])
def test_a_person_at_the_keyboard_does_not_wait(tmp_path: Path, sent: signal.Signals, lingers: float) -> None:
    with open_port(tmp_path, shutdown={"linger_seconds": 300}) as (url, server, assembly):
        assert httpx.get(f"{url}/readyz", trust_env=False).status_code == 200
        server.handle_exit(sent, None)
        assert (assembly.door.draining, server.linger_s) == (True, lingers)
        server.linger_s = 0.0

"""`toolcrib serve` as a process: it says where it listens, ends in order when it may, and forgets nothing when not."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from workshop import TOOLS, Run, write_lines

from data.store.database import open_database
from data.store.ledger import Ledger
from serving.door.keys import digest, new_key

KEY = new_key()
WAIT_S = 60
WITHOUT_MODEL = """
import sys
import toolcrib.inputs
from toolcrib.cli import main
toolcrib.inputs._untrained = lambda: None  # torch takes seconds to load, and says nothing about a service
sys.exit(main(sys.argv[1:]))
"""
_PLACE = re.compile(r"running on (http://[0-9.:]+)")


class Process:
    """A running service; `lines` are what it has logged so far."""

    def __init__(self, child: subprocess.Popen[str], url: str, lines: list[dict[str, Any]]) -> None:
        self.child, self.url, self.lines = child, url, lines
        self.http = httpx.Client(base_url=url, headers={"X-API-Key": KEY}, timeout=WAIT_S, trust_env=False)

    def post(self, path: str, body: object) -> Any:
        answer = self.http.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def report(self, key: str, slice_id: str) -> None:
        line = {"key": key, "slice_id": slice_id, "tool_id": "calendar.list_events", "outcome": "success"}
        self.post("/v1/outcomes", {"outcomes": [line, {**line, "key": f"{key} again"}]})


@contextmanager
def serving(folder: Path, *more: str) -> Iterator[Process]:
    catalog = write_lines(folder / "catalog.jsonl", TOOLS)
    config = folder / "service.yaml"
    identity = {"keys": [{"name": "ann", "sha256": digest(KEY)}]}
    config.write_text(json.dumps({"identity": identity, "shutdown": {"linger_seconds": 0}}))
    words = ["serve", "--bundle", "none", "--catalog", str(catalog), "--config", str(config)]
    child = subprocess.Popen(
        [sys.executable, "-c", WITHOUT_MODEL, *words, "--port", "0", *more],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert child.stderr is not None
    lines: list[dict[str, Any]] = []
    place = None
    try:
        for line in child.stderr:
            lines.append(json.loads(line))
            place = _PLACE.search(lines[-1]["message"])
            if place is not None:
                break
        assert place is not None, lines
        yield Process(child, place.group(1), lines)
    finally:
        child.kill()
        child.wait(WAIT_S)
        child.stderr.close()


def kept(folder: Path) -> list[str]:
    """The keys of all calls that the store knows, by their slice's trace."""
    database = open_database(folder / "traces.db")
    try:
        return sorted(trace.trace_id for trace in Ledger(database).traces())
    finally:
        database.close()


def test_a_service_that_is_asked_to_end_ends_and_has_kept_everything(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        assert not service.url.endswith(":0"), "where it listens is in its log"
        assert service.http.get("/readyz").json()["status"] == "ok"
        found = service.post("/v1/select", {"goal": "list the events of the calendar", "trace_id": "run"})
        service.report("k", found["slice_id"])
        service.child.send_signal(signal.SIGTERM)
        assert service.child.wait(WAIT_S) in (0, -signal.SIGTERM)
        assert service.child.stderr is not None
        rest = [json.loads(line) for line in service.child.stderr]
        assert {line["logger"].partition(".")[0] for line in rest} <= {"toolcrib", "uvicorn"}
    assert kept(tmp_path) == ["run", "run"]


def test_what_was_acknowledged_is_there_once_after_a_kill(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        for number in range(10):
            found = service.post("/v1/select", {"goal": f"list the events {number}", "trace_id": f"run {number}"})
            assert found["recorded"]
            service.report(f"k{number}", found["slice_id"])
        service.child.kill()
        service.child.wait(WAIT_S)
    expected = sorted([f"run {number}" for number in range(10)] * 2)
    assert kept(tmp_path) == expected
    with serving(tmp_path) as service:
        found = service.post("/v1/select", {"goal": "list the events 3", "trace_id": "run 3"})
        service.report("k3", found["slice_id"])
        slices = service.post("/v1/check", {"slice_id": found["slice_id"], "tool_id": "calendar.list_events"})
        assert slices["verdict"] == "allow"
    assert kept(tmp_path) == expected, "reported again, under keys that are known"


@pytest.fixture
def logs() -> Iterator[None]:
    """The process's logging as it was: the command takes it over for good."""
    found = [logging.getLogger(name) for name in ("toolcrib", "uvicorn", "uvicorn.error")]
    before = [(log, log.handlers, log.propagate, log.level) for log in found]
    yield
    for log, log.handlers, log.propagate, level in before:
        log.setLevel(level)


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "nobody could be let in"),
        (["--dev", "--host", "0.0.0.0"], "--dev is for this machine alone"),
        (["--config", "nowhere.yaml"], "nowhere.yaml"),
        (["--dev", "--database", "mysql://x/y"], "not a database that can be used"),
        (["--dev", "--policy", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_served(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("toolcrib.inputs._untrained", lambda: None)
    catalog = write_lines(tmp_path / "catalog.jsonl", TOOLS)
    done = run("serve", "--bundle", "none", "--catalog", catalog, *more)
    assert done.code == 2
    assert said in done.err
    assert done.out == ""


@pytest.mark.usefixtures("logs")
def test_a_database_may_be_named_by_a_variable_which_has_to_be_there(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolcrib.inputs._untrained", lambda: None)
    monkeypatch.delenv("WHERE", raising=False)
    catalog = write_lines(tmp_path / "catalog.jsonl", TOOLS)
    config = tmp_path / "service.yaml"
    config.write_text(json.dumps({"traces": {"database_env": "WHERE"}}))
    done = run("serve", "--bundle", "none", "--catalog", catalog, "--config", config, "--dev")
    assert (done.code, "WHERE" in done.err) == (2, True)
    monkeypatch.setenv("WHERE", "mysql://ann:secret@x/y")
    done = run("serve", "--bundle", "none", "--catalog", catalog, "--config", config, "--dev")
    assert done.code == 2
    assert "not a database" in done.err
    assert "secret" not in done.err

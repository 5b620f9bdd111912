"""`toolcrib serve --registry`: what `toolcrib catalog` decides is served by a process that is not told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from workshop import TOOLS, Run, write_json, write_lines

KEYLESS = {"TOOLCRIB_REGISTRY": "", "OMP_NUM_THREADS": "1"}
WAIT_S = 60
LOOKS = 5000
WITHOUT_MODEL = """
import sys
import toolcrib.inputs
from toolcrib.cli import main
toolcrib.inputs._untrained = lambda: None  # torch takes seconds to load, and says nothing about a service
sys.exit(main(sys.argv[1:]))
"""
PARCEL = {"tool_id": "post.track", "name": "track_parcel", "domain": "post", "description": "Track a parcel."}


@contextmanager
def serving(folder: Path, *words: object, **environment: str) -> Iterator[httpx.Client]:
    config = write_json(folder / "service.yaml", {"shutdown": {"linger_seconds": 0}, "selector": {"explore_rate": 0}})
    fixed = ["serve", "--bundle", "none", "--dev", "--port", "0", "--config", str(config)]
    child = subprocess.Popen(
        [sys.executable, "-c", WITHOUT_MODEL, *fixed, *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **KEYLESS, **environment},
    )
    assert child.stderr is not None
    try:
        said: list[str] = []
        for line in child.stderr:
            said.append(line)
            if place := re.search(r"running on (http://[0-9.:]+)", line):
                yield httpx.Client(base_url=place.group(1), timeout=WAIT_S, trust_env=False)
                return
        raise AssertionError(said)
    finally:
        child.kill()
        child.wait(WAIT_S)
        child.stderr.close()


def ranked(client: httpx.Client, goal: str) -> list[str]:
    answer = client.post("/v1/select", json={"goal": goal})
    assert answer.status_code == 200, answer.text
    return [entry["tool_id"] for entry in answer.json()["menu"]]


def imported(run: Run, folder: Path, registry: Path, tools: list[dict[str, Any]]) -> None:
    source = write_lines(folder / "tools.jsonl", tools)
    done = run("catalog", "import", source, "--format", "jsonl", "--source", "shop", "--registry", registry)
    assert done.code == 0, done.err


def test_what_is_approved_while_it_serves_is_found_and_what_is_rejected_is_gone(run: Run, tmp_path: Path) -> None:
    registry = tmp_path / "registry.db"
    imported(run, tmp_path, registry, TOOLS)
    assert run("catalog", "approve", "--all", "--registry", registry).code == 0
    with serving(tmp_path, TOOLCRIB_REGISTRY=str(registry)) as client:
        imported(run, tmp_path, registry, [*TOOLS, PARCEL])
        assert "post.track" not in ranked(client, "track a parcel")
        done = run("catalog", "approve", "post.track", "--registry", registry, "--despite", "read")
        assert done.code == 0, done.err
        assert any("post.track" in ranked(client, "track a parcel") for _ in range(LOOKS))
        imported(run, tmp_path, registry, TOOLS)
        assert any("post.track" not in ranked(client, "track a parcel") for _ in range(LOOKS))


@pytest.mark.parametrize("command", [["serve"], ["mcp", "--upstreams", "none.yaml"]])
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "there is no catalog to serve"),
        (["--catalog", "c.jsonl", "--registry", "r.db"], "not both"),
        (["--registry", "nowhere.db"], "there is no database here"),
        (["--registry", "mysql://x/y"], "not a database that can be used"),
    ],
)
def test_what_cannot_be_served_is_said(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], more: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOOLCRIB_REGISTRY", raising=False)
    monkeypatch.setattr("toolcrib.inputs._untrained", lambda: None)
    dev = ["--dev"] if command == ["serve"] else []
    done = run(*command, "--bundle", "none", *dev, *more)
    assert done.code == 2
    assert said in done.err
    assert json.dumps(list(tmp_path.glob("*.db"))) == "[]", "nothing is made by the way"

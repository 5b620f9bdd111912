"""The command run inside this process, and a catalog to run it on."""

from __future__ import annotations

from pathlib import Path

import pytest
from workshop import TOOLS, Ran, Run, write_lines

from toolcrib.cli import main


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `toolcrib` with these arguments; both streams are caught as the operating system sees them."""
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments: object) -> Ran:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        caught = capfd.readouterr()
        return Ran(code, caught.out, caught.err)

    return call


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "catalog.jsonl", TOOLS)

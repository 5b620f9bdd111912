"""The example of an MCP client runs, offline, from the search to a call that a person has approved."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "mcp_client.py"


def test_the_example_reaches_its_tools_through_the_door(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [str(EXAMPLE)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    said = capfd.readouterr().out
    assert said.endswith("It will rain in Oslo tomorrow. The reminder is set: Take an umbrella.\n")
    assert "? Run desk.add_reminder? It writes." in said

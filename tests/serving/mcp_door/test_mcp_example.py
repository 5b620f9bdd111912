"""The example of an MCP client runs, offline, from the search to a call that a person has approved."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "mcp_client.py"


def test_the_example_reaches_its_tools_through_the_door(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("It will rain in Oslo tomorrow. The reminder is set: Take an umbrella.\n")
    assert "? Run desk.add_reminder? It writes." in done.stdout

"""Ctrl-C ends the command with code 130 and without a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_an_interrupted_command_exits_with_130_and_says_nothing(tmp_path: Path) -> None:
    pipe = tmp_path / "slice.json"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, "-m", "toolcrib", "explain", str(pipe)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with pipe.open("w"):  # opens when the command has opened its end: from here on it waits for our text
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err

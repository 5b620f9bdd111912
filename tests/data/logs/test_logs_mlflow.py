"""Traces that MLflow wrote: exported, in its database, and from its server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from desk import called, imported, imported_with_report, menu

from data.errors import InputError

AGENT = Path(__file__).with_name("mlflow_agent.py")


@pytest.mark.slow
def test_export_database_and_server_give_the_same_steps(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", AGENT, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        port = program.stdout.readline().strip()
        database = tmp_path / "mlflow.db"
        sources = [tmp_path / "trace.json", database, f"sqlite:///{database}", f"http://127.0.0.1:{port}"]
        told = [imported_with_report(source) for source in sources]
        program.communicate("")
    first, *others = (traces for traces, _ in told)
    assert called(first) == [("mail.search", "success", "none"), ("mail.send_message", "failure", "rate_limited")]
    assert (first[0].goal, first[0].request) == ("I search for x.", "Find x and send it to Ann")
    assert (first[0].arguments, menu(first[0]), first[0].task_success) == ({"q": "x"}, ["mail.search"], False)
    assert first[0].trace_id.startswith("tr-")
    assert all(other == first for other in others)
    assert {report.files for _, report in told} == {1}


def test_a_server_that_is_not_there_and_a_database_of_others_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the server gives no answer"):
        imported("http://127.0.0.1:9")
    with pytest.raises(InputError, match=r"there is no database here"):
        imported(f"sqlite:///{tmp_path}/none.db")
    other = tmp_path / "other.db"
    other.write_bytes(b"SQLite format 3\x00" + b"\x00" * 100)
    with pytest.raises(InputError, match=r"no database that MLflow can have written"):
        imported(other)

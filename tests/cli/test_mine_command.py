"""`toolcrib mine`: from any place to any place, and what it says of options that cannot be meant."""

from __future__ import annotations

import json
from pathlib import Path

import fsspec
import pyarrow.parquet as pq
import pytest
from workshop import Run, write_lines

ROWS = [
    {"trace_id": f"t{n}", "subgoal": f"write to {n}", "tool_id": "mail.send_message", "ok": True, "tenant": tenant}
    for n, tenant in enumerate(("acme", "acme", "nile"))
]


@pytest.fixture
def traces(run: Run, catalog: Path, tmp_path: Path) -> Path:
    """A folder of traces, one below it for each tenant."""
    plain = write_lines(tmp_path / "plain.jsonl", ROWS)
    place = tmp_path / "traces"
    ran = run("traces", "import", plain, "-f", "jsonl", "-c", catalog, "-o", place, "--partition-by", "tenant")
    assert ran.code == 0, ran.err
    return place


def test_a_pattern_is_mined_into_a_partitioned_folder(run: Run, catalog: Path, traces: Path, tmp_path: Path) -> None:
    out = tmp_path / "mined"
    given = ("--partition-by", "tenant", "--memory-limit", "200MB", "--temp-directory", tmp_path)
    ran = run("mine", "-c", catalog, "-t", traces / "tenant=a*", "-o", out, *given)
    assert ran.code == 0, ran.err
    assert "2 calls in 2 decisions" in ran.out
    (written,) = (out / "examples").rglob("*.parquet")
    assert written.parent.name == "tenant=acme"
    assert pq.ParquetFile(written).read()["trace_id"].to_pylist() == ["t0", "t1"]


def test_a_url_is_written_to(run: Run, catalog: Path, traces: Path) -> None:
    ran = run("mine", "-c", catalog, "-t", traces, "-o", "memory://mine-command/mined")
    assert ran.code == 0, ran.err
    report = json.loads(fsspec.filesystem("memory").cat("/mine-command/mined/report.json"))
    assert report["positives"] == 3


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--memory-limit", "much"), "write it as 2GB"),
        (("--partition-by", "week"), "use day or tenant"),
        (("--temp-directory", "nowhere/at/all"), "no such folder"),
        (("--engine", "polars"), "use one of duckdb, spark"),
    ],
)
def test_an_option_that_cannot_be_meant_is_said_in_one_line(
    run: Run, catalog: Path, traces: Path, tmp_path: Path, given: tuple[str, str], says: str
) -> None:
    ran = run("mine", "-c", catalog, "-t", traces, "-o", tmp_path / "mined", *given)
    assert ran.code == 2
    assert says in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "mined").exists()

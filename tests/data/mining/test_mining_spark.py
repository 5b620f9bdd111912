"""Spark gives the tables that DuckDB gives, row for row; needs pyspark with a Java runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
from mining_log import CATALOG, at, call, menu

from data.mining.miner import mine
from data.mining.options import MiningOptions
from data.trace_store import write_traces

sql = pytest.importorskip("pyspark.sql")

LOG = [
    call("files.search", "failure", step=1, ts=at(1), menu=menu("files.search", "mail.send", mail_send=0.3)),
    call("mail.send", step=2, ts=at(2), menu=menu("files.search", "mail.send", "maps.route", maps_route=0.7)),
    call("mail.send", trace_id="t2", goal="Send \t\n the  REPORT", retrieved=("maps.route",), task_success=False),
    call("files.read", "empty_result", trace_id="t3", goal="größer LESEN", step=1, gold=("files.read", "mail.search")),
    call(None, "unknown", trace_id="t4", goal="brew a coffee", tenant="acme"),
    *(call("sheets.append", trace_id=f"s{n}", goal=f"note {n}", task_success=n % 2 == 0) for n in range(9)),
]


@pytest.fixture
def session() -> Iterator[object]:
    """A session of one thread, without the hundreds of partitions that Spark gives a table of ten rows."""
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    yield session
    session.stop()


@pytest.mark.slow
@pytest.mark.usefixtures("session")
@pytest.mark.skipif(which("java") is None, reason="no Java runtime")
def test_spark_and_duckdb_mine_the_same_tables(tmp_path: Path) -> None:
    write_traces(tmp_path / "t.parquet", LOG)
    options = MiningOptions(positives_per_tool=5, equivalents={"maps.route": ("files.read",)})
    ours, spark = (mine(tmp_path / "t.parquet", CATALOG, options=options, engine=e) for e in ("duckdb", "spark"))
    assert ours.report == spark.report
    assert ours.examples.equals(spark.examples)
    assert ours.preferences.equals(spark.preferences)
    assert ours.no_tool.equals(spark.no_tool)

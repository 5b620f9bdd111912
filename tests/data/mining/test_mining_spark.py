"""Spark gives the tables that DuckDB gives, row for row and bit for bit; needs pyspark with a Java runtime."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pyarrow.parquet as pq
import pytest
from mining_log import CATALOG, TOOLS, at, call, menu, same
from spark_cluster import cluster

from data.errors import InputError
from data.jsonl import save_catalog
from data.mining.engines import Resources
from data.mining.miner import mine, mine_to_folder
from data.mining.options import MiningOptions
from data.mining.output import TABLES
from data.trace_store import write_traces

sql = pytest.importorskip("pyspark.sql")
pytestmark = pytest.mark.skipif(which("java") is None, reason="no Java runtime")

LOG = [
    call("files.search", "failure", step=1, ts=at(1), menu=menu("files.search", "mail.send", mail_send=0.3)),
    call("mail.send", step=2, ts=at(2), menu=menu("files.search", "mail.send", "maps.route", maps_route=0.7)),
    call("mail.send", trace_id="t2", goal="Send \t\n the  REPORT", retrieved=("maps.route",), task_success=False),
    call("files.read", "empty_result", trace_id="t3", goal="größer LESEN", step=1, gold=("files.read", "mail.search")),
    call(None, "unknown", trace_id="t4", goal="brew a coffee", tenant="acme"),
    *(call("sheets.append", trace_id=f"s{n}", goal=f"note {n}", task_success=n % 2 == 0) for n in range(9)),
    *(
        call(
            TOOLS[n % 5],
            trace_id=f"p{n}",
            goal=f"plan {n % 7}",
            tenant="007",
            ts=at(n * 700),
            menu=menu(*TOOLS, **{tool.replace(".", "_"): 0.1 + 0.13 * place for place, tool in enumerate(TOOLS)}),
        )
        for n in range(12)
    ),
]
OPTIONS = MiningOptions(positives_per_tool=5, equivalents={"maps.route": ("files.read",)})


@pytest.fixture(scope="module")
def session() -> Iterator[object]:
    """A session of two threads, without the hundreds of partitions that Spark gives a table of ten rows."""
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    yield session
    session.stop()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("session")
def test_spark_and_duckdb_mine_the_same_tables_from_partitioned_traces(tmp_path: Path) -> None:
    write_traces(tmp_path / "t", LOG, ("tenant", "day"))
    spark = mine(tmp_path / "t", CATALOG, options=OPTIONS, engine="spark")
    assert same(spark, mine(tmp_path / "t", CATALOG, options=OPTIONS))
    assert spark.report.positives > 0
    assert spark.report.negatives > 0
    assert spark.report.preferences > 0
    assert spark.report.no_tool > 0
    assert spark.report.history > 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("session")
def test_spark_keeps_the_session_that_runs_and_refuses_what_it_cannot_use(tmp_path: Path) -> None:
    write_traces(tmp_path / "t.parquet", LOG)
    with pytest.raises(InputError, match=r"spark-master.*local\[2\] already"):
        mine(tmp_path / "t.parquet", CATALOG, engine="spark", resources=Resources(spark_master="local[1]"))
    with pytest.raises(InputError, match="workers cannot read it"):
        mine("memory://there/t.parquet", CATALOG, engine="spark")
    (tmp_path / "torn.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:-9])
    with pytest.raises(InputError, match=r"torn\.parquet: not a whole Parquet file"):
        mine(tmp_path / "torn.parquet", CATALOG, engine="spark")
    assert sql.SparkSession.getActiveSession() is not None


@pytest.mark.spark_cluster
@pytest.mark.slow
def test_a_cluster_mines_the_same_folder_by_the_command(tmp_path: Path) -> None:
    write_traces(tmp_path / "t", LOG, ("day",))
    save_catalog(tmp_path / "catalog.jsonl", CATALOG)
    report = mine_to_folder(tmp_path / "t", CATALOG, tmp_path / "duckdb")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        "spark.ui.enabled false\nspark.sql.shuffle.partitions 2\nspark.driver.host 127.0.0.1\n"
        f"spark.executor.memory 512m\nspark.checkpoint.dir {tmp_path / 'kept'}\n"
    )
    with cluster(tmp_path) as master:
        command = [sys.executable, "-c", "from toolcrib.cli import main; raise SystemExit(main())", "mine"]
        command += ["--engine", "spark", "--spark-master", master, "-c", "catalog.jsonl", "-t", "t", "-o", "spark"]
        ran = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "SPARK_CONF_DIR": str(tmp_path / "conf"), "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    assert {path.name for path in tmp_path.glob("worker-*/*/*")} >= {"0", "1"}  # both ran an executor
    for name in TABLES:
        ours, theirs = (pq.read_table(tmp_path / engine / f"{name}.parquet") for engine in ("duckdb", "spark"))
        assert ours.equals(theirs), name
    assert json.loads((tmp_path / "spark" / "report.json").read_text()) == report.model_dump(mode="json")

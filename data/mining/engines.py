"""Engines: where the mining expressions run, one machine's DuckDB or a Spark cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq

from data.errors import InputError
from data.jsonl import load_traces
from data.trace_store import write_traces

ENGINES = ("duckdb", "spark")
_SPARK_TYPES = {"string": "string", "int64": "bigint"}
_PLAIN_SUFFIXES = frozenset({".jsonl", ".ndjson"})


@dataclass(frozen=True)
class Engine:
    """Where tables are computed.

    traces    the raw trace table
    computed  computes an Ibis table now, so that what reads it several times does so from the result
    local     brings a small pyarrow table of strings and int64 without nulls to where the traces are
    """

    traces: Any
    computed: Callable[[Any], Any]
    local: Callable[[pa.Table], Any]


@contextmanager
def opened(traces: Path, engine: str) -> Iterator[Engine]:
    """The engine, with the traces of a Parquet file, a folder of them, or a plain .jsonl file.

    DuckDB works in memory and spills to a folder that is removed afterwards. Spark takes the session that is
    running, or starts one. Raises InputError for an unknown engine or one that is not installed, and for traces that
    are missing, empty, torn or not Parquet: on DuckDB every page is checked first, on Spark the footers.
    """
    if engine not in ENGINES:
        raise InputError(f"no such engine: '{engine}'", field="engine", hint=f"use one of {', '.join(ENGINES)}")
    if engine == "spark" and find_spec("pyspark") is None:
        raise InputError(
            "the spark engine needs pyspark, which is not installed",
            field="engine",
            hint="pip install 'toolcrib[spark]', or use the duckdb engine",
        )
    with TemporaryDirectory(prefix="toolcrib-mine-") as scratch:
        if traces.suffix.lower() in _PLAIN_SUFFIXES:
            plain, traces = traces, Path(scratch) / "traces.parquet"
            write_traces(traces, load_traces(plain))
        parts = _checked_parts(traces, every_page=engine == "duckdb")
        with _duckdb(parts, scratch) if engine == "duckdb" else _spark(str(traces)) as running:
            yield running


@contextmanager
def _duckdb(parts: list[str], scratch: str) -> Iterator[Engine]:
    connection = ibis.duckdb.connect(temp_directory=scratch)
    number = count()

    # not Table.cache: its tables are dropped when they are collected, which may be after the connection is closed
    def computed(table: Any) -> Any:
        return connection.create_table(f"computed_{next(number)}", table, temp=True)

    try:
        yield Engine(connection.read_parquet(parts), computed, local=ibis.memtable)
    finally:
        connection.disconnect()


@contextmanager
def _spark(traces: str) -> Iterator[Engine]:
    from pyspark.sql import SparkSession  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    session = SparkSession.builder.appName("toolcrib mine").getOrCreate()
    zone = session.conf.get("spark.sql.session.timeZone")
    # a log's instants are UTC; a session in another zone would move them on the way out
    session.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        with ExitStack() as held:
            connection = ibis.pyspark.connect(session)

            def view(frame: Any) -> Any:
                name = f"toolcrib_{token_hex(6)}"
                frame.createTempView(name)
                held.callback(session.catalog.dropTempView, name)
                return connection.table(name)

            # not Table.cache: a cached table carries its whole plan into every reader's, which multiply until planning
            # takes longer than any work; a checkpoint is a table and nothing else
            def computed(table: Any) -> Any:
                return view(session.sql(connection.compile(table)).localCheckpoint())

            # not ibis.memtable: it is not registered with Spark before it is executed by itself
            def local(table: pa.Table) -> Any:
                columns = ", ".join(f"{field.name} {_SPARK_TYPES[str(field.type)]}" for field in table.schema)
                return view(session.createDataFrame([tuple(row.values()) for row in table.to_pylist()], columns))

            yield Engine(connection.read_parquet(traces), computed, local)
    finally:
        session.conf.set("spark.sql.session.timeZone", zone)


def _checked_parts(traces: Path, *, every_page: bool) -> list[str]:
    source = str(traces)
    if not traces.exists():
        raise InputError("no such file or folder", source=source, hint="import traces first: toolcrib traces import")
    parts = sorted(traces.rglob("*.parquet")) if traces.is_dir() else [traces]
    if not parts:
        raise InputError("the folder holds no .parquet file", source=source, hint="name the traces file itself")
    for part in parts:
        try:
            with pq.ParquetFile(part, page_checksum_verification=every_page) as file:
                if every_page:
                    for _ in file.iter_batches(batch_size=65_536):
                        pass
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(
                f"not a whole Parquet file: {error}",
                source=str(part),
                hint="write it again, or restore it from a copy",
            ) from error
    return [str(part) for part in parts]

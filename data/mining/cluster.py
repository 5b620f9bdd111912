"""A cluster: the mining tables on Spark; the traces stay there, what the caps left of them comes back in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import Any

import ibis
import pyarrow as pa

from data.errors import InputError
from data.mining.columns import trace_table
from data.mining.engines import Engine
from data.places import is_url, parts_of
from data.tables import BATCH_ROWS, read_schema

_SETTINGS = {
    # a log's instants are UTC; a session in another zone would move them on the way out
    "spark.sql.session.timeZone": "UTC",
    # a tenant called 007 is not the number 7
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}


@contextmanager
def spark_engine(traces: str, scratch: Path, master: str | None) -> Iterator[Engine]:
    """Spark with the traces of a place. Takes the session that is running, or starts one and stops it afterwards.

    Spark reads by itself, with the file systems that it is set up for. With `spark.checkpoint.dir` set, every table is
    kept there, which survives the loss of a worker; without it, on the workers.

    Raises InputError for traces that are missing or not Parquet, and for another master than the running session's.
    """
    from pyspark.errors import AnalysisException  # noqa: PLC0415 (pyspark: only for who asks)
    from pyspark.sql import SparkSession  # noqa: PLC0415
    from pyspark.sql import functions as of  # noqa: PLC0415

    names, root = _read_by_spark(traces)
    running = SparkSession.getActiveSession()
    builder = SparkSession.builder.appName("toolcrib mine")
    if running is None:
        builder = builder.config("spark.sql.warehouse.dir", (scratch / "warehouse").as_uri())
        builder = builder.config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.master(master)
    session = builder.getOrCreate()
    if master is not None and session.sparkContext.master != master:
        raise InputError(f"a session runs on {session.sparkContext.master} already", field="--spark-master")
    before = {name: session.conf.get(name) for name in _SETTINGS}
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    kept = session.sparkContext.getCheckpointDir() is not None
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
            def checkpoint(frame: Any) -> Any:
                return view(frame.checkpoint() if kept else frame.localCheckpoint())

            def computed(table: Any) -> Any:
                return checkpoint(session.sql(connection.compile(table)))

            def numbered(table: Any, name: str) -> Any:
                frame = session.sql(connection.compile(table))
                return checkpoint(frame.withColumn(name, of.monotonically_increasing_id()))

            # not ibis.memtable: it is not registered with Spark before it is executed by itself
            def local(table: pa.Table) -> Any:
                return checkpoint(session.createDataFrame(table))

            def batches(table: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
                frame = session.sql(connection.compile(table))
                # a time in a row becomes one of the driver's zone
                times = {f.name for f in schema if pa.types.is_timestamp(f.type)}
                plain = frame.select(*(of.unix_micros(f.name) if f.name in times else f.name for f in schema))
                rows = plain.toLocalIterator()
                while some := list(islice(rows, BATCH_ROWS)):
                    yield _batch(some, schema)

            try:
                raw = session.read.option("basePath", root).parquet(*names) if root else session.read.parquet(*names)
            except AnalysisException as error:
                raise InputError(
                    f"Spark cannot read it: {str(error).splitlines()[0]}", source=traces, hint="check the path"
                ) from error
            table = computed(trace_table(view(raw), traces))
            yield Engine(table, computed, numbered, local, batches)
    finally:
        for name, earlier in before.items():
            session.conf.set(name, str(earlier))
        if running is None:
            session.stop()


def _read_by_spark(traces: str) -> tuple[list[str], str | None]:
    """What Spark is to read, and the folder below which folders' names are columns."""
    if is_url(traces) and not traces.startswith("file://"):
        if traces.startswith("memory://"):
            raise InputError("Spark's workers cannot read it", source=traces, hint="use a store that they reach")
        return [traces], None
    parts = parts_of(traces)
    for part in parts:
        read_schema(part)
    path = Path(traces.removeprefix("file://"))
    if path.exists():
        return [path.absolute().as_uri()], None
    return [Path(part.path).absolute().as_uri() for part in parts], Path(_above(parts)).absolute().as_uri()


def _above(parts: Sequence[Any]) -> str:
    """The folder above all partition folders of some files."""
    first = parts[0]
    folder = Path(first.path).parent
    for _ in first.keys:
        folder = folder.parent
    return str(folder)


def _batch(rows: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(values, pa.int64() if pa.types.is_timestamp(f.type) else f.type).cast(f.type)
            for f, values in zip(schema, columns, strict=True)
        ],
        schema=schema,
    )

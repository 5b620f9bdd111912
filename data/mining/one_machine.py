"""One machine: the mining tables on DuckDB, in a database on disk, so that memory is a bound and not a need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa

from data.errors import InputError
from data.mining.columns import ARROW_SCHEMA, check_columns, trace_table
from data.mining.engines import Engine
from data.places import Part, parts_of
from data.tables import BATCH_ROWS, read_batches, read_schema


@contextmanager
def duckdb_engine(traces: str, scratch: Path, memory_limit: str | None) -> Iterator[Engine]:
    """DuckDB with the traces of `parts_of(traces)`, working in `scratch`.

    Raises InputError for a limit that is none, and where the work does not fit it.
    """
    parts = parts_of(traces)
    for part in parts:
        check_columns(ibis.Schema.from_pyarrow(read_schema(part)), part.name)
    config = {"temp_directory": str(scratch), "preserve_insertion_order": False}
    try:
        connection = ibis.duckdb.connect(scratch / "mining.duckdb", **config)
        if memory_limit is not None:
            connection.raw_sql(f"SET memory_limit = '{memory_limit}'")
    except duckdb.Error as error:
        raise InputError(
            f"not an amount of memory: '{memory_limit}'", field="--memory-limit", hint="write it as 2GB or 512MB"
        ) from error
    number = count()

    # not Table.cache: its tables are dropped when they are collected, which may be after the connection is closed
    def computed(table: Any) -> Any:
        return connection.create_table(f"computed_{next(number)}", table)

    def numbered(table: Any, name: str) -> Any:
        kept = computed(table)
        return kept.mutate(**{name: kept.rowid()})

    # not create_table of what is in memory: it drops a view afterwards, in words that not every sqlglot finds
    def local(table: pa.Table) -> Any:
        return computed(connection.table(_registered(connection, table)))

    def batches(table: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        # without it even sorted rows are handed out in any order
        connection.raw_sql("SET preserve_insertion_order = true")
        for batch in connection.con.sql(connection.compile(table)).to_arrow_reader(BATCH_ROWS):
            yield pa.RecordBatch.from_arrays([batch.column(f.name).cast(f.type) for f in schema], schema=schema)

    try:
        yield Engine(_ingested(connection, parts, traces, computed), computed, numbered, local, batches)
    except duckdb.OutOfMemoryException as error:
        raise InputError(
            f"does not fit: {str(error).splitlines()[0]}",
            source=traces,
            hint="raise --memory-limit, give --temp-directory more space, or use the spark engine",
        ) from error
    finally:
        connection.disconnect()


def _ingested(connection: Any, parts: Sequence[Part], source: str, computed: Any) -> Any:
    """The trace table: the files are read once, batch by batch, each page with its checksum."""
    failed: list[InputError] = []

    def rows() -> Iterator[pa.RecordBatch]:
        try:
            for part in parts:
                for batch in read_batches(part, ARROW_SCHEMA.names):
                    yield _conformed(batch, part)
        except InputError as error:
            failed.append(error)
            raise

    # DuckDB would report the error of a generator as text of its own
    incoming = _registered(connection, pa.RecordBatchReader.from_batches(ARROW_SCHEMA, rows()))
    try:
        return computed(trace_table(connection.table(incoming), source))
    except duckdb.Error:
        if failed:
            raise failed[0] from None
        raise


def _registered(connection: Any, source: pa.Table | pa.RecordBatchReader) -> str:
    """The name of a view of what Python holds; the next one takes its place, since each is read once, at once."""
    connection.con.register("brought", source)
    return "brought"


def _conformed(batch: pa.RecordBatch, part: Part) -> pa.RecordBatch:
    """The batch with the columns of ARROW_SCHEMA, absent ones as null."""
    columns = []
    for field in ARROW_SCHEMA:
        if field.name not in batch.schema.names:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        column = batch.column(field.name)
        try:
            # unsafe only for times: finer ones than microseconds are cut
            columns.append(column.cast(field.type, safe=field.name != "ts"))
        except pa.ArrowException as error:
            raise InputError(f"a value does not fit: {error}", source=part.name, field=field.name) from error
    return pa.RecordBatch.from_arrays(columns, schema=ARROW_SCHEMA)

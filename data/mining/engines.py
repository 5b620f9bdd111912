"""Engines: where the mining expressions run, one machine's DuckDB or a Spark cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from data.errors import InputError
from data.places import is_url
from data.trace_store import PLAIN_SUFFIXES, plain_traces, write_traces

ENGINES = ("duckdb", "spark")


@dataclass(frozen=True)
class Resources:
    """What an engine may use. None leaves it to the engine's own defaults.

    memory_limit    DuckDB's, such as "2GB": beyond it, it works on disk. Its default is 80% of the memory
    temp_directory  where DuckDB keeps its working tables; the default is the system's folder for temporary files
    spark_master    the URL of a Spark master, such as spark://host:7077 or local[2]
    """

    memory_limit: str | None = None
    temp_directory: Path | None = None
    spark_master: str | None = None


@dataclass(frozen=True)
class Engine:
    """Where tables are computed.

    traces    the trace table (`columns.trace_table`)
    computed  computes an Ibis table now, so that what reads it several times does so from the result
    numbered  the same, with a column more of that name: a whole number, another one for each row, nothing else
    local     brings a small pyarrow table of strings and int64 without nulls to where the traces are
    batches   the rows of an Ibis table in its order, as batches of the pyarrow schema; never all of them at once
    """

    traces: Any
    computed: Callable[[Any], Any]
    numbered: Callable[[Any, str], Any]
    local: Callable[[pa.Table], Any]
    batches: Callable[[Any, pa.Schema], Iterator[pa.RecordBatch]]


@contextmanager
def opened(traces: Path | str, engine: str, resources: Resources | None = None) -> Iterator[Engine]:
    """The engine, with the traces of Parquet files (a file, a folder, a pattern, a URL) or of a plain .jsonl file.

    Raises InputError for an unknown engine or one that is not installed, and for traces that are missing, torn or not
    Parquet: DuckDB reads them through pyarrow, which checks every page; on Spark the footers are checked, where the
    files are this machine's.
    """
    if engine not in ENGINES:
        raise InputError(f"no such engine: '{engine}'", field="engine", hint=f"use one of {', '.join(ENGINES)}")
    if engine == "spark" and find_spec("pyspark") is None:
        raise InputError(
            "the spark engine needs pyspark, which is not installed",
            field="engine",
            hint="pip install 'toolcrib[spark]', or use the duckdb engine",
        )
    use = resources or Resources()
    place = str(traces)
    with _scratch(use.temp_directory) as scratch:
        if Path(place).suffix.lower() in PLAIN_SUFFIXES and not is_url(place):
            place = str(scratch / "traces.parquet")
            write_traces(place, plain_traces(traces))
        with _running(engine, place, scratch, use) as running:
            yield running


def _running(engine: str, place: str, scratch: Path, use: Resources) -> AbstractContextManager[Engine]:
    if engine == "spark":
        from data.mining.cluster import spark_engine  # noqa: PLC0415 (pyspark: only for who asks)

        return spark_engine(place, scratch, use.spark_master)
    from data.mining.one_machine import duckdb_engine  # noqa: PLC0415 (either engine does without the other)

    return duckdb_engine(place, scratch, use.memory_limit)


@contextmanager
def _scratch(parent: Path | None) -> Iterator[Path]:
    try:
        with TemporaryDirectory(prefix="toolcrib-mine-", dir=parent) as folder:
            yield Path(folder)
    except (FileNotFoundError, NotADirectoryError) as error:
        if parent is None or parent.is_dir():
            raise
        raise InputError("no such folder", source=str(parent), field="--temp-directory", hint="make it") from error

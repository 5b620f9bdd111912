"""Tables: batches of rows as Parquet, one file or a folder partitioned by day and tenant, with page checksums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from data.errors import InputError
from data.places import Part

PARTITIONS = {"day": "ts", "tenant": "tenant"}
"""What a table can be partitioned by, and the column that it is taken from; `day` is that of the UTC time."""

_OPEN_FILES = 256
BATCH_ROWS = 20_000
"""Rows that are held at once on their way, and rows of a row group."""


def pyarrow_modules() -> tuple[Any, Any]:
    """pyarrow and pyarrow.parquet, asked for when a Parquet file is: the plain forms do without them."""
    try:
        import pyarrow  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            "Parquet files need pyarrow, which is not installed",
            hint="pip install 'toolcrib[train]', or use traces in the plain .jsonl form",
        ) from error
    return pyarrow, pyarrow.parquet


def check_partitions(columns: Sequence[str]) -> None:
    """Raise InputError for a column that nothing is partitioned by."""
    for column in columns:
        if column not in PARTITIONS:
            raise InputError(
                f"nothing is partitioned by '{column}'", field="--partition-by", hint=f"use {' or '.join(PARTITIONS)}"
            )


def write_table(path: str, filesystem: Any, schema: Any, batches: Iterable[Any]) -> int:
    """Write one Parquet file, a batch at a time; how many rows it got."""
    _, parquet = pyarrow_modules()
    rows = 0
    with parquet.ParquetWriter(
        path, schema, filesystem=filesystem, compression="zstd", write_page_checksum=True
    ) as writer:
        for batch in batches:
            rows += batch.num_rows
            writer.write_batch(batch, row_group_size=BATCH_ROWS)
    return rows


def write_parts(path: str, filesystem: Any, schema: Any, batches: Iterable[Any], by: Sequence[str]) -> int:
    """Write a folder of Parquet files as Hive lays it out (day=2026-03-01/tenant=acme/part-0.parquet); rows written.

    `by` names keys of PARTITIONS. The order of the rows is kept inside a partition. An empty tenant, and the day of a
    row without a time, are Hive's null: an empty value has no folder that every reader understands.
    """
    arrow, _ = pyarrow_modules()
    import pyarrow.dataset as datasets  # noqa: PLC0415 (with pyarrow, see above)

    keys = arrow.schema([(column, arrow.string()) for column in by])
    inside = [field for field in schema if field.name not in by]
    keyed_schema = arrow.schema([*inside, *keys])
    rows = 0

    def keyed() -> Iterator[Any]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            columns = [batch.column(field.name) for field in inside]
            yield arrow.record_batch([*columns, *(_key(batch, column) for column in by)], schema=keyed_schema)

    form = datasets.ParquetFileFormat()
    datasets.write_dataset(
        keyed(),
        path,
        schema=keyed_schema,
        basename_template="part-{i}.parquet",
        format=form,
        file_options=form.make_write_options(compression="zstd", write_page_checksum=True),
        partitioning=datasets.partitioning(keys, flavor="hive"),
        filesystem=filesystem,
        use_threads=False,
        max_open_files=_OPEN_FILES,
        max_rows_per_group=BATCH_ROWS,
        max_partitions=1_000_000,
        existing_data_behavior="overwrite_or_ignore",
    )
    return rows


def read_batches(part: Part, names: Sequence[str], batch_rows: int = BATCH_ROWS) -> Iterator[Any]:
    """The columns of a Parquet file that are among `names`, as it comes, with the keys of its folders as columns.

    Raises InputError for a file that cannot be read, is torn, or whose pages fail their checksums.
    """
    arrow, parquet = pyarrow_modules()
    keys = {name: value for name, value in part.keys.items() if name in names}
    with (
        _whole(part),
        parquet.ParquetFile(part.path, filesystem=part.filesystem, page_checksum_verification=True) as file,
    ):
        columns = [name for name in file.schema_arrow.names if name in names and name not in keys]
        for batch in file.iter_batches(batch_size=batch_rows, columns=columns):
            told = batch
            for name, value in keys.items():
                told = told.append_column(name, arrow.array([value] * batch.num_rows, arrow.string()))
            yield told


def read_schema(part: Part) -> Any:
    """The pyarrow schema of a Parquet file, with the keys of its folders. Raises as `read_batches`."""
    arrow, parquet = pyarrow_modules()
    with _whole(part), parquet.ParquetFile(part.path, filesystem=part.filesystem) as file:
        schema = file.schema_arrow
    own = [field for field in schema if field.name not in part.keys]
    return arrow.schema([*own, *((name, arrow.string()) for name in part.keys)])


@contextmanager
def _whole(part: Part) -> Iterator[None]:
    """Say of a file that cannot be read, or not to its end, what it is."""
    arrow, _ = pyarrow_modules()
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise InputError(
            f"cannot be read: {error.strerror or error}", source=part.name, hint="check the path"
        ) from error
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise InputError(
            f"not a whole Parquet file: {error}", source=part.name, hint="write it again, or restore it from a copy"
        ) from error


def _key(batch: Any, column: str) -> Any:
    arrow, _ = pyarrow_modules()
    from pyarrow import compute  # noqa: PLC0415 (with pyarrow, see above)

    if column == "day":
        return compute.strftime(batch.column("ts"), format="%Y-%m-%d")
    values = batch.column(column)
    return compute.if_else(compute.equal(values, ""), arrow.scalar(None, arrow.string()), values)

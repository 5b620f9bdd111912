"""The trace store: traces as a Parquet file, columns named and typed as the Trace fields are."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from data.atomic import replacing
from data.errors import InputError
from data.jsonl import load_traces
from data.traces import Trace

_JSON_COLUMNS = ("arguments", "caller")
_PLAIN_SUFFIXES = frozenset({".jsonl", ".ndjson"})
_BATCH_ROWS = 20_000


def write_traces(path: Path | str, traces: Iterable[Trace]) -> None:
    """Write the traces atomically as one Parquet file with page checksums, in batches: any number, in bounded memory.

    `arguments` and `caller` are JSON text, `ts` is timestamp[us, UTC], the stage sets are lists; absent is null.
    Raises InputError for a value that does not fit its column, and if the place cannot be written; whatever goes
    wrong, the old file stays.
    """
    arrow, parquet = _pyarrow()
    schema, rest = _schema(arrow), iter(traces)
    with (
        replacing(Path(path)) as fresh,
        parquet.ParquetWriter(fresh, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        while batch := list(islice(rest, _BATCH_ROWS)):
            try:
                table = arrow.Table.from_pylist([_row(trace) for trace in batch], schema=schema)
            except (arrow.ArrowException, OverflowError, ValueError) as error:
                raise InputError(f"a trace does not fit the columns: {error}", source=str(path)) from error
            writer.write_table(table)


def read_traces(path: Path | str) -> list[Trace]:
    """The traces of a Parquet file, or of a file in the plain jsonl form (by the ending .jsonl or .ndjson).

    Columns that are missing or null take Trace's defaults; other columns are left unread. Raises InputError for a
    missing, torn or changed file, and with the row (counted from 1) and the field for a value that is no trace's.
    """
    if Path(path).suffix.lower() in _PLAIN_SUFFIXES:
        return load_traces(path)
    arrow, parquet = _pyarrow()
    source = str(path)
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            columns = [name for name in Trace.model_fields if name in file.schema_arrow.names]
            rows = file.read(columns=columns).to_pylist()
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=source, hint="check the path") from error
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise InputError(
            f"not a whole Parquet file: {error}", source=source, hint="write it again, or restore it from a copy"
        ) from error
    return [_trace(row, source, number) for number, row in enumerate(rows, start=1)]


def _row(trace: Trace) -> dict[str, Any]:
    row = trace.model_dump()
    for name in _JSON_COLUMNS:
        if row[name] is not None:
            row[name] = json.dumps(row[name], allow_nan=False)
    return row


def _trace(row: dict[str, Any], source: str, number: int) -> Trace:
    fields = {name: value for name, value in row.items() if value is not None}
    for name in _JSON_COLUMNS:
        if name in fields:
            try:
                fields[name] = json.loads(fields[name])
            except (TypeError, ValueError) as error:
                raise InputError(f"not JSON text: {error}", source=source, line=number, field=name) from error
    try:
        return Trace.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(
            first["msg"], source=source, line=number, field=field, hint="line = row of the file"
        ) from error


def _schema(arrow: Any) -> Any:
    text, names, real = arrow.string(), arrow.list_(arrow.string()), arrow.float64()
    shown = arrow.struct(
        [
            ("tool_id", text),
            ("position", arrow.int32()),
            ("relevance", real),
            ("propensity", real),
            ("explored", arrow.bool_()),
        ]
    )
    special = {
        "step": arrow.int64(),
        "ts": arrow.timestamp("us", tz="UTC"),
        "mutation": arrow.bool_(),
        "task_success": arrow.bool_(),
        "menu": arrow.list_(shown),
        **dict.fromkeys(("retrieved", "filtered", "gold"), names),
        **dict.fromkeys(("latency_ms", "cost_usd"), real),
    }
    return arrow.schema([(name, special.get(name, text)) for name in Trace.model_fields])


def _pyarrow() -> tuple[Any, Any]:
    """pyarrow, asked for when a Parquet file is: the plain forms do without it."""
    try:
        import pyarrow  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            "Parquet files need pyarrow, which is not installed",
            hint="pip install 'toolcrib[train]', or use traces in the plain .jsonl form",
        ) from error
    return pyarrow, pyarrow.parquet

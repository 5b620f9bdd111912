"""The trace store: traces as Parquet, columns named and typed as the Trace fields are."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from data.errors import InputError
from data.jsonl import load_traces, read_objects
from data.places import is_url, only, parts_of, replacing_file, replacing_tree
from data.plain import TRACE_KEYS, Place, trace_from_row
from data.tables import BATCH_ROWS, check_partitions, pyarrow_modules, read_batches, write_parts, write_table
from data.traces import Trace

log = logging.getLogger("toolcrib")

PLAIN_SUFFIXES = frozenset({".jsonl", ".ndjson"})
_JSON_COLUMNS = ("arguments", "caller")


def write_traces(place: Path | str, traces: Iterable[Trace], partition_by: Sequence[str] = ()) -> None:
    """Write the traces atomically as Parquet with page checksums, in batches: any number, in bounded memory.

    `place` is a path or a URL that fsspec knows. It becomes one file; with `partition_by` (day, tenant) a folder, laid
    out as Hive does. `arguments` and `caller` are JSON text, `ts` is timestamp[us, UTC], the stage sets are lists;
    absent is null.

    Raises InputError for a value that does not fit its column, for a folder that holds anything but traces, and if the
    place cannot be written; whatever goes wrong, an old file stays.
    """
    check_partitions(partition_by)
    schema = _schema(pyarrow_modules()[0])
    batches = _batches(traces, schema, str(place))
    if not partition_by:
        with replacing_file(place) as (path, filesystem):
            write_table(path, filesystem, schema, batches)
        return
    ours = ("day=", "tenant=", "part-")
    hint = "name a new folder, or one that traces were written to"
    check = only(lambda name: name.startswith(ours), place, "a folder of traces", hint)
    with replacing_tree(place, check) as (path, filesystem):
        write_parts(path, filesystem, schema, batches, partition_by)


def read_traces(place: Path | str) -> list[Trace]:
    """The traces of Parquet files (`parts_of`), or of a file in the plain jsonl form (by its ending).

    Columns that are missing or null take Trace's defaults; other columns are left unread. Raises InputError for a
    missing, torn or changed file, and with the row (counted from 1) and the field for a value that is no trace's.
    """
    if Path(place).suffix.lower() in PLAIN_SUFFIXES and not is_url(place):
        return load_traces(place)
    pyarrow_modules()
    traces: list[Trace] = []
    for part in parts_of(place):
        number = 0
        for batch in read_batches(part, list(Trace.model_fields)):
            for number, row in enumerate(batch.to_pylist(), start=number + 1):  # noqa: B020 (counted over the batches)
                traces.append(_trace(row, part.name, number))
    return traces


def plain_traces(path: Path | str) -> Iterator[Trace]:
    """The traces of a file in the plain form, one at a time; unknown keys are counted in a warning at its end.

    Raises InputError for what is no such line, and for a file without any.
    """
    ignored: Counter[str] = Counter()
    line = 0
    for line, row in read_objects(path):
        ignored.update(key for key in row if key not in TRACE_KEYS)
        yield trace_from_row(row, Place(str(path), line))
    if not line:
        raise InputError("the file holds no lines", source=str(path), hint="give at least one JSON object a line")
    if ignored:
        counts = ", ".join(f"{key} ({count})" for key, count in sorted(ignored.items()))
        log.warning("%s: unknown keys were ignored: %s", path, counts)


def _batches(traces: Iterable[Trace], schema: Any, source: str) -> Iterator[Any]:
    arrow, _ = pyarrow_modules()
    rest = iter(traces)
    while batch := list(islice(rest, BATCH_ROWS)):
        try:
            yield arrow.RecordBatch.from_pylist([_row(trace) for trace in batch], schema=schema)
        except (arrow.ArrowException, OverflowError, ValueError) as error:
            raise InputError(f"a trace does not fit the columns: {error}", source=source) from error


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

"""The mining folder: Parquet tables with a report, written as they come and replaced as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from data.places import only, replacing_tree
from data.tables import PARTITIONS, write_parts, write_table

TABLES = ("examples", "preferences", "no_tool", "history")
_REPORT = "report.json"
_NAMES = frozenset({*TABLES, *(f"{table}.parquet" for table in TABLES), _REPORT})


class MiningFolder:
    """A folder that is being written. `add` takes a table's batches in order and counts their rows."""

    def __init__(self, path: str, filesystem: object, partition_by: Sequence[str]) -> None:
        self._path, self._filesystem, self._partition_by = path, filesystem, partition_by

    def add(self, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
        """Write NAME.parquet, or the folder NAME with a folder below it for each value of the partition columns.

        A table that has no such columns is one file all the same.
        """
        by = [column for column in self._partition_by if PARTITIONS[column] in schema.names]
        if by:
            return write_parts(f"{self._path}/{name}", self._filesystem, schema, batches, by)
        return write_table(f"{self._path}/{name}.parquet", self._filesystem, schema, batches)

    def report(self, text: str) -> None:
        """Write report.json."""
        if self._filesystem is None:
            (Path(self._path) / _REPORT).write_text(text + "\n", encoding="utf-8")
        else:
            self._filesystem.pipe_file(f"{self._path}/{_REPORT}", f"{text}\n".encode())  # type: ignore[attr-defined]


@contextmanager
def mining_folder(place: Path | str, partition_by: Sequence[str] = ()) -> Iterator[MiningFolder]:
    """A folder, or a URL of one, that appears or changes only when the block ends well.

    Raises InputError if it holds anything but an earlier mining result, or cannot be written.
    """
    check = only(
        _NAMES.__contains__, place, "a mining folder", "name a new folder, or one that an earlier mining wrote"
    )
    with replacing_tree(place, check) as (path, filesystem):
        yield MiningFolder(path, filesystem, partition_by)

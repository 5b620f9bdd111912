"""Grouping: records that belong together, brought together whatever their order, in bounded memory.

Records are kept in memory while they are few; beyond that they go to files on disk by a hash of their key, and each
file is then grouped alone.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from data.logs.account import Account
from data.logs.json_stream import loads

MEMORY_BYTES = 128 << 20
FILES = 128
GROUP_RECORDS = 100_000
"""A group beyond this is cut: no task of an agent has so many steps, but a key that says nothing has."""

CUT = "a record beyond the 100,000 of one trace"


def grouped(
    records: Iterable[tuple[str, dict[str, Any]]], account: Account, memory_bytes: int = MEMORY_BYTES
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """(key, its records in their order). Keys come in the order of their first records, or, from disk, by hash."""
    with ExitStack() as stack:
        held: dict[str, list[str]] = {}
        size = 0
        spill: list[IO[str]] | None = None
        for key, record in records:
            line = json.dumps([key, record], separators=(",", ":"), default=str)
            held.setdefault(key, []).append(line)
            size += len(line) + 100
            if size > memory_bytes:
                spill = spill or _files(stack)
                _flush(held, spill)
                held, size = {}, 0
        if spill is None:
            yield from _groups(held, account)
            return
        _flush(held, spill)
        for file in spill:
            file.seek(0)
            part: dict[str, list[str]] = {}
            for line in file:
                part.setdefault(loads(line)[0], []).append(line)
            yield from _groups(part, account)


def _groups(held: dict[str, list[str]], account: Account) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for key, lines in held.items():
        if len(lines) > GROUP_RECORDS:
            account.skip(CUT, f"trace {key}", len(lines) - GROUP_RECORDS)
        yield key, [loads(line)[1] for line in lines[:GROUP_RECORDS]]


def _files(stack: ExitStack) -> list[IO[str]]:
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="toolcrib-logs-")))
    return [stack.enter_context((folder / str(number)).open("w+", encoding="utf-8")) for number in range(FILES)]


def _flush(held: dict[str, list[str]], spill: list[IO[str]]) -> None:
    for key, lines in held.items():
        file = spill[zlib.crc32(key.encode("utf-8", "surrogatepass")) % FILES]
        file.writelines(f"{line}\n" for line in lines)

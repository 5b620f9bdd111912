"""Spool: records in a file while the database is away; written whole or not at all, read only where whole.

A process that ends in the middle of a write, or a disk that loses a part, leaves bytes that are no frame. They are
found, at the file's end when it is opened and elsewhere when it is replayed, and copied beside it as `NAME.torn-CRC`.
"""

from __future__ import annotations

import fcntl
import logging
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from threading import Lock

from pydantic import ValidationError

from data.store.errors import SpoolFullError, StoreError
from data.store.frames import Piece, framed, pieces
from data.store.records import Decision, Mask, OutcomeRecord, Record, SpanBatch
from data.store.rows import packed, unpacked
from data.store.sharing import taken_apart

_LOG = logging.getLogger("toolcrib.store")

MAX_BYTES = 256 * 2**20
_AT_ONCE = 500
_KINDS: dict[str, type[Record]] = {
    "decision": Decision,
    "outcome": OutcomeRecord,
    "mask": Mask,
    "spans": SpanBatch,
}
_KIND_OF = {model: kind for kind, model in _KINDS.items()}


class Spool:
    """One file, for one process. Threads may share it."""

    def __init__(self, path: Path | str, *, max_bytes: int = MAX_BYTES) -> None:
        """Open the file, or make it; what is in it from an earlier run waits to be replayed.

        Raises StoreError if it cannot be opened, or is another process's.
        """
        self.path, self._max = Path(path), max_bytes
        self._changing, self._replaying = Lock(), Lock()
        self._masks: set[str] = set()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{self.path}: the spool cannot be opened: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            raise StoreError(f"{self.path}: the spool is in use by another process; give each its own") from error
        self._read, self._end = 0, os.fstat(self._file).st_size
        try:
            self._cut_torn_end()
        except OSError as error:
            os.close(self._file)
            raise StoreError(f"{self.path}: its torn end cannot be set aside: {error.strerror}") from error

    @property
    def size(self) -> int:
        """Bytes that wait to be replayed."""
        return self._end - self._read

    def append(self, records: Sequence[Record]) -> None:
        """Write the records; when this returns they are on the disk.

        Raises SpoolFullError where they do not fit, and then keeps none of them; ValueError for a record with a value
        that has no JSON form.
        """
        with self._changing:
            frames, masks = self._frames(records)
            if self._end + len(frames) > self._max:
                raise SpoolFullError(f"{self.path}: the spool is full ({self._end} of at most {self._max} bytes)")
            try:
                written = 0
                while written < len(frames):
                    written += os.pwrite(self._file, frames[written:], self._end + written)
                os.fsync(self._file)
            except OSError as error:
                with suppress(OSError):  # where this fails too, the next write goes over it
                    os.ftruncate(self._file, self._end)
                raise SpoolFullError(f"{self.path}: the spool cannot be written: {error.strerror}") from error
            self._end += len(frames)
            self._masks |= masks

    def replay(self, store: Callable[[Sequence[Record]], None]) -> int:
        """Hand the records that are there now to `store`, the oldest first, some at a time; an empty file is cut.

        What `store` raises goes through, and what it has not taken is handed to it again the next time; after an
        unexpected end of the process, so is what it has taken. Records may be appended meanwhile, and are left for the
        next time. Gives how many were handed over.
        """
        with self._replaying:
            total, goal = 0, self._end
            while self._read < goal:
                batch, upto = self._batch()
                if batch:
                    store(batch)
                total += len(batch)
                self._read = upto
            with self._changing:
                if self._read == self._end:
                    self._empty()
        return total

    def close(self) -> None:
        """Close the file, so that another process may have it. What is appended later is refused."""
        with self._changing:
            os.close(self._file)
            self._file = -1  # the number may soon be another file's

    def _cut_torn_end(self) -> None:
        last = next(iter(deque(self._pieces(), maxlen=1)), None)
        if last is not None and last.payload is None:
            self._set_aside(last)
            os.ftruncate(self._file, last.start)
            self._end = last.start

    def _frames(self, records: Sequence[Record]) -> tuple[bytes, set[str]]:
        """The records as frames, with the masks that they need and the file does not have yet, whose digests follow."""
        frames, masks = bytearray(), set[str]()
        for record in records:
            whole: list[Record] = [record]
            if isinstance(record, Decision):
                apart, mask = taken_apart(record)
                known = mask is None or mask.digest in self._masks or mask.digest in masks
                whole = [apart] if mask is None or known else [mask, apart]
            for each in whole:
                if isinstance(each, Mask):
                    masks.add(each.digest)
                frames += framed(packed([_KIND_OF[type(each)], each.model_dump(mode="json")]))
        return bytes(frames), masks

    def _batch(self) -> tuple[list[Record], int]:
        """The next records, and where those after them begin."""
        records: list[Record] = []
        upto = self._read
        for piece in self._pieces():
            upto = piece.stop
            record = None if piece.payload is None else _record(piece.payload)
            if record is None:
                self._set_aside(piece)
                continue
            records.append(record)
            if len(records) == _AT_ONCE:
                break
        return records, upto

    def _pieces(self) -> Iterator[Piece]:
        start, stop = self._read, self._end
        if start < stop:
            with mmap(self._file, stop, access=ACCESS_READ) as content:
                yield from pieces(content, start, stop)

    def _set_aside(self, piece: Piece) -> None:
        content = os.pread(self._file, piece.stop - piece.start, piece.start)
        aside = self.path.with_name(f"{self.path.name}.torn-{zlib.crc32(content):08x}")
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        _LOG.error("%s: %d bytes at %d are no whole record; kept as %s", self.path, len(content), piece.start, aside)

    def _empty(self) -> None:
        if self._end:
            os.ftruncate(self._file, 0)
        self._read = self._end = 0
        self._masks.clear()


def _record(payload: bytes) -> Record | None:
    """The record in a payload; None for one that this version cannot read."""
    try:
        kind, fields = unpacked(payload)
        return _KINDS[kind].model_validate(fields)
    except (ValueError, KeyError, TypeError, zlib.error, ValidationError):
        return None

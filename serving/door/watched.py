"""A file that is read again when it changes, so that what it says holds from the next look on.

While the file cannot be used, looking raises; the old value is not kept. For grants this is the safe side: the new
file may be the one that revokes a key, and a slip of the pen elsewhere in it must not keep that key alive.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

from data.errors import InputError, ToolcribError

T = TypeVar("T")

_LOG = logging.getLogger("toolcrib.door")
_SETTLED_NS = 2_000_000_000
"""A file changed less than this before it was read may change again without its times showing it."""

_Stamp = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class _Seen(Generic[T]):
    stamp: _Stamp | None
    settled: bool
    digest: str
    value: T | None
    problem: str


class WatchedFile(Generic[T]):
    """`read` turns the file into a value, or raises ToolcribError. One stat a look; threads may share it."""

    def __init__(self, path: Path, read: Callable[[Path], T], now_ns: Callable[[], int] = time.time_ns) -> None:
        self._path, self._read, self._now_ns = path, read, now_ns
        self._lock = Lock()
        self._seen: _Seen[T] | None = None

    def value(self) -> T:
        """What the file says now. Raises InputError while it is missing or cannot be used."""
        stamp = _stamp(self._path)
        seen = self._seen
        if seen is None or not seen.settled or seen.stamp != stamp:
            with self._lock:
                seen = self._seen = self._look(self._seen)
        if seen.value is None:
            raise InputError(seen.problem)
        return seen.value

    def _look(self, before: _Seen[T] | None) -> _Seen[T]:
        now = self._now_ns()
        stamp = _stamp(self._path)  # before the content: a change in between shows at the next look
        settled = stamp is not None and now - max(stamp[0], stamp[1]) > _SETTLED_NS
        try:
            digest = hashlib.sha256(self._path.read_bytes()).hexdigest()
        except OSError as error:
            digest = f"unreadable: {error.strerror or error}"
        if before is not None and before.digest == digest:
            return _Seen(stamp, settled, digest, before.value, before.problem)
        try:
            value, problem = self._read(self._path), ""
        except (ToolcribError, OSError) as error:
            _LOG.error("%s cannot be used, and nothing it granted holds until it can: %s", self._path, error)
            return _Seen(stamp, settled, digest, None, str(error))
        if before is not None:
            _LOG.info("%s has changed and was read again", self._path)
        return _Seen(stamp, settled, digest, value, problem)


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev

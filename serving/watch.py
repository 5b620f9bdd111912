"""Watch: what version a bundle or a catalog has where it comes from, told cheaply enough to be asked again and again.

A source is a function that says where its thing is and what version it has; sources know files and folders, whoever
needs another (an alias in a registry) brings the function that resolves it. What is being written is no version yet: a
change counts once nothing has touched it for a moment.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from data.catalog import content_hash
from data.errors import BundleError, InputError
from serving.bundle import MANIFEST, sha256

_SETTLED_NS = 2_000_000_000
"""The coarsest times that file systems keep are 2 s apart."""
_QUIET_NS = 200_000_000
"""Whoever writes in place does not pause for longer than this."""


class Version(NamedTuple):
    """Where a thing is, and a digest that differs when it does."""

    path: Path
    digest: str


Source = Callable[[], Version]
"""Says what is there now; raises what it likes where it cannot."""

_Stamp = tuple[str, int, int, int]
"""Of a file: its name, inode, size and time of change in nanoseconds."""


class _Quiet:
    """Tells what is still being written from what is done."""

    def __init__(self) -> None:
        self._stamps: tuple[_Stamp, ...] = ()
        self._since = 0

    def is_at_rest(self, stamps: tuple[_Stamp, ...]) -> bool:
        """Whether the files were last touched a moment ago or more: by their own times, or, where those come from
        another clock, by how long they have looked like this."""
        now = time.monotonic_ns()
        if stamps != self._stamps:
            self._stamps, self._since = stamps, now
        age = time.time_ns() - max((stamp[3] for stamp in stamps), default=0)
        return age > _QUIET_NS or now - self._since > _QUIET_NS


def bundle_source(folder: Path) -> Source:
    """A bundle's folder; a symbolic link is followed once, so that a version is never mixed of two folders.

    Its digest covers the manifest, and size and time of every file that the manifest names; what else lies in the
    folder, a database for instance, is not the bundle's.
    """
    quiet = _Quiet()
    known: Version | None = None

    def look() -> Version:
        nonlocal known
        path = folder.resolve()
        manifest = _manifest_digest(path)
        stamps = tuple(_stamp(path, name) for name in (MANIFEST, *_named(path)))
        version = Version(path, content_hash([manifest, *(repr(stamp) for stamp in stamps)]))
        if known is None or known == version or quiet.is_at_rest(stamps):
            known = version
        return known

    return look


def alias_source(resolve: Callable[[], Path]) -> Source:
    """A bundle by a name that moves; `resolve` gives the folder, complete, that the name stands for now.

    Its digest covers the manifest alone, so that the same bundle fetched again is the same version.
    """

    def look() -> Version:
        path = resolve().resolve()
        return Version(path, _manifest_digest(path))

    return look


def file_source(path: Path) -> Source:
    """One file, a catalog for instance, by its content.

    Read again only when its size, its time or the file itself is another, or when it changed so lately that a second
    change might not show in its time.
    """
    quiet = _Quiet()
    known: tuple[_Stamp | None, Version] | None = None

    def look() -> Version:
        nonlocal known
        try:
            stamp = _stamp(path)
            if known is not None and (known[0] == stamp or not quiet.is_at_rest((stamp,))):
                return known[1]
            version = Version(path, sha256(path))
            settled = time.time_ns() - stamp[3] > _SETTLED_NS
        except OSError as error:
            raise InputError(f"cannot be read ({error})", source=str(path)) from error
        known = (stamp if settled else None, version)
        return version

    return look


def _stamp(folder: Path, name: str = "") -> _Stamp:
    """OSError where there is no such file, but for one that a bundle names: its loading says so."""
    try:
        stat = (folder / name).stat()
    except OSError:
        if not name:
            raise
        return name, 0, 0, 0
    return name, stat.st_ino, stat.st_size, stat.st_mtime_ns


def _named(folder: Path) -> list[str]:
    """The files that a manifest names; none where it cannot be read, which its loading says."""
    try:
        files = json.loads((folder / MANIFEST).read_bytes())["files"]
        return sorted(name for name in files if isinstance(name, str))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def _manifest_digest(folder: Path) -> str:
    try:
        return sha256(folder / MANIFEST)
    except OSError as error:
        raise BundleError(f"{folder / MANIFEST}: cannot be read ({error})") from error

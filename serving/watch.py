"""Watch: notices that a bundle or a catalog has changed where it came from, and has the new one swapped in.

A source is a function that says where its thing is and what version it has; sources know files and folders, whoever
needs another (an alias in a registry) brings the function that resolves it. Nothing here waits or runs by itself: the
service polls.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from data.catalog import content_hash
from data.errors import BundleError, InputError
from serving.bundle import MANIFEST, sha256
from serving.live import Live, Swap, verify
from serving.selector import Selector

_LOG = logging.getLogger("toolcrib.watch")

_SETTLED_NS = 2_000_000_000
"""The coarsest times that file systems keep are 2 s apart."""


class Version(NamedTuple):
    """Where a thing is, and a digest that differs when it does."""

    path: Path
    digest: str


Source = Callable[[], Version]
"""Says what is there now; raises what it likes where it cannot."""

Build = Callable[[Mapping[str, Path]], Selector]
"""A selector from the paths of its sources, by their names."""


def bundle_source(folder: Path) -> Source:
    """A bundle's folder; a symbolic link is followed once, so that a version is never mixed of two folders.

    Its digest covers the manifest, and size and time of every file: a bundle that is still being copied changes again.
    """

    def look() -> Version:
        path = folder.resolve()
        stats = [
            f"{file.relative_to(path).as_posix()} {file.stat().st_size} {file.stat().st_mtime_ns}"
            for file in sorted(path.rglob("*"))
            if file.is_file()
        ]
        return Version(path, content_hash([_manifest_digest(path), *stats]))

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
    known: tuple[tuple[int, int, int], Version] | None = None

    def look() -> Version:
        nonlocal known
        try:
            stat = path.stat()
            stamp = stat.st_ino, stat.st_size, stat.st_mtime_ns
            if known is not None and known[0] == stamp:
                return known[1]
            version = Version(path, sha256(path))
            settled = time.time_ns() - stat.st_mtime_ns > _SETTLED_NS
        except OSError as error:
            raise InputError(f"cannot be read ({error})", source=str(path)) from error
        known = (stamp, version) if settled else None
        return version

    return look


class Watch:
    """A selector built from sources, and built anew when one of them changes. `live` holds the one that serves.

    Making a Watch loads and verifies the first selector, and raises what that raises.
    """

    def __init__(self, sources: Mapping[str, Source], build: Build) -> None:
        self._sources, self._build = dict(sources), build
        self._tried = self._look()
        first = build(_paths(self._tried))
        verify(first)
        self.live = Live(first)
        self._trouble = ""
        self._polling = Lock()

    def poll(self) -> Swap | None:
        """Look at the sources once, and swap if one has changed. None: nothing is new.

        A version that was refused is not tried again until a source changes. A source that cannot be read is reported
        as a refused swap, once for as long as it stays so.
        """
        with self._polling:
            try:
                found = self._look()
            except Exception as error:  # a source is anybody's code; the selector that serves needs none of it
                return self._unreadable(str(error) or type(error).__name__)
            self._trouble = ""
            if _digests(found) == _digests(self._tried):
                return None
            self._tried = found
            return self.live.swap(lambda: self._build(_paths(found)))

    def _look(self) -> dict[str, Version]:
        return {name: look() for name, look in self._sources.items()}

    def _unreadable(self, problem: str) -> Swap | None:
        if problem == self._trouble:
            return None
        self._trouble = problem
        _LOG.warning("a source cannot be read, the old one serves on: %s", problem)
        serving = self.live.current.versions
        return Swap(False, serving, serving, 0.0, problem)


def _manifest_digest(folder: Path) -> str:
    try:
        return sha256(folder / MANIFEST)
    except OSError as error:
        raise BundleError(f"{folder / MANIFEST}: cannot be read ({error})") from error


def _paths(versions: Mapping[str, Version]) -> dict[str, Path]:
    return {name: version.path for name, version in versions.items()}


def _digests(versions: Mapping[str, Version]) -> dict[str, str]:
    return {name: version.digest for name, version in versions.items()}

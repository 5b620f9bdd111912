"""Places: a path, a pattern or a URL as the files it stands for; what is at a URL goes through fsspec."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from data.atomic import replacing, replacing_folder
from data.errors import InputError

UNFINISHED = "_unfinished"
"""A file in a folder that is being written where folders cannot be renamed: until it is gone, nobody reads them."""

_SPARK_DONE, _SPARK_WRITING = "_SUCCESS", "_temporary"
_NULL = "__HIVE_DEFAULT_PARTITION__"
_PACKAGES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("abfs", "abfss", "az", "adl"), "adlfs"),
    **dict.fromkeys(("http", "https"), "aiohttp"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
}


@dataclass(frozen=True)
class Part:
    """One file of a table. `name` as an error says it; `keys` are the partition columns that its folders name."""

    name: str
    path: str
    filesystem: Any = None
    keys: dict[str, str | None] = field(default_factory=dict)


def is_url(place: Path | str) -> bool:
    """Whether a place is a URL; file:// is one too."""
    return "://" in str(place)


def filesystem_of(url: str) -> tuple[Any, str]:
    """fsspec's file system of a URL, and the path on it. None as the file system means this machine's.

    Raises InputError for a protocol that is not known, or whose package is not installed.
    """
    protocol = url.partition("://")[0]
    if protocol == "file":
        return None, url.partition("://")[2]
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415 (for who has a URL)
    except ImportError as error:
        raise InputError("URLs need fsspec, which is not installed", source=url, hint="pip install fsspec") from error
    try:
        filesystem, path = url_to_fs(url)
    except ImportError as error:
        package = _PACKAGES.get(protocol)
        hint = f"pip install {package}" if package else str(error)
        raise InputError(f"{protocol}:// needs a package that is not installed", source=url, hint=hint) from error
    except ValueError as error:
        hint = "use a path, or a protocol that fsspec knows, such as s3:// or gs://"
        raise InputError(f"no such protocol: '{protocol}'", source=url, hint=hint) from error
    return filesystem, str(path)


def parts_of(place: Path | str, suffix: str = ".parquet") -> list[Part]:
    """The files that a file, a folder (with all below it), a pattern or a URL of one of these stands for, in order.

    Below a folder only files with `suffix` count, and none whose name, or whose folder's, begins with `_` or `.`.
    Raises InputError if there is none, and for a folder that somebody has not finished writing.
    """
    text = str(place)
    filesystem, path = filesystem_of(text) if is_url(text) else (None, text)
    with _reached(text):
        tree = _Tree(filesystem)
        if tree.is_file(path):
            parts = [Part(text, path, filesystem)]
        elif tree.is_folder(path):
            parts = tree.below(path, path, suffix, text)
        elif glob.has_magic(path):
            root = _fixed(path)
            parts = [part for match in tree.matches(path) for part in tree.found(match, root, suffix, text)]
        else:
            raise InputError("no such file or folder", source=text, hint="import traces first: toolcrib traces import")
    if not parts:
        raise InputError(f"there is no {suffix} file", source=text, hint="name the traces file itself")
    return parts


@contextmanager
def replacing_file(place: Path | str) -> Iterator[tuple[str, Any]]:
    """Gives the path to write to and its file system; the file is there, or replaced, when the block ends well.

    Raises InputError if the place cannot be written.
    """
    filesystem, path = filesystem_of(str(place)) if is_url(place) else (None, str(place))
    if filesystem is None:
        with replacing(Path(path)) as fresh:
            yield str(fresh), None
        return
    # a store shows an object when it is closed, also when that is on an error's way out; a transaction does not
    with _written(str(place)), filesystem.transaction:
        yield path, filesystem


@contextmanager
def replacing_tree(place: Path | str, check: Callable[[list[str]], None]) -> Iterator[tuple[str, Any]]:
    """Gives a folder to write into and its file system; an earlier folder is replaced when the block ends well.

    `check` is given the names that the folder holds now, and raises where they are not to be replaced. On this machine
    the folder changes as a whole. Elsewhere the old files go first, and until the new ones are complete a file named
    UNFINISHED says so to whoever reads. Raises InputError if the place cannot be written.
    """
    text = str(place)
    filesystem, path = filesystem_of(text) if is_url(text) else (None, text)
    if filesystem is None:
        with replacing_folder(Path(path), check) as folder:
            yield str(folder), None
        return
    path = path.rstrip("/")
    with _written(text):
        held = filesystem.ls(path, detail=False) if filesystem.isdir(path) else []
        names = [PurePosixPath(name).name for name in held]
        check([name for name in names if name != UNFINISHED])
        filesystem.makedirs(path, exist_ok=True)
        filesystem.pipe_file(f"{path}/{UNFINISHED}", b"")
        for name in names:
            if name != UNFINISHED:
                filesystem.rm(f"{path}/{name}", recursive=True)
        yield path, filesystem
        filesystem.rm_file(f"{path}/{UNFINISHED}")


def only(known: Callable[[str], bool], place: Path | str, what: str, hint: str) -> Callable[[list[str]], None]:
    """A check for `replacing_tree`: InputError for a folder with a name in it that is not `known`; it is not `what`."""

    def check(names: list[str]) -> None:
        strangers = sorted(name for name in names if not known(name))
        if strangers:
            raise InputError(f"is not {what}: it holds {', '.join(strangers[:3])}", source=str(place), hint=hint)

    return check


class _Tree:
    """The files of this machine, or of an fsspec file system, by the same few questions."""

    def __init__(self, filesystem: Any) -> None:
        self.filesystem = filesystem

    def is_file(self, path: str) -> bool:
        return bool(self.filesystem.isfile(path)) if self.filesystem else Path(path).is_file()

    def is_folder(self, path: str) -> bool:
        return bool(self.filesystem.isdir(path)) if self.filesystem else Path(path).is_dir()

    def matches(self, pattern: str) -> list[str]:
        return sorted(self.filesystem.glob(pattern) if self.filesystem else glob.glob(pattern, recursive=True))

    def found(self, path: str, root: str, suffix: str, source: str) -> list[Part]:
        """A match of a pattern: a folder stands for what is below it, a file with another ending for nothing."""
        if self.is_folder(path):
            return self.below(path, root, suffix, source)
        return [self._part(path, root)] if path.endswith(suffix) else []

    def below(self, folder: str, root: str, suffix: str, source: str) -> list[Part]:
        if self.filesystem:
            files = sorted(self.filesystem.find(folder))
        else:
            files = sorted(str(path) for path in Path(folder).rglob("*") if path.is_file())
        inside = [PurePosixPath(path).relative_to(PurePosixPath(folder)).parts for path in files]
        names = {name for parts in inside for name in parts}
        if UNFINISHED in names or (_SPARK_WRITING in names and _SPARK_DONE not in names):
            raise InputError("was not written to its end", source=source, hint="wait for its writer, or write it again")
        whole = [
            path for path, parts in zip(files, inside, strict=True) if not any(p.startswith(("_", ".")) for p in parts)
        ]
        return [self._part(path, root) for path in whole if path.endswith(suffix)]

    def _part(self, path: str, root: str) -> Part:
        folders = PurePosixPath(path).relative_to(PurePosixPath(root)).parts[:-1]
        pairs = (folder.partition("=") for folder in folders if "=" in folder)
        keys = {unquote(name): None if value == _NULL else unquote(value) for name, _, value in pairs}
        name = self.filesystem.unstrip_protocol(path) if self.filesystem else path
        return Part(str(name), path, self.filesystem, keys)


def _fixed(pattern: str) -> str:
    """The folder of a pattern up to which nothing varies."""
    parts = PurePosixPath(pattern).parts
    fixed = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    return str(PurePosixPath(*parts[:fixed]))


@contextmanager
def _reached(source: str) -> Iterator[None]:
    with _told(source, "cannot be read", "check the path, and the credentials where it needs any"):
        yield


@contextmanager
def _written(source: str) -> Iterator[None]:
    with _told(source, "cannot be written", "check the place, and the credentials where it needs any"):
        yield


@contextmanager
def _told(source: str, what: str, hint: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{what}: {error.strerror or error}", source=source, hint=hint) from error
    except Exception as error:
        # a store's client raises classes of its own, for missing credentials for one; a fault of ours is no place's
        if type(error).__module__.partition(".")[0] in ("botocore", "gcsfs", "google", "azure", "aiohttp", "paramiko"):
            raise InputError(f"{what}: {error}", source=source, hint=hint) from error
        raise

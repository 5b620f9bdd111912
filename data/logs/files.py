"""Log files: found by path, folder or pattern, opened as plain bytes whatever compressed them."""

from __future__ import annotations

import glob
import io
import logging
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from data.errors import InputError
from data.logs.account import Account

log = logging.getLogger("toolcrib")

CHUNK = 1 << 20
CUT = "a compressed file ends too early, or is damaged"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def find(sources: Sequence[str | Path]) -> list[Path]:
    """The files that `sources` name, each once: a file is itself, a folder all below it, a pattern what it matches.

    Hidden files and folders are passed over unless they are named. A folder's files come in the order of their paths.
    Raises InputError for a source that names nothing.
    """
    found: dict[Path, None] = {}
    for source in sources:
        files = _named_by(Path(source), str(source))
        if not files:
            raise InputError("there is no log file here", source=str(source), hint="give a file, a folder or a pattern")
        found.update(dict.fromkeys(files))
    return list(found)


@contextmanager
def opened(path: Path, account: Account) -> Iterator[BinaryIO]:
    """The content of a file, decompressed where its first bytes say gzip or zstd; `peek` works.

    A compressed file that ends too early or is damaged gives what can be had of it, and is counted. Raises InputError
    for a file that cannot be opened, or whose compression is not supported here.
    """
    with ExitStack() as stack:
        try:
            raw = stack.enter_context(path.open("rb"))
            magic = raw.read(4)
            raw.seek(0)
        except OSError as error:
            raise InputError(
                f"cannot be read: {error.strerror or error}",
                source=str(path),
                hint="check the path and its permissions",
            ) from error
        new = _decoder(magic, str(path))
        if new is None:
            yield stack.enter_context(io.BufferedReader(raw, CHUNK))
            return
        inflated = _Inflated(raw, new)
        yield stack.enter_context(io.BufferedReader(inflated, CHUNK))
        if inflated.cut:
            account.notice(CUT, str(path))


def _named_by(path: Path, pattern: str) -> list[Path]:
    if path.is_dir():
        below = sorted(file for file in path.rglob("*") if file.is_file())
        return [file for file in below if not any(part.startswith(".") for part in file.relative_to(path).parts)]
    if path.exists():
        return [path]
    matched = sorted(Path(match) for match in glob.glob(pattern, recursive=True))
    return [file for match in matched for file in (_named_by(match, pattern) if match.is_dir() else [match])]


def _decoder(magic: bytes, source: str) -> Callable[[], Any] | None:
    if magic.startswith(_GZIP):
        return lambda: zlib.decompressobj(wbits=31)
    return _zstd(source) if magic == _ZSTD else None


class _Inflated(io.RawIOBase):
    """A compressed stream as a raw one. It gives all that can be had: a stream that ends too early just ends."""

    def __init__(self, raw: BinaryIO, new: Callable[[], Any]) -> None:
        self._raw, self._new = raw, new
        self._decoder = new()
        self._pending = b""
        self.cut = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        while not self._pending:
            piece = self._raw.read(CHUNK // 8)
            if not piece:
                self.cut = not self._decoder.eof
                return 0
            self._pending = self._decoded(piece)
        taken = self._pending[: len(view)]
        view[: len(taken)] = taken
        self._pending = self._pending[len(taken) :]
        return len(taken)

    def _decoded(self, piece: bytes) -> bytes:
        """What a piece decompresses to; a file may hold several streams, one after the other."""
        parts = []
        while piece:
            if self._decoder.eof:
                self._decoder = self._new()
            try:
                parts.append(self._decoder.decompress(piece))
            except Exception as error:  # zlib and zstandard have an error class each
                self._raw.seek(0, io.SEEK_END)
                self.cut = True
                log.debug("decompression ended: %s", error)
                break
            piece = self._decoder.unused_data if self._decoder.eof else b""
        return b"".join(parts)


def _zstd(source: str) -> Callable[[], Any]:
    try:
        import zstandard  # noqa: PLC0415 (plain and gzip files do without it)
    except ImportError as error:
        raise InputError(
            "a zstd file needs zstandard, which is not installed",
            source=source,
            hint="pip install zstandard, or decompress the file",
        ) from error
    return lambda: zstandard.ZstdDecompressor().decompressobj()

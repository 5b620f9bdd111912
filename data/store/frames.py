"""Frames: payloads in a file such that a torn or changed one is found, and those after it are found again.

A frame is a mark, the payload's length and its crc32 (4 bytes each, big-endian), and the payload.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from mmap import mmap
from typing import NamedTuple

_MARK = b"\xf5TC1"
_HEAD = struct.Struct(">4sII")


class Piece(NamedTuple):
    """Bytes `start` to `stop` of a file: a frame with its payload, or, with None, what is no frame."""

    start: int
    stop: int
    payload: bytes | None


def framed(payload: bytes) -> bytes:
    """The payload as a frame."""
    return _HEAD.pack(_MARK, len(payload), zlib.crc32(payload)) + payload


def pieces(content: mmap | bytes, start: int, stop: int) -> Iterator[Piece]:
    """All of `content` from `start` to `stop`, in order, without gaps."""
    bad = at = start
    while at < stop:
        frame = _frame(content, at, stop)
        if frame is None:
            found = content.find(_MARK, at + 1, stop)
            at = stop if found < 0 else found
            continue
        if bad < at:
            yield Piece(bad, at, None)
        yield frame
        bad = at = frame.stop
    if bad < stop:
        yield Piece(bad, stop, None)


def _frame(content: mmap | bytes, at: int, stop: int) -> Piece | None:
    begin = at + _HEAD.size
    if begin > stop:
        return None
    mark, length, crc = _HEAD.unpack(content[at:begin])
    if mark != _MARK or begin + length > stop:
        return None
    payload = content[begin : begin + length]
    return Piece(at, begin + length, payload) if zlib.crc32(payload) == crc else None

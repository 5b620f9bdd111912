"""JSON of any size as a stream of values: lines, arrays and documents one after the other, in bounded memory."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from data.logs.account import Account
from data.logs.files import CHUNK

MAX_VALUE_BYTES = 256 << 20
"""A single line or document beyond this is passed over: it would have to be in memory as a whole."""

MAX_DEPTH = 200
"""Levels of objects and arrays; no format of a log has a tenth of them."""

BROKEN = "broken JSON"
TRUNCATED = "the last line is cut off"
TOO_LONG = "a line or document of over 256 MB"
NOT_UTF8 = "bytes that are not UTF-8, replaced"

_SPACE = " \t\r\n\ufeff"
_GAP = re.compile(r"[ \t\r\n\ufeff,]*")
_DECODER = json.JSONDecoder(parse_constant=lambda _constant: None)


class Record(NamedTuple):
    """One JSON value and where it was read: `file, line 12` or `file, item 3`."""

    value: Any
    where: str


def records(stream: BinaryIO, source: str, account: Account, max_bytes: int = MAX_VALUE_BYTES) -> Iterator[Record]:
    """The JSON values of a stream: its lines; the elements of an array that is all of it; or its documents.

    What is no JSON is counted and passed over: a broken line alone, the rest of the stream after a broken element.
    `NaN` and `Infinity` are read as null.
    """
    head = stream.peek(CHUNK)[:CHUNK].decode("utf-8-sig", "replace").lstrip(_SPACE)  # type: ignore[attr-defined]
    if head.startswith("[") and not _is_lines(head):
        yield from _values(stream, source, account, max_bytes, in_array=True)
    elif _is_lines(head):
        yield from _lines(stream, source, account, max_bytes)
    else:
        yield from _values(stream, source, account, max_bytes, in_array=False)


def loads(text: str | bytes) -> Any:
    """A JSON value; ValueError for anything else, too deep nesting included. `NaN` and `Infinity` are null."""
    try:
        value = json.loads(text, parse_constant=lambda _constant: None)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if _is_too_deep(value):
        raise ValueError("nested too deeply")
    return value


def _is_too_deep(value: Any) -> bool:
    """Whether a value has more than MAX_DEPTH levels: what reads it goes down by recursion."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        inside = (inner for one in level for inner in (one.values() if isinstance(one, dict) else one))
        level = [inner for inner in inside if isinstance(inner, (dict, list))]
        if not level:
            return False
    return True


def _is_lines(head: str) -> bool:
    """Whether each line is a value by itself: one of the first is, before any ends inside of a value."""
    lines = [line.strip() for line in head.split("\n")]
    if len(lines) == 1 or not any(lines[1:]):  # one line, or too long to tell: an array is read by its elements
        return not head.startswith("[")
    for line in lines[:8]:
        if line.endswith(("{", "[", ",")):
            return False
        try:
            value = loads(line)
        except ValueError:
            continue
        if isinstance(value, (dict, list)) and value:
            return True
    return lines[0].startswith("{")


def _lines(stream: BinaryIO, source: str, account: Account, max_bytes: int) -> Iterator[Record]:
    number = 0
    while raw := stream.readline(max_bytes + 1):
        number += 1
        account.lines += 1
        where = f"{source}, line {number}"
        if len(raw) > max_bytes:
            account.skip(TOO_LONG, where)
            while raw and not raw.endswith(b"\n"):
                raw = stream.readline(CHUNK)
            continue
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            account.notice(NOT_UTF8, where)
            text = raw.decode("utf-8", "replace")
        text = text.strip(_SPACE)
        if not text:
            continue
        try:
            yield Record(loads(text), where)
        except ValueError:
            account.skip(BROKEN if raw.endswith(b"\n") else TRUNCATED, where)


def _values(stream: BinaryIO, source: str, account: Account, max_bytes: int, *, in_array: bool) -> Iterator[Record]:
    """Values one after the other, with or without an array around them all."""
    pieces = _decoded(stream, source, account)
    buffer, at, number = next(pieces, ""), 0, 0
    if in_array:
        at = buffer.index("[") + 1
    while True:
        at = _gap_end(buffer, at)
        where = f"{source}, item {number + 1}"
        if in_array and buffer.startswith("]", at):
            return
        if at < len(buffer):
            try:
                value, end = _DECODER.raw_decode(buffer, at)
            except (ValueError, RecursionError) as error:
                if not _may_go_on(error, buffer):
                    account.skip(f"{BROKEN}: the rest of the file was not read", where)
                    return
            else:
                # a number at the end of the buffer may go on in the next piece
                if end < len(buffer) or isinstance(value, (dict, list, str)):
                    at, number = end, number + 1
                    account.lines += 1
                    yield from _usable(value, where, account)
                    continue
        # twice as much each time, so that a long value is parsed a few times and not thousands of times
        more = "".join(_taken(pieces, max(1, len(buffer) - at)))
        if not more:
            if at < len(buffer) or in_array:
                account.skip(TRUNCATED, where)
            return
        buffer, at = buffer[at:] + more, 0
        if len(buffer) > max_bytes + 2 * CHUNK:
            account.skip(f"{TOO_LONG}: the rest of the file was not read", where)
            return


def _usable(value: Any, where: str, account: Account) -> Iterator[Record]:
    if _is_too_deep(value):
        account.skip(BROKEN, where)
    else:
        yield Record(value, where)


def _gap_end(buffer: str, at: int) -> int:
    """The end of the white space and commas from `at` on."""
    gap = _GAP.match(buffer, at)
    return gap.end() if gap else at


def _may_go_on(error: Exception, buffer: str) -> bool:
    """Whether a value is broken because the buffer ends inside of it, as far as the decoder's complaint tells."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated string") or error.pos >= len(buffer.rstrip(_SPACE)) - 12


def _taken(pieces: Iterator[str], characters: int) -> Iterator[str]:
    taken = 0
    while taken < characters and (piece := next(pieces, "")):
        taken += len(piece)
        yield piece


def _decoded(stream: BinaryIO, source: str, account: Account) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while raw := stream.read(CHUNK):
        text = decoder.decode(raw)
        if "\ufffd" in text and "\ufffd".encode() not in raw:
            account.notice(NOT_UTF8, source)
        if text:
            yield text
    if rest := decoder.decode(b"", final=True):
        yield rest

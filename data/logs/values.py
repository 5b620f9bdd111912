"""Loose values of foreign logs, read without complaint: JSON in a text, times in five spellings, numbers, names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from data.logs.json_stream import loads

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_SECONDS_BELOW, _MILLIS_BELOW, _MICROS_BELOW = 1e11, 1e14, 1e17


def mapping(value: object) -> dict[str, Any]:
    """`value` where it is an object, or a text that holds one; else an empty one."""
    value = unpacked(value)
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """`value` where it is a list, or a text that holds one; else an empty one."""
    value = unpacked(value)
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    """`value` where it is a text, else nothing."""
    return value if isinstance(value, str) else ""


def unpacked(value: object) -> Any:
    """The JSON value inside a text that looks like an object or a list; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "["}:
        try:
            return loads(value)
        except ValueError:
            return value
    return value


def number(value: object) -> float | None:
    """A finite number, also one in a text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def boolean(value: object) -> bool | None:
    """true or false, also in words and as 1 or 0."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in {"true", "yes", "1", "1.0", "pass", "passed", "success", "correct"}:
        return True
    return False if word in {"false", "no", "0", "0.0", "fail", "failed", "failure", "incorrect"} else None


def instant(value: object) -> datetime | None:
    """A moment in UTC from ISO 8601 or a count of seconds, milliseconds, microseconds or nanoseconds since 1970."""
    count = number(value)
    try:
        if count is not None:
            if count < _SECONDS_BELOW:
                return datetime.fromtimestamp(count, UTC)
            scale = 1e3 if count < _MILLIS_BELOW else 1e6 if count < _MICROS_BELOW else 1e9
            return datetime.fromtimestamp(count / scale, UTC)
        if isinstance(value, datetime):
            read = value
        elif isinstance(value, str) and value:
            read = datetime.fromisoformat(value)
        else:
            return None
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def milliseconds(start: datetime | None, end: datetime | None) -> float | None:
    """The time between two moments; None where one is missing."""
    return (end - start).total_seconds() * 1000 if start is not None and end is not None else None


def first(values: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The value of the first of `names` that is there and not null."""
    for name in names:
        value = values.get(name)
        if value is not None:
            return value
    return None


def plain_text(content: object) -> str:
    """The text of a message's content: a text, a list of text blocks, or an object with a text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part for part in map(plain_text, content) if part)
    if isinstance(content, dict):
        return plain_text(first(content, ("text", "content", "input_text")))
    return ""

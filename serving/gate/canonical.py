"""Canonical JSON: one text for equal arguments, so that an approval can be bound to the exact call.

Key order and white space do not matter; every value does. `1`, `1.0`, `true` and `"1"` are four different values, and
so are two strings that only look alike. `1.0`, `1.00` and `1e0` are one number, written in three ways.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import NamedTuple

from data.errors import InputError
from serving.json_path import json_path

MAX_DEPTH = 64
"""Levels of objects and arrays that arguments may have."""
MAX_VALUES = 100_000
"""Values that arguments may hold, all levels counted."""
_MAX_BITS = 1024  # the range of a double; beyond it parsers disagree on what was said


class Flaw(NamedTuple):
    """Why a value is no JSON that every parser reads alike, and where."""

    path: str
    message: str
    hint: str


class Size(NamedTuple):
    """How many values a value holds, itself included, and how many levels of objects and arrays."""

    values: int
    depth: int


def canonical_json(value: object) -> str:
    """The canonical text of a JSON value, in ASCII. Raises InputError, naming the path, for what is not one."""
    found = survey(value)
    if isinstance(found, Flaw):
        raise InputError(found.message, field=found.path, hint=found.hint)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def arguments_hash(arguments: object) -> str:
    """sha256 of the canonical text, hexadecimal. Raises InputError as `canonical_json` does."""
    return hashlib.sha256(canonical_json(arguments).encode("ascii")).hexdigest()


def survey(value: object) -> Size | Flaw:
    """The size of a JSON value, or the first flaw met: not JSON, not finite, not encodable, too deep or too large."""
    waiting: list[tuple[object, tuple[str | int, ...]]] = [(value, ())]
    met = deepest = 0
    while waiting:
        item, path = waiting.pop()
        met += 1
        if met + len(waiting) > MAX_VALUES:
            return Flaw("$", f"holds more than {MAX_VALUES} values", "send less at once")
        if isinstance(item, dict | list):
            deepest = max(deepest, len(path) + 1)
            if deepest > MAX_DEPTH:
                return Flaw(json_path(path), f"is nested deeper than {MAX_DEPTH} levels", "flatten it")
            if isinstance(item, list):
                waiting.extend((inner, (*path, place)) for place, inner in enumerate(item))
                continue
            for key, inner in item.items():
                if not isinstance(key, str) or not _encodable(key):
                    return Flaw(json_path(path), "has a key that is no text", "use plain Unicode text as keys")
                waiting.append((inner, (*path, key)))
        elif (said := _scalar_flaw(item)) is not None:
            return Flaw(json_path(path), *said)
    return Size(met, deepest)


def _scalar_flaw(item: object) -> tuple[str, str] | None:
    if item is None or isinstance(item, bool):
        return None
    if isinstance(item, str):
        return None if _encodable(item) else ("is text with half a surrogate pair", "send whole Unicode characters")
    if isinstance(item, int):
        return None if item.bit_length() <= _MAX_BITS else ("is a number beyond the range of a double", "send text")
    if isinstance(item, float):
        return None if math.isfinite(item) else ("is not a finite number", "leave it out, or send null")
    return "is not a JSON value", "send text, numbers, true, false, null, arrays and objects"


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True

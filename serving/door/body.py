"""A request's body, read strictly: within its bounds, plain JSON, nothing that two readers could read differently.

Refused, each with one clear error: too many bytes (413); another content type (415); bytes that are not UTF-8, a byte
order mark, broken JSON, a repeated key, NaN, infinite or endless numbers, half a surrogate pair (400); nesting that is
too deep, and whatever breaks the rules of the route (422). No value of the body is repeated in an error, only names.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from data.context import MAX_SUBGOALS
from serving.door.errors import INVALID_BODY, INVALID_JSON, TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, DoorError
from serving.json_path import json_path

LISTED_PROBLEMS = 5
MAX_DIGITS = 300
"""Longest integer: any of this length is a finite float, and none takes long to read."""

M = TypeVar("M", bound=BaseModel)

_CONTENT_TYPE = re.compile(r'application/json(?:\s*;\s*charset="?utf-8"?)?\s*', re.IGNORECASE | re.ASCII)
# A string may end with the text, so that each part of the text is looked at once, whatever it holds.
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{\]}]', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class BodyLimits(BaseModel):
    """What a request may cost before anything is decided. Sizes in bytes, levels, steps and characters."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    body_bytes: int = Field(default=1_048_576, ge=1_024, le=67_108_864)
    json_depth: int = Field(default=32, ge=4, le=100)
    """Levels of nesting; a flat object is one."""
    subgoals: int = Field(default=MAX_SUBGOALS, ge=1, le=MAX_SUBGOALS)
    """Steps in one request."""
    text_characters: int = Field(default=20_000, ge=100, le=20_000)
    """One goal, message or query."""


class _Unreadable:
    """Stands in the parsed tree for a number that cannot be used, until the tree is searched for it."""


_UNREADABLE = _Unreadable()


def read_json(raw: bytes, content_type: str | None, limits: BodyLimits) -> object:
    """The JSON value of a body. Raises DoorError for anything that is not exactly one plain JSON value."""
    if len(raw) > limits.body_bytes:
        raise DoorError(
            413, TOO_LARGE, f"the body is over {limits.body_bytes} bytes", hint="send less, or in several requests"
        )
    if content_type is None or not _CONTENT_TYPE.fullmatch(content_type.strip()):
        raise DoorError(
            415, UNSUPPORTED_MEDIA_TYPE, "the body is not declared as JSON", hint="send Content-Type: application/json"
        )
    text = _text(raw)
    _check_depth(text, limits.json_depth)
    return _parsed(text)


def validated(model: type[M], value: object) -> M:
    """`value`, as read by `read_json`, as a `model`. Raises DoorError 422: the path of the first problem, five listed.

    The model reads JSON, not Python: under `strict`, a list is fit for a tuple and a text for an enumeration.
    """
    try:
        return model.model_validate_json(json.dumps(value))
    except ValidationError as error:
        problems = [_problem(found, value) for found in error.errors(include_url=False, include_input=False)]
    listed = list(dict.fromkeys(f"{path}: {said}" for path, said in problems))
    more = len(listed) - LISTED_PROBLEMS
    message = "; ".join(listed[:LISTED_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
    raise DoorError(422, INVALID_BODY, message, path=problems[0][0], hint="the fields of each route: GET /openapi.json")


def _text(raw: bytes) -> str:
    if raw.startswith(b"\xef\xbb\xbf"):
        _refuse("the body starts with a byte order mark", "send UTF-8 without one")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse(f"the body is not UTF-8 (byte {error.start + 1})", "encode it as UTF-8, uncompressed")
    if not text.strip():
        _refuse("the body is empty", "send a JSON object")
    return text


def _check_depth(text: str, limit: int) -> None:
    """Before anything recursive reads it."""
    if text.count("[") + text.count("{") <= limit:
        return
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        character = text[match.start()]
        if character in "[{":
            depth += 1
            if depth > limit:
                raise DoorError(
                    422, INVALID_BODY, f"the body is nested more than {limit} levels deep", path="$", hint="flatten it"
                )
        elif character in "]}":
            depth -= 1


def _parsed(text: str) -> object:
    repeated: dict[int, tuple[dict[str, Any], str]] = {}  # holds each dict, so that no other gets its id
    unreadable = False

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(found)
        if len(made) < len(found):
            counts = Counter(key for key, _ in found)
            repeated[id(made)] = made, next(key for key, count in counts.items() if count > 1)
        return made

    def integer(written: str) -> object:
        return int(written) if len(written) <= MAX_DIGITS else constant(written)

    def real(written: str) -> object:
        value = float(written)
        return value if math.isfinite(value) else constant(written)

    def constant(_: str) -> object:
        nonlocal unreadable
        unreadable = True
        return _UNREADABLE

    try:
        value: object = json.loads(
            text, object_pairs_hook=pairs, parse_int=integer, parse_float=real, parse_constant=constant
        )
    except json.JSONDecodeError as error:
        _refuse(f"the body is not JSON: {error.msg} (line {error.lineno}, column {error.colno})", "send valid JSON")
    if repeated or unreadable or _SURROGATE_ESCAPE.search(text):
        _refuse_ambiguous(value, {made: key for made, (_, key) in repeated.items()})
    return value


def _refuse_ambiguous(value: object, repeated: dict[int, str]) -> None:
    """Name the first place that cannot be read one way only; the escapes of whole pairs are none."""
    for path, item in _walk(value):
        if isinstance(item, dict):
            if id(item) in repeated:
                place = json_path((*path, repeated[id(item)]))
                _refuse(f"{place}: the key is there more than once", "send each key once", place)
            if any(_LONE_SURROGATE.search(key) for key in item):
                _refuse(f"{json_path(path)}: a key holds half a surrogate pair", "send whole characters", path)
        elif isinstance(item, str) and _LONE_SURROGATE.search(item):
            _refuse(f"{json_path(path)}: the text holds half a surrogate pair", "send whole characters", path)
        elif isinstance(item, _Unreadable):
            said = f"{json_path(path)}: not a finite number of at most {MAX_DIGITS} digits"
            _refuse(said, "leave the field out, or send null where the route takes it", path)


def _walk(value: object) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Every value with its path, in the order of the text."""
    waiting: list[tuple[tuple[str | int, ...], object]] = [((), value)]
    while waiting:
        path, item = waiting.pop()
        yield path, item
        if isinstance(item, dict):
            waiting.extend(((*path, key), inner) for key, inner in reversed(item.items()))
        elif isinstance(item, list):
            waiting.extend(((*path, index), inner) for index, inner in reversed(list(enumerate(item))))


def _refuse(message: str, hint: str, place: str | tuple[str | int, ...] = "") -> NoReturn:
    path = place if isinstance(place, str) else json_path(place)
    raise DoorError(400, INVALID_JSON, message, path=path, hint=hint)


_WORDING = {"missing": "is required", "extra_forbidden": "unknown field", "model_type": "expected an object"}


def _problem(found: Any, value: object) -> tuple[str, str]:
    """Path and wording of one pydantic problem; its own path names branches of unions too, ours only what is there."""
    path: list[str | int] = []
    *above, last = found["loc"] or ("",)
    for part in (*above, last):
        inside = part in value if isinstance(value, dict) else isinstance(value, list) and isinstance(part, int)
        if inside:
            path.append(part)
            value = value[part]  # type: ignore[index]
    if found["type"] == "missing":
        path.append(last)
    said = _WORDING.get(found["type"], "")
    if not said and found["type"] == "union_tag_invalid":
        said = f"expected one of {found['ctx']['expected_tags']}"
    return json_path(path), said or found["msg"].removeprefix("Value error, ")

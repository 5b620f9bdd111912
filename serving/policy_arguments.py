"""Conditions on the arguments of a call: a path, a comparison, a value; they hold, do not hold, or cannot be decided.

| op | holds when a value at the path |
|---|---|
| `==` `!=` | is (is not) the value; `1` and `1.0` are one number, `true` is none |
| `>` `>=` `<` `<=` | compares so: numbers with numbers, text with text (by code points) |
| `in` `not_in` | is (is not) one of the values |
| `matches` | is text in which the expression (linear time, no look-around) is found; `^` and `$` bind it |
| `contains` | is an array with the value in it, or text with the value as a part |
| `exists` `absent` | is there (is not); `null` is there |

A path is `$`, then `.name`, `["any name"]`, `[0]` or `[*]`, which stands for every item: one of them is enough. Where
nothing is at the path, or a `null` is where it goes on, only `absent` holds. What cannot be compared (text with a
number; a single text where the path has `[*]`) is *undecided*, not false: a bound on an amount must not be passed by
writing the amount as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue, StringConstraints, field_validator, model_validator

Operation = Literal["==", "!=", ">", ">=", "<", "<=", "in", "not_in", "matches", "contains", "exists", "absent"]

_STEP = re.compile(r"""\.([A-Za-z_][A-Za-z0-9_-]*)|\[(\d{1,9})\]|(\[\*\])|\[("(?:[^"\\]|\\.)*")\]|\['([^']*)'\]""")
_WITHOUT_VALUE = ("exists", "absent")
_OTHER_KIND = object()  # met where the path goes on and the value is not of the kind that it goes into


class _Everything(NamedTuple):
    """`[*]`: every item of an array."""


Step = str | int | _Everything


class ArgumentCondition(BaseModel):
    """One comparison; see the table of this module."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    op: Operation
    value: JsonValue = None

    @field_validator("path")
    @classmethod
    def _readable(cls, path: str) -> str:
        parse_path(path)
        return path

    @model_validator(mode="after")
    def _meant(self) -> ArgumentCondition:
        given = "value" in self.model_fields_set
        if self.op in _WITHOUT_VALUE and given:
            raise ValueError(f"'{self.op}' takes no value; leave it out")
        if self.op not in _WITHOUT_VALUE and not given:
            raise ValueError(f"'{self.op}' needs a value")
        if self.op in ("in", "not_in") and (not isinstance(self.value, list) or not self.value):
            raise ValueError(f"'{self.op}' needs a list of at least one value")
        if self.op in (">", ">=", "<", "<=") and _kind(self.value) not in ("number", "text"):
            raise ValueError(f"'{self.op}' needs a number or text")
        if self.op == "matches":
            if not isinstance(self.value, str):
                raise ValueError("'matches' needs a regular expression as text")
            _check_pattern(self.value)
        return self

    def holds(self, arguments: object) -> bool | None:
        """Whether the condition holds on these arguments; None where that cannot be decided."""
        found = list(_values(arguments, parse_path(self.path)))
        if self.op in _WITHOUT_VALUE:
            return any(value is not _OTHER_KIND for value in found) == (self.op == "exists")
        answers = [self._compared(value) for value in found]
        return True if True in answers else None if None in answers else False

    def _compared(self, found: Any) -> bool | None:  # noqa: PLR0911 (one an operation)
        value: Any = self.value
        if found is _OTHER_KIND:
            return None
        if self.op == "==":
            return same(found, value)
        if self.op == "!=":
            return not same(found, value)
        if self.op == "in":
            return any(same(found, one) for one in value)
        if self.op == "not_in":
            return not any(same(found, one) for one in value)
        if self.op == "matches":
            return _matches(value, found) if isinstance(found, str) else None
        if self.op == "contains":
            return _contains(found, value)
        if _kind(found) != _kind(value):
            return None
        return bool(
            found > value
            if self.op == ">"
            else found >= value
            if self.op == ">="
            else found < value
            if self.op == "<"
            else found <= value
        )


def parse_path(path: str) -> tuple[Step, ...]:
    """The steps of a path. Raises ValueError that shows what a path looks like."""
    steps: list[Step] = []
    position = 1
    while path.startswith("$") and position < len(path):
        found = _STEP.match(path, position)
        if found is None:
            break
        word, index, every, quoted, single = found.groups()
        if every is not None:
            steps.append(_Everything())
        elif index is not None:
            steps.append(int(index))
        else:
            steps.append(word if word is not None else single if single is not None else json.loads(quoted))
        position = found.end()
    if not path.startswith("$") or position < len(path):
        raise ValueError("""is no path; write it like $.amount, $.items[0].id, $.to[*] or $["odd name"]""")
    return tuple(steps)


def same(one: Any, other: Any) -> bool:
    """Equality of JSON values: numbers by value, and nothing is equal to what is of another kind."""
    if _kind(one) != _kind(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    return bool(one == other)


def _values(value: Any, steps: tuple[Step, ...]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    if isinstance(step, str) and isinstance(value, dict):
        inner = [value[step]] if step in value else []
    elif not isinstance(step, str) and isinstance(value, list):
        inner = value if isinstance(step, _Everything) else value[step : step + 1]
    else:
        if value is not None:
            yield _OTHER_KIND
        return
    for item in inner:
        yield from _values(item, rest)


def _contains(found: Any, value: Any) -> bool | None:
    if isinstance(found, list):
        return any(same(item, value) for item in found)
    return value in found if isinstance(found, str) and isinstance(value, str) else None


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


def _matches(pattern: str, text: str) -> bool:
    # the engine belongs to the gate, where arguments are known; a policy without patterns does not need it
    from serving.gate.patterns import matches  # noqa: PLC0415

    return matches(pattern, text)


def _check_pattern(pattern: str) -> None:
    from serving.gate.patterns import check_pattern  # noqa: PLC0415

    check_pattern(pattern)

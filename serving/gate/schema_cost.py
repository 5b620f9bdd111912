"""What a schema can cost to evaluate: a few lines of references can ask for more work than there is time.

References that meet twice on the same part of a value double the work, once for every time they are followed; a schema
that refers to itself does so once for every level of the value. Both are counted from the schema, before it is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from serving.gate.canonical import Flaw, survey

MAX_EXPANSION = 20_000
"""Subschemas of a schema whose references are written out."""
_AFFORDABLE = 30_000_000  # evaluations, some 10 nanoseconds each
_EXPLAINABLE = 200_000  # errors kept while looking for what to tell, some microseconds each

_HERE = ("not", "if", "then", "else")
_HERE_EACH = ("allOf", "anyOf", "oneOf")
_HERE_NAMED = ("dependentSchemas", "dependencies")
_INSIDE = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_ITEMS = ("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains")
_ANY = "*"
_ITEM = "[]"
_UNCOUNTED = ("$dynamicRef", "$recursiveRef")

Place = tuple[str, ...]


@dataclass(frozen=True)
class SchemaCost:
    """`width`: subschemas that meet on one part of a value. `fanout`: references back that meet on one part, which is
    at least `period` levels further down; 0 for a schema that does not refer to itself."""

    width: int = 1
    fanout: int = 0
    period: int = 1

    def evaluations(self, values: int, depth: int) -> float:
        """An upper bound on the evaluations for an instance of so many values and levels."""
        return float(self.width) * values * float(max(1, self.fanout)) ** (depth // self.period)

    def affordable(self, values: int, depth: int) -> bool:
        """Whether such an instance can be checked."""
        return self.evaluations(values, depth) <= _AFFORDABLE

    def explainable(self, values: int, depth: int) -> bool:
        """Whether all that is wrong with such an instance can be listed, which looks at every branch."""
        return self.evaluations(values, depth) <= _EXPLAINABLE


def schema_cost(schema: dict[str, Any]) -> SchemaCost | None:
    """The bounds of a schema; None where there are none, or they cannot be told.

    That is a schema that is no plain JSON, that writes out to over `MAX_EXPANSION` subschemas, that refers to itself
    on the same part of a value, or that refers by other means than a pointer into its own document.
    """
    if isinstance(survey(schema), Flaw):
        return None
    met: Counter[Place] = Counter()
    back: Counter[Place] = Counter()
    waiting: list[tuple[Any, Place, dict[str, int]]] = [(schema, (), {"#": 0})]
    expanded = 0
    while waiting:
        node, place, opened = waiting.pop()
        expanded += 1
        met[place] += 1
        if expanded > MAX_EXPANSION:
            return None
        if not isinstance(node, dict):
            continue
        if any(key in node for key in _UNCOUNTED) or (place and "$id" in node):
            return None
        waiting.extend((inner, place + step, opened) for inner, step in _parts(node))
        if "$ref" not in node:
            continue
        target = node["$ref"]
        if not isinstance(target, str) or opened.get(target) == len(place):
            return None
        if target in opened:
            back[place[opened[target] :]] += 1
            continue
        found = _pointed_at(schema, target)
        if found is None:
            return None
        waiting.append((found, place, {**opened, target: len(place)}))
    return SchemaCost(max(met.values()), _most_meeting(back), min(map(len, back), default=1))


def _parts(node: dict[str, Any]) -> Iterator[tuple[Any, Place]]:
    """The subschemas of a schema, each with the step into the value that it takes."""
    for key, value in node.items():
        if key in _HERE:
            yield value, ()
        elif key in _HERE_EACH and isinstance(value, list):
            yield from ((inner, ()) for inner in value)
        elif key in _HERE_NAMED and isinstance(value, dict):
            yield from ((inner, ()) for inner in value.values())
        elif key == "properties" and isinstance(value, dict):
            yield from ((inner, (f".{name}",)) for name, inner in value.items())
        elif key == "patternProperties" and isinstance(value, dict):
            yield from ((inner, (_ANY,)) for inner in value.values())
        elif key in _INSIDE:
            yield value, (_ANY,)
        elif key in _ITEMS:
            yield from ((inner, (_ITEM,)) for inner in (value if isinstance(value, list) else [value]))


def _pointed_at(schema: dict[str, Any], target: str) -> Any:
    """What a reference `#/$defs/name` points at, or None."""
    if not target.startswith("#/"):
        return None
    node: Any = schema
    for part in target[2:].split("/"):
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            node = node[int(key)] if key.isdecimal() and int(key) < len(node) else None
        else:
            node = node.get(key) if isinstance(node, dict) else None
    return node


def _most_meeting(back: Counter[Place]) -> int:
    """The most references that can meet on one part of a value; `_ANY` may be any name."""
    most = 0
    for length in {len(place) for place in back}:
        group = {place: count for place, count in back.items() if len(place) == length}
        vague = any(_ANY in place for place in group)
        most = max(most, sum(group.values()) if vague else max(group.values()))
    return most

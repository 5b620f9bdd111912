"""Input schemas: what is no schema, and what leaves a model guessing at an argument."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any

from data.cards import ToolCard
from data.findings import Finding
from data.lint.texts import cut, finding

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_TYPED_BY = frozenset({"type", "$ref", "enum", "const", "anyOf", "oneOf", "allOf", "properties", "items"})
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions")
_ONE = ("items", "additionalProperties", "not")
_MAX_DEPTH = 64
_CODE_LENGTH = 2


def lint_schema(card: ToolCard) -> Iterator[Finding]:
    """What is wrong with one card's input schema."""
    schema = card.input_schema
    problem = next(_problems(schema, "input_schema", schema), None) if schema else None
    if problem is None and schema.get("type", "object") != "object":
        problem = ("input_schema.type", "arguments are an object, and this says otherwise")
    if problem is not None:
        yield finding("schema-invalid", card, *problem)
        return
    if _recursive(schema):
        yield finding("schema-cyclic", card, "input_schema", "refers to itself")
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    unknown = [name for name in required if name not in properties]
    if unknown and not {"patternProperties", "allOf", "anyOf", "oneOf", "$ref"} & set(schema):
        message = f"'{cut(unknown[0])}' is not among the properties"
        yield finding("required-unknown", card, "input_schema.required", message)
    untyped = [name for name, inner in properties.items() if isinstance(inner, dict) and _TYPED_BY.isdisjoint(inner)]
    if untyped:
        names = ", ".join(f"'{name}'" for name in untyped[:5]) + (", ..." if len(untyped) > 5 else "")
        yield finding("parameter-untyped", card, "input_schema.properties", f"of no type: {names}")
    for name, inner in properties.items():
        if isinstance(inner, dict):
            yield from _lint_parameter(card, name, inner, name in required, schema)


def _lint_parameter(
    card: ToolCard, name: str, inner: dict[str, Any], required: bool, root: dict[str, Any]
) -> Iterator[Finding]:
    field = f"input_schema.properties.{name}"
    followed = _followed(inner, root)
    described = any(str(one.get("description") or one.get("title") or "").strip() for one in (inner, followed))
    if required and not str(inner.get("description") or followed.get("description") or "").strip():
        yield finding("parameter-undocumented", card, field, f"required parameter '{name}' has no description")
    values = followed.get("enum")
    if isinstance(values, list) and not described and len(values) > 1 and all(_is_code(value) for value in values):
        shown = ", ".join(str(value) for value in values[:6])
        yield finding("enum-without-meaning", card, field, f"nothing says what {shown} stand for")


def _is_code(value: Any) -> bool:
    """A number, or one or two letters: a key to something, not a word for it."""
    return not isinstance(value, bool) and (isinstance(value, int | float) or len(str(value)) <= _CODE_LENGTH)


def _problems(value: Any, field: str, root: dict[str, Any], depth: int = 0) -> Iterator[tuple[str, str]]:
    """(field, what is wrong) of everything in a schema that no validator could read."""
    if isinstance(value, bool):
        return
    if not isinstance(value, dict):
        yield field, "expected a schema"
        return
    if depth > _MAX_DEPTH:
        yield field, "is nested too deeply"
        return
    yield from _own_problems(value, field, root)
    for place, inner in _inner_schemas(value, field):
        yield from _problems(inner, place, root, depth + 1)


def _own_problems(value: dict[str, Any], field: str, root: dict[str, Any]) -> Iterator[tuple[str, str]]:
    kinds = value.get("type")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind is not None and (not isinstance(kind, str) or kind not in _TYPES):
            yield f"{field}.type", f"'{cut(str(kind))}' is no type"
    if "enum" in value and not (isinstance(value["enum"], list) and value["enum"]):
        yield f"{field}.enum", "expected a list of values"
    needed = value.get("required", [])
    if not (isinstance(needed, list) and all(isinstance(name, str) for name in needed)):
        yield f"{field}.required", "expected a list of names"
    if "$ref" in value and not _leads_somewhere(value["$ref"], root):
        yield f"{field}.$ref", f"'{cut(str(value['$ref']))}' leads nowhere"
    for key in _NAMED:
        if not isinstance(value.get(key, {}), dict):
            yield f"{field}.{key}", "expected schemas by name"
    for key in _LISTS:
        if not isinstance(value.get(key, []), list):
            yield f"{field}.{key}", "expected a list of schemas"


def _inner_schemas(value: dict[str, Any], field: str) -> Iterator[tuple[str, Any]]:
    for key in _NAMED:
        if isinstance(value.get(key), dict):
            yield from ((f"{field}.{key}.{name}", inner) for name, inner in value[key].items())
    for key in _LISTS:
        if isinstance(value.get(key), list):
            yield from ((f"{field}.{key}.{number}", inner) for number, inner in enumerate(value[key]))
    for key in _ONE:
        if key in value and not (key == "items" and isinstance(value[key], list)):
            yield f"{field}.{key}", value[key]


def _leads_somewhere(pointer: Any, root: dict[str, Any]) -> bool:
    """Whether a chain of references ends at a schema; one into another document is taken at its word."""
    seen: set[str] = set()
    while isinstance(pointer, str) and pointer not in seen:
        seen.add(pointer)
        if not pointer.startswith("#"):
            return bool(pointer)
        target = _target(pointer, root)
        if not isinstance(target, dict) or "$ref" not in target:
            return target is not None
        pointer = target["$ref"]
    return False


def _target(pointer: str, root: dict[str, Any]) -> Any:
    value: Any = root
    for part in pointer.removeprefix("#").strip("/").split("/"):
        if part:
            key = part.replace("~1", "/").replace("~0", "~")
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _followed(inner: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    pointer = inner.get("$ref")
    target = _target(pointer, root) if isinstance(pointer, str) and pointer.startswith("#") else inner
    return target if isinstance(target, dict) else inner


def _recursive(root: dict[str, Any]) -> bool:
    """Whether some definition contains itself."""
    links: dict[str, set[str]] = {}
    waiting = list(_references(root)) if "$ref" in str(root) else []
    while waiting:
        pointer = waiting.pop()
        if pointer not in links:
            target = _target(pointer, root) if pointer.startswith("#") else None
            links[pointer] = set(_references(target))
            waiting += links[pointer]
    try:
        TopologicalSorter(links).prepare()
    except CycleError:
        return True
    return False


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)

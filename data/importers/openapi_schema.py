"""Schemas of an OpenAPI document as JSON Schema that stands alone, its references and its own words resolved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from data.plain import Place

_ONE = frozenset({"items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"})
_SEVERAL = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "dependentSchemas"})
# words of OpenAPI that say nothing about which values are accepted
_DROPPED = frozenset({"xml", "discriminator", "externalDocs", "example", "readOnly", "writeOnly", "nullable"})


class References:
    """The references of one document, as one tool's schema uses them.

    A schema that is referred to is kept once under `$defs` and not copied into each place: schemas may refer to
    themselves, and a few that refer to each other twice would copy themselves into millions.
    """

    def __init__(self, document: Mapping[str, Any], place: Place) -> None:
        self.document, self.place = document, place
        self.names: dict[str, str] = {}

    def followed(self, value: Any) -> Any:
        """What a chain of references ends at; anything else is itself. InputError for one that leads nowhere."""
        seen: set[str] = set()
        while isinstance(value, dict) and "$ref" in value:
            pointer = value["$ref"]
            if pointer in seen:
                raise self.place.error(f"the reference '{pointer}' leads back to itself", "$ref")
            seen.add(pointer)
            value = self._target(pointer)
        return value

    def schema(self, raw: Any) -> dict[str, Any] | bool:
        """`raw` as JSON Schema whose references point into `definitions()`. Raises InputError as `followed`."""
        if isinstance(raw, bool):
            return raw
        if not isinstance(raw, dict):
            raise self.place.error("expected a schema", "schema", "a schema is an object")
        if "$ref" in raw:
            beside = {key: value for key, value in raw.items() if key in {"description", "title", "default"}}
            return {"$ref": f"#/$defs/{self._named(raw['$ref'])}", **beside}
        found: dict[str, Any] = {}
        for key, value in raw.items():
            if key in _DROPPED or key.startswith("x-"):
                continue
            if key in _NAMED and isinstance(value, dict):
                found[key] = {name: self.schema(inner) for name, inner in value.items()}
            elif key in _ONE and isinstance(value, dict):
                found[key] = self.schema(value)
            elif key in _SEVERAL and isinstance(value, list):
                found[key] = [self.schema(inner) for inner in value]
            else:
                found[key] = value
        return _translated(found, raw.get("nullable") is True)

    def definitions(self) -> dict[str, Any]:
        """Every schema that those asked for so far refer to, and those that these refer to, by its name."""
        found: dict[str, Any] = {}
        while len(found) < len(self.names):
            for pointer, name in list(self.names.items()):
                if name not in found:
                    found[name] = self.schema(self._target(pointer))
        return found

    def object_parts(self, raw: Any) -> tuple[dict[str, Any], list[str]] | None:
        """(properties, required) of a schema of plain objects, its `allOf` taken together; None for any other.

        What the server alone sets (`readOnly`) is left out.
        """
        properties: dict[str, Any] = {}
        required: list[str] = []
        return (properties, required) if self._collect(raw, properties, required, set()) and properties else None

    def _collect(self, raw: Any, properties: dict[str, Any], required: list[str], seen: set[int]) -> bool:
        whole = self.followed(raw)
        if not isinstance(whole, dict) or {"oneOf", "anyOf"} & set(whole):
            return False
        if id(whole) in seen:  # a base that two parts share, or that the schema is of itself
            return True
        seen.add(id(whole))
        own, needed = whole.get("properties", {}), whole.get("required", [])
        if not isinstance(own, dict) or not isinstance(needed, list):
            return False
        for name, inner in own.items():
            if not (isinstance(inner, dict) and inner.get("readOnly") is True):
                properties[name] = self.schema(inner)
        required += [name for name in needed if isinstance(name, str)]
        parts = whole.get("allOf", [])
        return isinstance(parts, list) and all(self._collect(part, properties, required, seen) for part in parts)

    def _named(self, pointer: Any) -> str:
        if pointer not in self.names:
            self._target(pointer)
            own = "".join(c if c.isalnum() or c in "-_." else "_" for c in pointer.rpartition("/")[2]) or "schema"
            taken = set(self.names.values())
            number = 2
            name = own
            while name in taken:
                name, number = f"{own}_{number}", number + 1
            self.names[pointer] = name
        return self.names[pointer]

    def _target(self, pointer: Any) -> Any:
        if not isinstance(pointer, str) or not pointer.startswith("#/"):
            hint = "only references within the document are read; bundle it into one file first"
            raise self.place.error(f"refers to '{str(pointer)[:120]}'", "$ref", hint)
        value: Any = self.document
        for part in pointer[2:].split("/"):
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            inside = value.get(key) if isinstance(value, dict) else None
            if inside is None:
                raise self.place.error(f"refers to '{pointer[:120]}', which is not in the document", "$ref")
            value = inside
        return value


def _translated(schema: dict[str, Any], nullable: bool) -> dict[str, Any]:
    """OpenAPI 3.0's `nullable` and its exclusive bounds of true and false, in the words of JSON Schema."""
    for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(bound), bool) and schema.pop(bound) and limit in schema:
            schema[bound] = schema.pop(limit)
    if not nullable:
        return schema
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    return schema if not schema else {"anyOf": [schema, {"type": "null"}]}

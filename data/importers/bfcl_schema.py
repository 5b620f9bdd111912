"""BFCL's parameter types (Python's, Java's and JavaScript's own words) as JSON-schema types."""

from __future__ import annotations

from typing import Any

JSON_TYPES = {
    **dict.fromkeys(("dict", "HashMap", "Hashtable", "object", "Object"), "object"),
    **dict.fromkeys(("float", "double", "Float", "Double", "number"), "number"),
    **dict.fromkeys(("integer", "int", "long", "short", "byte", "Integer", "Long", "Bigint"), "integer"),
    **dict.fromkeys(("tuple", "list", "array", "Array", "ArrayList", "Queue", "Stack", "Set", "set"), "array"),
    **dict.fromkeys(("string", "String", "char"), "string"),
    **dict.fromkeys(("boolean", "Boolean", "bool"), "boolean"),
    "null": "null",
}


def to_json_schema(schema: Any) -> Any:
    """The schema with JSON types. `any` and words of no known type lose their `type`: anything is accepted there.

    Only schemas are walked: a parameter that is *named* "type", a default and an enum stay as they are.
    """
    if not isinstance(schema, dict):
        return schema
    converted: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            if value in JSON_TYPES:
                converted[key] = JSON_TYPES[value]
        elif key == "properties" and isinstance(value, dict):
            converted[key] = {name: to_json_schema(inner) for name, inner in value.items()}
        elif key in {"items", "additionalProperties"}:
            converted[key] = to_json_schema(value)
        elif key in {"anyOf", "oneOf", "allOf"} and isinstance(value, list):
            converted[key] = [to_json_schema(inner) for inner in value]
        else:
            converted[key] = value
    return converted

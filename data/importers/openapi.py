"""OpenAPI 3: each operation of a document as a tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from data.cards import Risk, ToolCard
from data.catalog import Catalog
from data.importers.document import Definitions, Gathering, gather, read_document, title_and_description
from data.importers.openapi_schema import References
from data.importers.report import ImportReport
from data.importers.terms import Terms
from data.plain import Place, validated
from data.risk import verb_risk
from data.strict_yaml import read_yaml
from data.words import split_identifier

_RISK_OF = {
    **dict.fromkeys(("get", "head"), Risk.READ_ONLY),
    **dict.fromkeys(("post", "put", "patch", "options", "trace"), Risk.WRITE),
    "delete": Risk.DESTRUCTIVE,
}
_READ_KEYS = frozenset({"operationId", "summary", "description", "parameters", "requestBody"})
# sent by whoever holds the connection, not chosen by a model
_PROTOCOL_HEADERS = frozenset({"accept", "content-type", "authorization"})
_JSON_BODY = re.compile(r"application/([\w.+-]+\+)?json\b", re.I)


def read_openapi(path: Path, terms: Terms) -> tuple[Catalog, ImportReport]:
    """The operations of an OpenAPI 3.x document in JSON or YAML.

    A tool's id is `<server>.<operationId>`, or `<server>.<method>_<path>` where an operation has no id; the server is
    the terms', or the file's name without its ending. GET and HEAD are read_only, DELETE is destructive, all else
    writes: the method is what will be sent, so it is no mere claim; a verb in the name can raise it, never lower it.
    The parameters and the body's properties become one input schema; `$ref` within the document is resolved.

    Raises InputError, with its place, for a document of another kind and for a `$ref` that leads out of it or nowhere.
    """
    document = read_yaml(path)[0] if path.suffix.lower() in {".yaml", ".yml"} else read_document(path)
    place = Place(str(path))
    if not isinstance(document, dict) or not str(document.get("openapi", "")).startswith("3"):
        raise place.error("expected an OpenAPI 3 document", "openapi", "its first key says 'openapi: 3.x'")
    server = terms.server if terms.server is not None else path.stem
    about = title_and_description(document.get("info"))

    def to_card(found: Mapping[str, Any], place: Place, seen: Gathering) -> ToolCard:
        operation, method = found["operation"], found["method"]
        seen.pass_over(operation, _READ_KEYS)
        name = operation.get("operationId") or f"{method}_{'_'.join(split_identifier(found['path']))}".rstrip("_")
        if not isinstance(name, str):
            raise place.error("expected a text", "operationId")
        summary = operation.get("summary") or found["shared"].get("summary") or ""
        said = operation.get("description") or found["shared"].get("description") or ""
        if operation.get("deprecated"):
            seen.notes.append(f"'{name}' is deprecated")
        fields = {
            "tool_id": terms.tool_id(server, name),
            "name": name,
            "domain": server,
            "server_description": about,
            "summary": summary if said else "",
            "description": said or summary,
            "input_schema": _input_schema(document, found, place),
            "risk": max(_RISK_OF[method], verb_risk(name) or Risk.READ_ONLY).word,
            **terms.rules,
        }
        return validated(ToolCard, fields, place)

    return gather(_operations(document, place), to_card, str(path), "openapi", Gathering(), terms)


def _operations(document: Mapping[str, Any], place: Place) -> Definitions:
    paths = document.get("paths")
    if not isinstance(paths, dict):
        raise place.error("is missing" if paths is None else "expected an object", "paths")
    found: Definitions = []
    for path, item in paths.items():
        here = place._replace(prefix=f"paths.{path}")
        shared = References(document, here).followed(item)
        if not isinstance(shared, dict):
            raise here.error("expected an object of operations")
        for method in _RISK_OF:
            if method in shared:
                at = here._replace(prefix=f"{here.prefix}.{method}")
                operation = shared[method]
                whole = {"path": path, "method": method, "shared": shared, "operation": operation}
                found.append((whole if isinstance(operation, dict) else operation, at))
    return found


def _input_schema(document: Mapping[str, Any], found: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """One object schema of what a caller gives, wherever in the request it goes."""
    references = References(document, place)
    properties: dict[str, Any] = {}
    required: list[str] = []

    def add(name: str, schema: Any, needed: bool, where: str) -> None:
        own = name if name not in properties else f"{where}_{name}"
        if own in properties:
            raise place.error(f"'{name}' is given twice in {where}", "parameters")
        properties[own] = schema
        if needed:
            required.append(own)

    for parameter in _parameters(found, references, place):
        name, where = parameter["name"], parameter.get("in", "query")
        if where == "header" and name.lower() in _PROTOCOL_HEADERS:
            continue
        schema = _described(references.schema(_schema_of(parameter)), parameter.get("description"))
        add(name, schema, bool(parameter.get("required")) or where == "path", where)
    _add_body(found["operation"].get("requestBody"), references, place, add)
    whole: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        whole["required"] = required
    definitions = references.definitions()
    return {**whole, "$defs": definitions} if definitions else whole


def _parameters(found: Mapping[str, Any], references: References, place: Place) -> list[dict[str, Any]]:
    """The operation's parameters; one of the same name and place replaces that of the whole path."""
    merged: dict[tuple[str, str], dict[str, Any]] = {}
    for listed in (found["shared"].get("parameters"), found["operation"].get("parameters")):
        if not isinstance(listed, list | None):
            raise place.error("expected a list", "parameters")
        for number, entry in enumerate(listed or ()):
            parameter = references.followed(entry)
            if not isinstance(parameter, dict) or not isinstance(parameter.get("name"), str):
                raise place.error("expected a parameter with a name", f"parameters.{number}")
            merged[parameter["name"], str(parameter.get("in", "query"))] = parameter
    return list(merged.values())


def _schema_of(holder: Mapping[str, Any]) -> Any:
    """The schema of a parameter: its own, or that of its first content type."""
    if "schema" in holder or not isinstance(holder.get("content"), dict):
        return holder.get("schema", {})
    first: Any = next(iter(holder["content"].values()), {})
    return first.get("schema", {}) if isinstance(first, dict) else {}


def _add_body(entry: Any, references: References, place: Place, add: Callable[[str, Any, bool, str], None]) -> None:
    """The properties of an object body, one by one; any other body as the one parameter `body`."""
    body = references.followed(entry)
    if body is None:
        return
    content = body.get("content") if isinstance(body, dict) else None
    if not isinstance(content, dict):
        raise place.error("expected an object with 'content'", "requestBody")
    kinds = sorted(content, key=lambda kind: not _JSON_BODY.match(kind))  # stable: JSON first, else as written
    media = content[kinds[0]] if kinds else {}
    raw = media.get("schema", {}) if isinstance(media, dict) else {}
    needed = body.get("required") is True
    parts = references.object_parts(raw)
    if parts is not None:
        properties, listed = parts
        for name, schema in properties.items():
            add(name, schema, needed and name in listed, "body")
        return
    whole = _described(references.schema(raw), body.get("description"))
    add("body", whole, needed, "request")


def _described(schema: dict[str, Any] | bool, description: Any) -> dict[str, Any]:
    """The schema with a description of its holder, which speaks of this use of it, before its own."""
    whole = {} if isinstance(schema, bool) else schema
    return {**whole, "description": description} if description else whole

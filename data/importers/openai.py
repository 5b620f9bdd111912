"""OpenAI: function tools of the chat and the responses API as a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data.cards import Risk, ToolCard, Trust
from data.catalog import Catalog
from data.importers.document import Gathering, definitions, gather, read_document, text_of
from data.importers.report import ImportReport
from data.importers.terms import Terms
from data.plain import Place, validated
from data.risk import infer_risk

_READ_KEYS = frozenset({"type", "name", "description", "parameters"})


def read_openai(path: Path, terms: Terms) -> tuple[Catalog, ImportReport]:
    """The functions of `[...]` or `{"tools": [...]}`, nested under "function" or flat; hosted tools are skipped.

    A tool's id is `<server>.<name>`, or the name alone without a server, as the logs of the API call it. There are
    no hints: a trusted source's risk is read from the name, a third party's is destructive.

    Raises InputError with the field for whatever is not such a list.
    """
    document = read_document(path)
    place = Place(str(path))
    if isinstance(document, dict) and "tools" in document:
        document, place = document["tools"], Place(str(path), prefix="tools")

    def to_card(definition: Mapping[str, Any], place: Place, seen: Gathering) -> ToolCard | None:
        kind = definition.get("type", "function")
        if kind != "function":
            seen.skipped[f"type {kind} is run by the provider, not a function"] += 1
            return None
        if "function" in definition:
            seen.pass_over(definition, frozenset({"type", "function"}))
            definition, place = definition["function"], place._replace(prefix=f"{place.prefix}.function")
            if not isinstance(definition, dict):
                raise place.error("expected an object")
        seen.pass_over(definition, _READ_KEYS)
        return function_card(definition, "parameters", place, terms)

    return gather(definitions(document, place), to_card, str(path), "openai", Gathering(), terms)


def function_card(definition: Mapping[str, Any], schema_key: str, place: Place, terms: Terms) -> ToolCard:
    """The card of a definition without hints: name, description and the schema under `schema_key`."""
    name = text_of(definition, "name", place)
    description = definition.get("description") or ""
    risk = infer_risk(name, str(description)) if terms.trust is Trust.TRUSTED else Risk.DESTRUCTIVE
    fields = {
        "tool_id": terms.tool_id(terms.server or "", name),
        "name": name,
        "domain": terms.server or "",
        "description": description,
        "input_schema": definition.get(schema_key) or {},
        "risk": risk.word,
        **terms.rules,
    }
    return validated(ToolCard, fields, place)

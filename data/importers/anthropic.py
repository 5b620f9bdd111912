"""Anthropic: client tools of the messages API as a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data.cards import ToolCard
from data.catalog import Catalog
from data.importers.document import Gathering, definitions, gather, read_document
from data.importers.openai import function_card
from data.importers.report import ImportReport
from data.importers.terms import Terms
from data.plain import Place

_READ_KEYS = frozenset({"type", "name", "description", "input_schema"})


def read_anthropic(path: Path, terms: Terms) -> tuple[Catalog, ImportReport]:
    """The tools of `[...]` or `{"tools": [...]}` with an `input_schema`; the provider's own tools are skipped.

    Ids and risks are made as for OpenAI's functions. Raises InputError with the field for whatever is not such a list.
    """
    document = read_document(path)
    place = Place(str(path))
    if isinstance(document, dict) and "tools" in document:
        document, place = document["tools"], Place(str(path), prefix="tools")

    def to_card(definition: Mapping[str, Any], place: Place, seen: Gathering) -> ToolCard | None:
        kind = definition.get("type") or "custom"
        if kind != "custom":
            seen.skipped[f"type {kind} is defined by the provider"] += 1
            return None
        if "input_schema" not in definition:
            raise place.error("is missing", "input_schema", "is this file in the anthropic form?")
        seen.pass_over(definition, _READ_KEYS)
        return function_card(definition, "input_schema", place, terms)

    return gather(definitions(document, place), to_card, str(path), "anthropic", Gathering(), terms)

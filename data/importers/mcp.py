"""MCP: answers to `tools/list` as a catalog, their hints believed only where the server is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from data.cards import Risk, ToolCard, Trust
from data.catalog import Catalog
from data.importers.document import (
    Definitions,
    Gathering,
    definitions,
    gather,
    read_document,
    text_of,
    title_and_description,
)
from data.importers.report import ImportReport
from data.importers.terms import Terms
from data.plain import Place, validated
from data.risk import infer_risk
from data.words import split_identifier

_READ_KEYS = frozenset({"name", "title", "description", "inputSchema", "annotations"})
HINTS = ("readOnlyHint", "destructiveHint")


def read_mcp(path: Path, terms: Terms) -> tuple[Catalog, ImportReport]:
    """The tools of a saved answer: `{"tools": [...]}`, the JSON-RPC envelope around it, or a list of such pages.

    A tool's id is `<server>.<name>`; the server is the terms', or the file's name without its ending. Of a third
    party every tool counts as destructive, the protocol's reading of a tool without hints. Of a trusted server
    readOnlyHint means read_only, and destructiveHint false means write.

    A page may hold the server's `serverInfo` besides, as its answer to `initialize` has it: title and description are
    searched with each of its tools. Its `instructions` are for a model to follow, and are left where they are.

    Raises InputError with the field for whatever is not such an answer.
    """
    server = terms.server if terms.server is not None else path.stem
    return mcp_catalog(read_document(path), str(path), server, terms)


def mcp_catalog(document: Any, source: str, server: str, terms: Terms) -> tuple[Catalog, ImportReport]:
    """As `read_mcp`, of an answer that is at hand."""
    seen = Gathering()
    about = _about(document)

    def to_card(definition: Mapping[str, Any], place: Place, seen: Gathering) -> ToolCard:
        name = text_of(definition, "name", place)
        annotations = definition.get("annotations") or {}
        if not isinstance(annotations, dict):
            raise place.error("expected an object", "annotations")
        claimed = claimed_risk(annotations, place)
        if claimed is Risk.READ_ONLY and infer_risk(name) is Risk.DESTRUCTIVE:
            seen.notes.append(f"'{name}' says that it only reads, and its name says that it destroys")
        seen.pass_over(definition, _READ_KEYS)
        title = definition.get("title") or annotations.get("title") or ""
        fields = {
            "tool_id": terms.tool_id(server, name),
            "name": name,
            "domain": server,
            "server_description": about,
            "summary": "" if _same_words(title, name) else title,
            "description": definition.get("description") or "",
            "input_schema": definition.get("inputSchema") or {},
            "risk": (claimed if terms.trust is Trust.TRUSTED else Risk.DESTRUCTIVE).word,
            **terms.rules,
        }
        return validated(ToolCard, fields, place)

    return gather(_pages(document, source, seen), to_card, source, "mcp", seen, terms)


def listed_page(tools: Iterable[Any], client: Any) -> dict[str, Any]:
    """A page of tools as the protocol's client gives them, with what the server said of itself when it was met."""
    page: dict[str, Any] = {
        "tools": [tool.model_dump(mode="json", by_alias=True, exclude_unset=True) for tool in tools]
    }
    if client.server_info is not None:
        page["serverInfo"] = client.server_info.model_dump(mode="json", by_alias=True, exclude_none=True)
    return page


def _about(document: Any) -> str:
    """What the server says of itself: its title and its description; "" for nothing."""
    for page in document if isinstance(document, list) else [document]:
        answer = page.get("result", page) if isinstance(page, dict) else None
        if not isinstance(answer, dict):
            continue
        if said := title_and_description(answer.get("serverInfo")):
            return said
    return ""


def _pages(document: Any, source: str, seen: Gathering) -> Definitions:
    pages = document if isinstance(document, list) else [document]
    found: Definitions = []
    more = False
    for number, page in enumerate(pages):
        place = Place(source, prefix=str(number) if isinstance(document, list) else "")
        answer = page
        if isinstance(page, dict) and "error" in page:
            raise place.error("the server answered with an error, not with its tools", "error", "ask it again")
        if isinstance(page, dict) and isinstance(page.get("result"), dict):
            answer = page["result"]
        if not isinstance(answer, dict) or "tools" not in answer:
            raise place.error("is missing", "tools", "expected the answer of tools/list")
        here = place._replace(prefix=f"{place.prefix}.tools".lstrip("."))
        found += definitions(answer["tools"], here)
        more = bool(answer.get("nextCursor"))
    if more:
        seen.notes.append("the last page names a next one, which is not in the file: the server has more tools")
    return found


def claimed_risk(annotations: Mapping[str, Any], place: Place, field: str = "annotations") -> Risk:
    """The risk that a tool's hints claim, by the protocol's reading. Raises InputError for a hint that is none."""
    for hint in HINTS:
        if annotations.get(hint) is not None and not isinstance(annotations[hint], bool):
            raise place.error("expected true or false", f"{field}.{hint}")
    destroys = annotations.get("destructiveHint")
    if annotations.get("readOnlyHint"):
        # the protocol gives destructiveHint no meaning here; a server that says both is taken at its worse word
        return Risk.DESTRUCTIVE if destroys else Risk.READ_ONLY
    return Risk.WRITE if destroys is False else Risk.DESTRUCTIVE


def _same_words(title: object, name: str) -> bool:
    return isinstance(title, str) and split_identifier(title) == split_identifier(name)

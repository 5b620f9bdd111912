"""Importers: other people's catalogs as ours, with an account of what was taken and what was not."""

from __future__ import annotations

from pathlib import Path

from data.cards import Trust
from data.catalog import Catalog
from data.errors import InputError
from data.importers.anthropic import read_anthropic
from data.importers.bfcl import Bfcl, load_bfcl
from data.importers.document import check_size
from data.importers.langchain import cards_of_langchain, read_langchain
from data.importers.live import Server, read_live
from data.importers.mcp import read_mcp
from data.importers.openai import read_openai
from data.importers.openapi import read_openapi
from data.importers.report import ImportReport
from data.importers.terms import Terms
from data.jsonl import read_cards
from data.plain import Place

CATALOG_FORMATS = ("jsonl", "mcp", "openai", "anthropic", "bfcl", "openapi", "langchain")

__all__ = [
    "CATALOG_FORMATS",
    "Bfcl",
    "ImportReport",
    "Server",
    "cards_of_langchain",
    "import_catalog",
    "load_bfcl",
]


def import_catalog(
    src: Path | str | Server | None,
    format: str,
    *,
    domain: str | None = None,
    trust: Trust | None = None,
    tenant: str = "",
    skip_bad: bool = False,
) -> tuple[Catalog, ImportReport]:
    """The tools of `src` in one of CATALOG_FORMATS. `src` None is the installed BFCL, for that format only; a live
    Server is for mcp only; langchain's is `module:attribute`, whose code runs.

    `domain` (the server's or application's name), `trust`, `tenant` and `skip_bad` (leave out and count what is no
    tool) are for mcp, openai, anthropic, openapi and langchain, whose tools say none of it; the default trust is
    third_party, whose hints never lower a risk. Tools of a tenant are seen by that tenant only, and have `<tenant>/`
    before their ids. Raises InputError for an unknown format, an option that the format has no use for, and, unless
    `skip_bad`, for anything in the source that is not a tool; never half a catalog.
    """
    if format not in CATALOG_FORMATS:
        raise _unknown(format, CATALOG_FORMATS, "catalog")
    if format in {"jsonl", "bfcl"} and (domain is not None or trust is not None):
        raise InputError(f"format {format} takes no domain and no trust", hint="its tools say their own")
    if format in {"jsonl", "bfcl"} and (tenant or skip_bad):
        raise InputError(f"format {format} takes no tenant and skips nothing", hint="its tools say their own")
    terms = Terms(domain, tenant, trust or Trust.THIRD_PARTY, skip_bad)
    if isinstance(src, Server):
        if format != "mcp":
            raise InputError(f"format {format} is read from a file", hint="a live server speaks mcp")
        return read_live(src, terms)
    if format == "bfcl":
        source = load_bfcl(None if src is None else Path(src))
        merged = source.functions - len(source.catalog)
        return source.catalog, source.report.model_copy(
            update={
                "read": source.functions,
                "imported": len(source.catalog),
                "skipped": {"the same function, offered again": merged},
            }
        )
    if format == "langchain":
        return read_langchain(str(src or ""), terms)
    path = _needed(src, format)
    if format == "jsonl":
        parsed = read_cards(path)
        for card in parsed.items:
            check_size(card, Place(f"{path}, tool '{card.tool_id[:120]}'"))
        count = len(parsed.items)
        report = ImportReport(source=str(path), format=format, read=count, imported=count, ignored=parsed.ignored)
        return Catalog(parsed.items), report
    read = {"mcp": read_mcp, "openai": read_openai, "anthropic": read_anthropic, "openapi": read_openapi}[format]
    return read(path, terms)


def _unknown(format: str, known: tuple[str, ...], what: str) -> InputError:
    return InputError(f"'{format}' is not a {what} format", hint=f"one of {', '.join(known)}")


def _needed(src: Path | str | None, format: str) -> Path:
    if src is None:
        raise InputError(f"format {format} needs a file to read")
    return Path(src)

"""LangChain: the tools of a Python program as a catalog.

LangChain itself is imported when its tools are asked for, and not before.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.cards import Risk, ToolCard, Trust
from data.catalog import Catalog
from data.errors import InputError
from data.importers.document import Gathering, definitions, gather, text_of
from data.importers.mcp import HINTS, claimed_risk
from data.importers.report import ImportReport
from data.importers.terms import Terms
from data.plain import Place, validated
from data.risk import infer_risk

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

_TOOL = "tool"


def read_langchain(reference: str, terms: Terms) -> tuple[Catalog, ImportReport]:
    """The tools at `module:attribute`: a tool, a list of tools, or a function, plain or async, that returns one.

    The module is imported, so its code runs; the working directory counts as a place of modules. A tool's id is
    `<server>.<name>`; the server is the terms', or the last part of the module's name. Hints in a tool's metadata, as
    LangChain's MCP adapters leave them there, are read as those of MCP; without any, a trusted source's risk is read
    from the name and a third party's is destructive. Tags become capabilities. Arguments that the program fills in
    itself are in no schema.

    Raises InputError where LangChain is not installed, and for whatever is not such a reference.
    """
    _base_tool()
    module, _, attribute = reference.partition(":")
    if not module or not attribute:
        hint = "for example shop.tools:TOOLS, where a list of tools or a function that returns one stands"
        raise InputError("expected MODULE:ATTRIBUTE", source=reference, hint=hint)
    found = _loaded(module, attribute, reference)
    return _gathered(found, reference, terms.server or module.rpartition(".")[2], terms)


def cards_of_langchain(
    tools: Iterable[BaseTool], *, domain: str = "langchain", tenant: str = "", trust: Trust = Trust.THIRD_PARTY
) -> tuple[ToolCard, ...]:
    """The cards of tools that are at hand, in their order; see `read_langchain` for what becomes of them.

    Raises InputError for what is no tool, for a name given twice, and for no tool at all.
    """
    terms = Terms(domain, tenant, trust)
    return _gathered(list(tools), "LangChain tools", domain, terms)[0].cards


def _gathered(found: Any, source: str, server: str, terms: Terms) -> tuple[Catalog, ImportReport]:
    base_tool = _base_tool()
    listed = [found] if isinstance(found, base_tool) else list(found) if isinstance(found, list | tuple) else found
    if not isinstance(listed, list):
        problem = f"expected a list of LangChain tools, found {type(found).__name__}"
        raise InputError(problem, source=source, hint="point at a list, or at a function that returns one")

    def to_card(definition: Mapping[str, Any], place: Place, seen: Gathering) -> ToolCard:
        tool = definition[_TOOL]
        if not isinstance(tool, base_tool):
            hint = "make a function one with langchain_core.tools.tool"
            raise place.error(f"expected a LangChain tool, found {type(tool).__name__}", hint=hint)
        return _card(tool, server, place, seen, terms)

    wrapped = definitions([{_TOOL: tool} for tool in listed], Place(source))
    return gather(wrapped, to_card, source, "langchain", Gathering(), terms)


def _card(tool: BaseTool, server: str, place: Place, seen: Gathering, terms: Terms) -> ToolCard:
    metadata = tool.metadata or {}
    seen.ignored.update(f"metadata.{key}" for key in metadata if key not in HINTS)
    if tool.return_direct:
        seen.ignored["return_direct"] += 1
    offered = _offered(tool, place)
    name, description = text_of(offered, "name", place), offered.get("description") or ""
    if any(metadata.get(hint) is not None for hint in HINTS):
        risk = claimed_risk(metadata, place, "metadata")
    else:
        risk = infer_risk(name, description)
    fields = {
        "tool_id": terms.tool_id(server, name),
        "name": name,
        "domain": server,
        "description": description,
        "capabilities": tool.tags or [],
        "input_schema": offered.get("parameters") or {},
        "risk": (risk if terms.trust is Trust.TRUSTED else Risk.DESTRUCTIVE).word,
        **terms.rules,
    }
    return validated(ToolCard, fields, place)


def _offered(tool: BaseTool, place: Place) -> dict[str, Any]:
    """The tool as LangChain offers it to a model: name, description and the parameters' JSON schema."""
    from langchain_core.utils.function_calling import convert_to_openai_tool  # noqa: PLC0415

    try:
        made: dict[str, Any] = convert_to_openai_tool(tool)["function"]
    except Exception as error:  # a tool's schema is its author's code
        problem = f"'{tool.name}' has no JSON schema: {_first_line(error)}"
        raise place.error(problem, "args_schema", "give it arguments that JSON can hold") from error
    return made


def _loaded(module: str, attribute: str, reference: str) -> Any:
    """What the reference leads to, called where it is a function. InputError for anything that goes wrong there."""
    with _working_directory_first():
        try:
            value: Any = importlib.import_module(module)
        except Exception as error:  # a module is its author's code
            problem = f"'{module}' cannot be imported: {_first_line(error)}"
            raise InputError(problem, source=reference, hint="is it installed, or in the working directory?") from error
        for part in attribute.split("."):
            if not hasattr(value, part):
                raise InputError(f"'{module}' has no '{attribute}'", source=reference, hint="check its spelling")
            value = getattr(value, part)
        if not callable(value) or isinstance(value, _base_tool()):
            return value
        try:
            made = value()
            return asyncio.run(_awaited(made)) if inspect.isawaitable(made) else made
        except Exception as error:  # so is a function
            raise InputError(
                f"'{attribute}' failed when it was called: {_first_line(error)}", source=reference
            ) from error


async def _awaited(value: Any) -> Any:
    return await value


@contextmanager
def _working_directory_first() -> Iterator[None]:
    """A command that is installed does not look for modules where it is run."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)


def _base_tool() -> type[BaseTool]:
    try:
        from langchain_core.tools import BaseTool  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise InputError(
            "LangChain's tools need langchain-core, which is not installed", hint="pip install 'toolcrib[langchain]'"
        ) from error
    return BaseTool


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]

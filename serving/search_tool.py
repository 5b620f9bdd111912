"""The search tool: the way out of a menu that lacks what is needed, as a core tool whose handler is a selection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from data.cards import Risk, ToolCard, Trust
from data.catalog import Catalog
from data.context import MAX_GOAL_CHARACTERS, Subgoal
from data.errors import InputError

SEARCH_TOOLS_ID = "toolcrib.search_tools"

SEARCH_TOOLS = ToolCard(
    tool_id=SEARCH_TOOLS_ID,
    name="search_tools",
    domain="toolcrib",
    summary="Look for other tools when none of those at hand does the next step.",
    description="Returns the tools that fit the step. Search once a step, in words that say what it should achieve.",
    risk=Risk.READ_ONLY,
    trust=Trust.TRUSTED,
    core=True,
    cost_usd=0.0,
    p50_ms=0.0,
    input_schema={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_GOAL_CHARACTERS,
                "description": "what the next step should achieve, in one sentence",
            },
            "mutation": {
                "type": "boolean",
                "description": "true if the step changes something, false if it only reads; leave out if unsure",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
)
"""The card. It costs nothing and needs nothing, so that no rule but a workflow's own list takes it off a menu."""


def with_search_tool(catalog: Catalog) -> Catalog:
    """The catalog with the search tool as its last card; itself, if it has it already.

    Raises InputError if another card has its id.
    """
    if SEARCH_TOOLS_ID not in catalog:
        return Catalog([*catalog, SEARCH_TOOLS], catalog)
    if catalog[SEARCH_TOOLS_ID] != SEARCH_TOOLS:
        raise InputError(
            f"tool id '{SEARCH_TOOLS_ID}' is taken by another card",
            field="tool_id",
            hint="the id belongs to the built-in search tool; rename the card",
        )
    return catalog


def search_subgoal(arguments: Mapping[str, Any], *, reads_only: bool = False) -> Subgoal:
    """The subgoal that a call of the search tool asks tools for.

    `reads_only`: the request is known to change nothing, and what a model writes does not alter that. Raises InputError
    that names the argument which does not fit the card's schema.
    """
    unknown = sorted(set(arguments) - set(SEARCH_TOOLS.parameter_names))
    if unknown:
        raise _wrong(unknown[0], "is no argument of the search tool", "give query and, if known, mutation")
    query, mutation = arguments.get("query"), arguments.get("mutation")
    if not isinstance(query, str) or not query.strip():
        raise _wrong("query", "is missing or no text", "say in a sentence what the next step should achieve")
    if len(query) > MAX_GOAL_CHARACTERS:
        raise _wrong("query", "is too long", "give one step, not a transcript")
    if "mutation" in arguments and not isinstance(mutation, bool):
        raise _wrong("mutation", "is neither true nor false", "leave it out if it is not known")
    return Subgoal(goal=query, mutation=False if reads_only else mutation)


def _wrong(field: str, problem: str, hint: str) -> InputError:
    return InputError(problem, source=SEARCH_TOOLS_ID, field=field, hint=hint)

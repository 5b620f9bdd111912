"""Doors: tools that search for other tools, call them, or keep a plan; none is what a step was for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from data.logs.events import Call
from data.logs.names import Mapped, Wrapper
from data.logs.values import first, items, mapping, text, unpacked

KNOWN_SEARCHES = frozenset(
    {
        *("search_tools", "search_tool", "tool_search", "find_tools", "find_tool", "retrieve_tools", "ToolSearch"),
        *("tool_search_tool_bm25", "tool_search_tool_regex", "search_available_tools", "discover_tools"),
    }
)
KNOWN_WRAPPERS = {
    name: Wrapper()
    for name in ("call_tool", "invoke_tool", "execute_tool", "run_tool", "use_mcp_tool", "execute-tool", "call-tool")
}
"""Names that are read like this unless the catalog has a tool of the name."""

KNOWN_PLANS = frozenset({"TodoWrite", "update_plan", "write_todos", "todo_write", "write_plan"})

_QUERY_KEYS = ("query", "goal", "subgoal", "task", "q", "search", "pattern", "description", "text")
_NAME_KEYS = ("tool_name", "tool", "name", "tool_id", "id")
_SERVER_KEYS = ("server_name", "server", "server_id", "mcp_server", "namespace", "domain")
_ARGUMENT_KEYS = ("arguments", "args", "params", "parameters", "tool_arguments", "tool_input", "input")


def searched(call: Call, mapped: Mapped) -> str | None:
    """The words of a search for tools; None where the call is none."""
    if call.name not in mapped.searches and call.name not in KNOWN_SEARCHES:
        return None
    arguments, key = mapping(call.arguments), mapped.searches.get(call.name, "")
    if key:
        return text(arguments.get(key))
    return text(first(arguments, _QUERY_KEYS))


def planned(call: Call) -> str | None:
    """The open step of a plan that a call writes down, or nothing; None where the call writes none."""
    if call.name not in KNOWN_PLANS:
        return None
    steps = [mapping(step) for step in items(first(mapping(call.arguments), ("todos", "plan", "steps", "items")))]
    opened = next((step for step in steps if step.get("status") in {"in_progress", "active"}), {})
    return text(first(opened, ("content", "step", "text", "title", "activeForm")))


def found(payload: Any) -> Iterator[tuple[str, str]]:
    """(name, server) of the tools that the answer of a search names, in its order."""
    payload = unpacked(payload)
    if isinstance(payload, list):
        for one in payload:
            if isinstance(one, str):
                yield one, ""
            else:
                yield from found(one)
    elif isinstance(payload, Mapping):
        if payload.get("type") == "text":
            yield from found(payload.get("text"))
            return
        name = text(first(payload, _NAME_KEYS))
        if name:
            yield name, text(first(payload, _SERVER_KEYS))
        for key in ("tools", "results", "matches", "content", "structuredContent", "items", "data"):
            if isinstance(payload.get(key), (list, dict)):
                yield from found(payload[key])


def unwrapped(call: Call, mapped: Mapped) -> Call | None:
    """The call that a wrapper makes; None where the call is no wrapper, or does not say what it calls."""
    wrapper = mapped.wrappers.get(call.name) or KNOWN_WRAPPERS.get(call.name)
    if wrapper is None:
        return None
    given, guess = mapping(call.arguments), call.name not in mapped.wrappers
    name = text(first(given, _NAME_KEYS) if guess else given.get(wrapper.name))
    if not name:
        return None
    server = text(first(given, _SERVER_KEYS) if guess else given.get(wrapper.server))
    inner = first(given, _ARGUMENT_KEYS) if guess else given.get(wrapper.arguments)
    return Call(
        name, unpacked(inner), server, call.call_id, call.answered, call.payload, call.flag, call.error,
        call.ts, call.latency_ms, call.cost_usd,
    )  # fmt: skip


def is_door(name: str, mapped: Mapped) -> bool:
    """Whether a name is a door and no tool of its own."""
    return any(
        name in known for known in (mapped.searches, mapped.wrappers, KNOWN_SEARCHES, KNOWN_WRAPPERS, KNOWN_PLANS)
    )

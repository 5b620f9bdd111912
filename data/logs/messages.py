"""Messages: the turns of a conversation, whichever provider's words it was logged in.

One reader for OpenAI's chat messages and response items, Anthropic's content blocks, OpenTelemetry's and Gemini's
parts, and LangChain's message objects. A message says by its own shape which it is, and logs mix them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from data.logs.events import Call, Result, Role, Turn
from data.logs.values import first, instant, items, mapping, plain_text, text, unpacked

_ROLES: dict[str, Role] = {
    **dict.fromkeys(("system", "developer", "SystemMessage"), "system"),
    **dict.fromkeys(("user", "human", "HumanMessage"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "AIMessage", "AIMessageChunk"), "assistant"),
    **dict.fromkeys(("tool", "function", "ToolMessage"), "tool"),
}
_ITEM_CALLS = frozenset({"function_call", "custom_tool_call", "mcp_call", "mcp_approval_request"})
_ITEM_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_TEXT_BLOCKS = frozenset({"text", "input_text", "output_text", "refusal"})


def turns(messages: object) -> list[Turn]:
    """The turns of a list of messages or items; neighbours of the assistant are one turn. The rest is passed over."""
    if isinstance(messages, Mapping):
        inner = first(messages, ("messages", "input", "items"))
        messages = inner if isinstance(inner, (list, str)) else [messages]
    messages = unpacked(messages)
    if isinstance(messages, str):
        return [Turn("user", messages)] if messages.strip() else []
    if not isinstance(messages, list):
        return []
    if len(messages) == 1 and isinstance(messages[0], list):  # LangChain batches: a list of conversations
        messages = messages[0]
    return list(_joined(turn for message in messages if (turn := turn_of(message)) is not None))


def turn_of(message: object) -> Turn | None:
    """One message as a turn; None for what is no message."""
    if isinstance(message, list) and len(message) == 2 and all(isinstance(part, str) for part in message):
        message = {"role": message[0], "content": message[1]}
    if not isinstance(message, dict):
        return None
    if isinstance(message.get("kwargs"), dict) and isinstance(message.get("id"), list):  # LangChain, serialised
        message = {"type": message["id"][-1], **message["kwargs"]}
    kind = text(message.get("type"))
    if "role" not in message and (item := _item(message, kind)) is not None:
        return item
    role = _ROLES.get(text(message.get("role"))) or _ROLES.get(kind)
    if role is None:
        return None
    blocks = _Blocks(message)
    data = mapping(message.get("additional_kwargs"))
    for call in items(message.get("tool_calls")) or items(data.get("tool_calls")):
        blocks.add_call(call)
    if isinstance(message.get("function_call"), dict):
        blocks.add_call({"function": message["function_call"]})
    if role == "tool" and not blocks.results:
        status = text(message.get("status"))
        blocks.results.append(
            Result(
                text(first(message, ("tool_call_id", "call_id", "id"))),
                unpacked(message.get("content")),
                False if status == "error" or message.get("is_error") is True else None,
                name=text(message.get("name")),
            )
        )
    return blocks.turn(role)


def tool_names(tools: object) -> tuple[str, ...] | None:
    """The names of offered tools, of any provider, in order; None where there is no list.

    Tools that are loaded only when a search finds them (`defer_loading`) are not offered.
    """
    if isinstance(tools, dict) and isinstance(tools.get("tools"), list):
        tools = tools["tools"]
    tools = unpacked(tools)
    if not isinstance(tools, list):
        return None
    return tuple(dict.fromkeys(name for tool in tools for name in _names_of(unpacked(tool))))


def _names_of(tool: object) -> Iterator[str]:
    if isinstance(tool, str):
        yield tool
    if not isinstance(tool, dict) or tool.get("defer_loading") is True:
        return
    inner = tool.get("function")
    if isinstance(tool.get("function_declarations"), list):
        for declared in tool["function_declarations"]:
            yield from _names_of(declared)
    elif text(tool.get("type")) == "mcp":
        yield from (name for name in items(tool.get("allowed_tools")) if isinstance(name, str))
    elif isinstance(inner, dict):
        yield from _names_of(inner)
    elif not text(tool.get("type")).startswith("tool_search") and text(tool.get("name")):
        yield tool["name"]


class _Blocks:
    """What the content of one message holds, gathered block by block."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.texts: list[str] = []
        self.calls: list[Call] = []
        self.results: list[Result] = []
        self.searched = ""
        self.found: list[str] | None = None
        self.ts = instant(first(message, ("timestamp", "created_at", "ts")))
        content = unpacked(first(message, ("parts", "content")))
        if isinstance(content, str):
            self.texts.append(content)
        elif isinstance(content, list):
            for block in content:
                self._add(block)

    def turn(self, role: Role) -> Turn:
        found = None if self.found is None else tuple(dict.fromkeys(self.found))
        said = "\n".join(part for part in self.texts if part.strip())
        return Turn(role, said, tuple(self.calls), tuple(self.results), self.searched, found, self.ts)

    def add_call(self, call: object) -> None:
        """A call in OpenAI's form (under `function`), LangChain's (`args`), or with its parts at the top."""
        if not isinstance(call, dict):
            return
        inner = call.get("function") or call.get("custom") or call
        if isinstance(inner, dict) and text(inner.get("name")):
            arguments = unpacked(first(inner, ("arguments", "args", "input", "parameters")))
            name, server = text(inner.get("name")), text(first(call, ("server_name", "server_label")))
            self.calls.append(Call(name, arguments, server, text(first(call, ("id", "call_id"))), ts=self.ts))

    def _add(self, block: object) -> None:
        if isinstance(block, str):
            self.texts.append(block)
        if not isinstance(block, dict):
            return
        kind = text(block.get("type"))
        if kind in _TEXT_BLOCKS or (not kind and "text" in block and not block.get("thought")):
            self.texts.append(plain_text(first(block, ("text", "content", "refusal"))))
        elif kind in {"tool_use", "mcp_tool_use", "tool_call"}:
            self.add_call(block)
        elif kind == "server_tool_use":
            if text(block.get("name")).startswith("tool_search_tool"):
                query = mapping(block.get("input"))
                self.searched = text(first(query, ("query", "pattern")))
        elif kind == "tool_search_tool_result":
            self._note_found(mapping(block.get("content")).get("tool_references"))
        elif kind in {"tool_result", "mcp_tool_result"}:
            self._add_result(block)
        elif kind == "tool_call_response":
            payload = unpacked(first(block, ("response", "result", "content")))
            self.results.append(Result(text(block.get("id")), payload))
        elif isinstance(block.get("functionCall") or block.get("function_call"), dict):
            self.add_call(block.get("functionCall") or block.get("function_call"))
        elif isinstance(answer := block.get("functionResponse") or block.get("function_response"), dict):
            name = text(answer.get("name"))
            self.results.append(Result(text(answer.get("id")), answer.get("response"), name=name))

    def _add_result(self, block: dict[str, Any]) -> None:
        content = block.get("content")
        references = [part for part in items(content) if mapping(part).get("type") == "tool_reference"]
        if references:  # a search for tools that the caller runs itself
            self._note_found(references)
        error = block.get("is_error")
        flag = None if error is None else not error
        self.results.append(Result(text(block.get("tool_use_id")), unpacked(content), flag))

    def _note_found(self, references: object) -> None:
        names = [text(mapping(reference).get("tool_name")) for reference in items(references)]
        self.found = [*(self.found or []), *(name for name in names if name)]


def _item(item: dict[str, Any], kind: str) -> Turn | None:
    """An item of OpenAI's responses that is no message."""
    if kind in _ITEM_CALLS:
        server = text(item.get("server_label"))
        arguments = unpacked(first(item, ("arguments", "input")))
        call = Call(text(item.get("name")), arguments, server, text(first(item, ("call_id", "id"))))
        if kind == "mcp_call" and (item.get("output") is not None or item.get("error") is not None):
            failed = item.get("error") is not None
            error = plain_text(item["error"]) or text(mapping(item.get("error")).get("message")) if failed else ""
            call = call.with_result(Result(call.call_id, unpacked(item.get("output")), not failed, error))
        # an approval that is asked for is no call: the call comes as an item of its own, or never does
        return Turn("assistant", calls=() if kind == "mcp_approval_request" else (call,))
    if kind in _ITEM_RESULTS:
        flag = False if item.get("status") in {"failed", "incomplete"} else None
        return Turn("tool", results=(Result(text(item.get("call_id")), unpacked(item.get("output")), flag),))
    if kind == "tool_search_call":
        query = mapping(item.get("arguments"))
        return Turn("assistant", searched=text(first(query, ("query", "goal"))) or plain_text(item.get("query")))
    if kind == "tool_search_output":
        return Turn("assistant", found=tool_names([{**tool, "defer_loading": False} for tool in _dicts(item)]))
    return None


def _dicts(item: dict[str, Any]) -> Iterable[dict[str, Any]]:
    return (tool for tool in items(item.get("tools")) if isinstance(tool, dict))


def _joined(found: Iterable[Turn]) -> Iterator[Turn]:
    """Neighbouring turns of the assistant as one: response items come one by one."""
    open_turn: Turn | None = None
    for turn in found:
        if turn.role != "assistant":
            if open_turn is not None:
                yield open_turn
                open_turn = None
            yield turn
        elif open_turn is None:
            open_turn = turn
        else:
            open_turn = Turn(
                "assistant",
                "\n".join(part for part in (open_turn.text, turn.text) if part),
                (*open_turn.calls, *turn.calls),
                (*open_turn.results, *turn.results),
                turn.searched or open_turn.searched,
                _union(open_turn.found, turn.found),
                open_turn.ts or turn.ts,
            )
    if open_turn is not None:
        yield open_turn


def _union(before: tuple[str, ...] | None, after: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if before is None or after is None:
        return before if after is None else after
    return tuple(dict.fromkeys((*before, *after)))

"""Inputs and outputs of traced functions: the messages, arguments and requests inside, whoever recorded them."""

from __future__ import annotations

from typing import Any

from data.logs.events import Turn
from data.logs.messages import turns
from data.logs.values import first, mapping, unpacked

_REQUEST_KEYS = ("request", "question", "query", "task", "prompt", "input", "text", "message", "goal", "user_input")
_ENVELOPE = frozenset({"args", "kwargs", "inputs", "tool_input", "tags", "metadata", "config"})


def asked_of(inputs: Any) -> tuple[Turn, ...]:
    """The turns that were sent to a model."""
    return tuple(turns(unpacked(inputs)))


def answer_of(outputs: Any) -> tuple[Turn, ...]:
    """The turns that a model gave back, out of a provider's response or LangChain's generations."""
    value: Any = unpacked(outputs)
    if isinstance(value, dict):
        for key in ("choices", "generations", "output", "message", "messages"):
            inner = value.get(key)
            if isinstance(inner, list) and inner:
                while isinstance(inner[0], list) and inner[0]:
                    inner = inner[0]
                message = first(mapping(inner[0]), ("message",))
                value = [message] if isinstance(message, dict) else inner
                break
            if isinstance(inner, dict):
                value = [inner]
                break
    return tuple(
        Turn("assistant", turn.text, turn.calls, searched=turn.searched, found=turn.found, ts=turn.ts)
        for turn in turns(value)
        if turn.role in {"assistant", "user"}
    )


def arguments_of(inputs: Any) -> Any:
    """The arguments of a call, out of the envelopes of instrumented functions."""
    value = unpacked(inputs)
    if isinstance(value, dict):
        if isinstance(value.get("args"), dict) and "name" in value:  # a tool call as such
            return value["args"]
        for key in ("kwargs", "inputs", "tool_input", "input"):
            inner = unpacked(value.get(key))
            if isinstance(inner, dict) and value.keys() <= _ENVELOPE | {key}:
                return inner
    return value


def request_of(inputs: Any) -> str:
    """What an agent was asked: its last user message, a text, or an object with one under a usual name."""
    value = unpacked(inputs)
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        users = [turn.text for turn in turns(value) if turn.role == "user" and turn.text.strip()]
        return users[-1] if users else ""
    value = arguments_of(value)
    if isinstance(value, dict) and "messages" not in value:
        found = first(value, _REQUEST_KEYS)
        if isinstance(found, str):
            return found
        texts = [one for one in value.values() if isinstance(one, str)]
        return texts[0] if len(texts) == 1 else request_of(found) if isinstance(found, (list, dict)) else ""
    users = [turn.text for turn in turns(value) if turn.role == "user" and turn.text.strip()]
    return users[-1] if users else ""

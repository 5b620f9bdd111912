"""Chat logs of the OpenAI and Anthropic APIs as decisions: requests with their responses, or transcripts.

An agent sends its whole conversation again with every request, so one conversation is logged many times, each time a
little longer. Records are brought together by conversation, those that another one goes on from are dropped, and what
they offered to the model is kept with the step that it was offered at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from data.logs.account import Account
from data.logs.conversation import About
from data.logs.events import Decision, Turn
from data.logs.exchanges import Exchange, chain, exchange_decisions
from data.logs.grouping import grouped
from data.logs.json_stream import Record
from data.logs.messages import tool_names, turns
from data.logs.values import boolean, first, instant, mapping, text

NO_CHAT = "a record that is no chat"

_REQUEST_KEYS = ("request", "body", "params", "kwargs", "input", "inputs")
_RESPONSE_KEYS = ("response", "completion", "output", "outputs", "result")
_CONVERSATION_KEYS = (
    *("conversation_id", "conversation", "session_id", "sessionId", "thread_id", "trace_id", "traceId", "chat_id"),
)
_VERDICT_KEYS = ("task_success", "success", "verdict", "resolved")
_TENANT_KEYS = ("tenant", "tenant_id", "tenantId", "organization_id", "org_id")
_REMEMBERED_RESPONSES = 500_000
_OPENING = 5  # so many messages hold the first that is not the system's
_NAMELESS = ("begins:", "file:", "at:")


def chat_decisions(records: Iterable[Record], account: Account) -> Iterator[Decision]:
    """The decisions of chat records, each conversation's together."""
    for key, group in grouped(_keyed(records, account), account):
        yield from _of_group(key, group, account)


def _keyed(records: Iterable[Record], account: Account) -> Iterator[tuple[str, dict[str, Any]]]:
    chains: dict[str, str] = {}
    for value, where in records:
        line = _opened(value)
        if line is None:
            account.skip(NO_CHAT, where)
            continue
        account.records += 1
        line["where"] = where
        source = where.rpartition(", ")[0]
        previous, own = line.pop("previous"), line.pop("response_id")
        key = line.pop("key")
        if not key and previous:
            key = chains.get(previous, previous)
        if not key:
            key = f"file:{source}" if line["bare"] else own if line["chained"] else _opening(line)
        if own and len(chains) < _REMEMBERED_RESPONSES:
            chains[own] = key
        yield key, line


def _opened(value: Any) -> dict[str, Any] | None:
    """What matters of one record: its messages, the answer to them, the tools, and what ties it to others."""
    if isinstance(value, list) and any(isinstance(one, dict) for one in value):
        value = {"messages": value}
    if not isinstance(value, dict):
        return None
    payload = value.get("payload")
    if value.get("type") == "response_item" and isinstance(payload, dict):  # a session log, one item a line
        return _bare(payload, value)
    if isinstance(value.get("message"), dict) and "role" in value["message"]:
        return _bare({**value["message"], "timestamp": value.get("timestamp")}, value)
    is_message = "role" in value and "model" not in value
    if "messages" not in value and (is_message or text(value.get("type")).endswith(("_call", "_call_output"))):
        return _bare(value, value)
    request = next((mapping(value[k]) for k in _REQUEST_KEYS if _is_request(value.get(k))), value)
    response = next((mapping(value[k]) for k in _RESPONSE_KEYS if mapping(value.get(k))), value)
    response = mapping(response.get("body")) or response
    asked = first(request, ("messages", "input"))
    answer = _answer(response)
    if not isinstance(asked, (list, str)) and not answer:
        return None
    meta = {**mapping(value.get("metadata")), **mapping(request.get("metadata"))}
    known = {
        **meta,
        **{key: value[key] for key in (*_CONVERSATION_KEYS, *_VERDICT_KEYS, *_TENANT_KEYS) if key in value},
    }
    responses_api = "input" in request or response.get("object") == "response"
    conversation = first(known, _CONVERSATION_KEYS) or first(request, ("conversation",))
    return {
        "messages": asked if isinstance(asked, (list, str)) else [],
        "answer": answer,
        "tools": first(request, ("tools", "functions")),
        "key": _identity(conversation),
        "previous": text(first(request, ("previous_response_id",)) or response.get("previous_response_id")),
        "response_id": text(response.get("id")),
        "chained": responses_api and not isinstance(asked, list),
        "bare": False,
        "ts": first(value, ("timestamp", "created_at", "ts", "time")) or first(response, ("created_at", "created")),
        "tenant": text(first(known, _TENANT_KEYS)),
        "agent": text(first(known, ("agent", "agent_name"))),
        "task_success": boolean(first(known, _VERDICT_KEYS)),
    }


def _bare(message: dict[str, Any], line: dict[str, Any]) -> dict[str, Any] | None:
    """A line that is one message of a conversation; a sub-agent's have a conversation of their own."""
    key = _identity(first(line, _CONVERSATION_KEYS))
    agent = text(first(line, ("agentId", "agent_id", "agent"))) or ("sub-agent" if line.get("isSidechain") else "")
    return {
        "messages": [message],
        "answer": [],
        "tools": line.get("tools"),
        "key": f"{key}/{agent}" if key and agent else key,
        "previous": "",
        "response_id": "",
        "chained": False,
        "bare": True,
        "ts": line.get("timestamp"),
        "tenant": text(first(line, _TENANT_KEYS)),
        "agent": agent,
        "task_success": boolean(first(line, _VERDICT_KEYS)),
    }


def _identity(conversation: object) -> str:
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    return str(conversation) if isinstance(conversation, (str, int)) else ""


def _is_request(value: object) -> bool:
    return isinstance(value, dict) and bool(value.keys() & {"messages", "input", "tools"})


def _answer(response: dict[str, Any]) -> list[Any]:
    """The messages or items of a response, of any of the APIs."""
    choices = response.get("choices")
    if isinstance(choices, list) and choices:
        message = mapping(choices[0]).get("message")
        return [message] if isinstance(message, dict) else []
    if isinstance(response.get("output"), list):
        return list(response["output"])
    if response.get("role") == "assistant" and isinstance(response.get("content"), (list, str)):
        return [response]
    return []


def _opening(line: dict[str, Any]) -> str:
    """A key for a conversation that has none: how it begins."""
    said = line["messages"] if isinstance(line["messages"], str) else line["messages"][:_OPENING]
    opening = [turn for turn in turns(said) if turn.role != "system"][:1]
    return f"begins:{chain(opening)[-1]}" if opening else f"at:{line['where']}"


def _of_group(key: str, group: list[dict[str, Any]], account: Account) -> Iterator[Decision]:
    verdicts = [line["task_success"] for line in group if line["task_success"] is not None]
    exchanges = [
        Exchange(
            asked,
            answered,
            tool_names(line["tools"]),
            About(
                "" if key.startswith(_NAMELESS) else key,
                line["tenant"],
                line["agent"],
                instant(line["ts"]),
                verdicts[-1] if verdicts else None,
                line["where"],
            ),
        )
        for line, asked, answered in _told(group)
    ]
    yield from exchange_decisions(exchanges, account)


def _told(group: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], list[Turn], list[Turn]]]:
    """Each record, what was sent and what came back. Lines of one message each are one record, and so is a chain."""
    if all(line["bare"] for line in group):
        tools = next((line["tools"] for line in group if line["tools"]), None)
        yield {**group[-1], "tools": tools}, turns([message for line in group for message in line["messages"]]), []
        return
    so_far: list[Any] = []
    for line in group:
        asked = line["messages"]
        asked = [{"role": "user", "content": asked}] if isinstance(asked, str) else list(asked)
        if line["chained"] or (so_far and not any(mapping(message).get("role") == "user" for message in asked)):
            asked = [*so_far, *asked]
        yield line, turns(asked), turns(line["answer"])
        so_far = [*asked, *line["answer"]]

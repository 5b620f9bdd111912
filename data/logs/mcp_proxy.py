"""MCP proxy logs: the JSON-RPC messages that passed, requests paired with their responses.

A log has a message a line, as it is or inside a line of the proxy's own (`message`, `payload`, `data`, ...), with a
session and a server where the proxy knows them. MCP carries no words of what a call was for; a proxy that is told them
puts them into `_meta` (`goal`, `request`), and otherwise the last search for tools, or the call's own words, stand in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from data.logs.account import Account
from data.logs.conversation import UNANSWERED, UNCALLED
from data.logs.events import Call, Decision, Result
from data.logs.grouping import grouped
from data.logs.json_stream import Record
from data.logs.messages import tool_names
from data.logs.values import boolean, first, instant, mapping, milliseconds, plain_text, text, unpacked

NO_MESSAGE = "a record that is no JSON-RPC message"

_INNER_KEYS = ("message", "payload", "data", "msg", "frame", "body", "jsonrpc_message", "rpc")
_SESSION_KEYS = ("session_id", "sessionId", "session", "mcp_session_id", "mcp-session-id", "trace_id", "connection_id")
_SERVER_KEYS = ("server", "server_name", "serverName", "upstream", "target")
_TIME_KEYS = ("timestamp", "ts", "time", "@timestamp", "created_at")
_TENANT_KEYS = ("tenant", "tenant_id")
_GOAL_KEYS = ("goal", "subgoal", "intent", "toolcrib/goal", "reason")
_REQUEST_KEYS = ("request", "task", "user_request", "toolcrib/request")


def mcp_decisions(records: Iterable[Record], account: Account) -> Iterator[Decision]:
    """The steps of every session: one for each `tools/call`, with the tools of the last `tools/list` before it."""
    for key, group in grouped(_messages(records, account), account):
        yield from _session(key, group, account)


def _messages(records: Iterable[Record], account: Account) -> Iterator[tuple[str, dict[str, Any]]]:
    for value, where in records:
        line = mapping(value)
        found = (
            line
            if "jsonrpc" in line
            else next((m for k in _INNER_KEYS if "jsonrpc" in (m := mapping(line.get(k)))), {})
        )
        pair = [mapping(line.get(key)) for key in ("request", "response")]
        messages = [found] if found else [message for message in pair if "jsonrpc" in message]
        if not messages:
            account.skip(NO_MESSAGE, where)
            continue
        meta = {**mapping(line.get("meta")), **line} if line is not found else {}
        session = text(first(meta, _SESSION_KEYS))
        source = where.rpartition(", ")[0]
        for message in messages:
            account.records += 1
            yield (
                session or source,
                {
                    "message": message,
                    "server": text(first(meta, _SERVER_KEYS)),
                    "ts": first(meta, _TIME_KEYS),
                    "tenant": text(first(meta, _TENANT_KEYS)),
                    "task_success": boolean(meta.get("task_success")),
                    "words": {**mapping(meta.get("_meta")), **mapping(mapping(message.get("params")).get("_meta"))},
                    "where": where,
                },
            )


def _session(key: str, group: list[dict[str, Any]], account: Account) -> Iterator[Decision]:
    replies = _replies(group)
    offered: dict[str, tuple[str, ...]] = {}
    listing: dict[str, tuple[str, ...]] = {}
    verdicts = [line["task_success"] for line in group if line["task_success"] is not None]
    request, step = "", 0
    for line in group:
        message, server = line["message"], line["server"]
        reply = replies.get(_id(line)) if "method" in message else None
        params = mapping(message.get("params"))
        if message.get("method") == "tools/list" and reply is not None:
            result = mapping(reply["message"].get("result"))
            page = tool_names(result.get("tools")) or ()
            page = tuple(f"{server}.{name}" for name in page) if server else page
            listing[server] = (*(listing.get(server, ()) if params.get("cursor") else ()), *page)
            if not result.get("nextCursor"):
                offered[server] = listing[server]
        if message.get("method") != "tools/call":
            continue
        request = text(first(line["words"], _REQUEST_KEYS)) or request
        call = _call(line, reply)
        if not call.answered:
            account.notice(UNANSWERED, line["where"])
        goal = text(first(line["words"], _GOAL_KEYS))
        yield Decision(
            key,
            request,
            said=goal,
            hint=_own_words(call),
            offered=tuple(name for names in offered.values() for name in names) if offered else None,
            calls=(call,),
            step=step,
            ts=call.ts,
            tenant=line["tenant"],
            task_success=verdicts[-1] if verdicts else None,
            where=line["where"],
        )
        step += 1
    asked = {_id(line) for line in group if "method" in line["message"]}
    lost = [reply for id, reply in replies.items() if id not in asked]
    if lost:
        account.skip(UNCALLED, lost[0]["where"], len(lost))


def _id(line: dict[str, Any]) -> tuple[str, str]:
    """Ids are counted by each server's client: 1 and "1" are two, and so are two servers' 1."""
    return line["server"], repr(line["message"].get("id"))


def _replies(group: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    replies: dict[tuple[str, str], dict[str, Any]] = {}
    for line in group:
        message = line["message"]
        if "method" not in message and ("result" in message or "error" in message) and message.get("id") is not None:
            replies.setdefault(_id(line), line)
    return replies


def _call(line: dict[str, Any], reply: dict[str, Any] | None) -> Call:
    params = mapping(line["message"].get("params"))
    start = instant(line["ts"])
    call = Call(
        text(params.get("name")),
        unpacked(params.get("arguments")),
        line["server"],
        ts=start,
        latency_ms=milliseconds(start, instant(reply["ts"])) if reply else None,
    )
    if reply is None:
        return call
    error = mapping(reply["message"].get("error"))
    if error:
        said = f"MCP error {error.get('code')}: {plain_text(error.get('message'))}"
        return call.with_result(Result(call.call_id, None, False, said))
    result = mapping(reply["message"].get("result"))
    return call.with_result(Result(call.call_id, result, not result.get("isError", False)))


def _own_words(call: Call) -> str:
    """The words inside a call's arguments, where nothing else says what it was for."""
    given = mapping(call.arguments)
    said = [value for value in given.values() if isinstance(value, str) and " " in value.strip()]
    return " ".join(said)

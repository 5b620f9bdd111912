"""Forms: which log format a file holds, told by its first records."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from data.logs.account import Account
from data.logs.files import opened
from data.logs.json_stream import Record, records
from data.logs.mlflow_store import SQLITE_MAGIC
from data.logs.otlp_proto import is_protobuf, proto_records
from data.logs.values import items, mapping, text

_LOOKED_AT = 50


def told_form(path: Path) -> str | None:
    """The form of the first record that has one; None where none of the first has."""
    if is_database(path):
        return "mlflow"
    with opened(path, Account()) as stream:
        for value, _ in islice(values(stream, str(path), Account()), _LOOKED_AT):
            form = form_of(value)
            if form is not None:
                return form
    return None


def is_database(path: Path) -> bool:
    """Whether a file is an SQLite database."""
    with opened(path, Account()) as stream:
        return stream.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC


def values(stream: BinaryIO, source: str, account: Account) -> Iterator[Record]:
    """The values of an open file, JSON or protobuf."""
    head = stream.peek(64)[:64]  # type: ignore[attr-defined]
    return proto_records(stream, source, account) if is_protobuf(head) else records(stream, source, account)


def form_of(value: Any) -> str | None:
    """The form that one JSON value is in, by the keys that only it has."""
    if isinstance(value, list):
        return "openai" if value and "role" in mapping(value[0]) else None
    if not isinstance(value, dict):
        return None
    keys = value.keys()
    inner = [value, *(mapping(value.get(key)) for key in ("message", "payload", "data", "request"))]
    told = {
        "jsonl": {"tool_id", "trace_id"} <= keys,
        "otel": bool(keys & {"resourceSpans", "resource_spans"})
        or ("attributes" in keys and bool(keys & {"traceId", "context", "span_id"})),
        "mlflow": "info" in keys and "data" in keys and "spans" in mapping(value["data"]),
        "mcp": any("jsonrpc" in one for one in inner),
        "langsmith": any("run_type" in one for one in (value, *map(mapping, items(value.get("runs"))))),
        "langfuse": "observations" in keys or ({"traceId", "type"} <= keys) or _is_langfuse_page(value),
    }
    return next((form for form, is_told in told.items() if is_told), None) or _chat_form(value)


def _is_langfuse_page(value: dict[str, Any]) -> bool:
    return any({"traceId", "type"} <= mapping(one).keys() for one in items(value.get("data"))[:1])


def _chat_form(value: dict[str, Any]) -> str | None:
    """openai or anthropic; what fits both is the former, since one reader reads the two."""
    blocks = [value, *(mapping(value.get(key)) for key in ("request", "response", "body", "message", "params"))]
    blocks += [mapping(block.get("body")) for block in blocks]
    for block in blocks:
        tools = [mapping(tool) for tool in items(block.get("tools"))]
        contents = [block, *(mapping(message) for message in items(block.get("messages")))]
        parts = [mapping(part) for one in contents for part in items(one.get("content"))]
        if any("input_schema" in tool for tool in tools):
            return "anthropic"
        if any(text(part.get("type")) in {"tool_use", "tool_result", "server_tool_use"} for part in parts):
            return "anthropic"
        if block.get("type") == "message" and block.get("role") == "assistant" and "stop_reason" in block:
            return "anthropic"
    is_chat = any(block.keys() & {"messages", "choices", "output", "role"} for block in blocks)
    item = text(value.get("type")) in {"response_item", "function_call", "function_call_output"}
    return "openai" if is_chat or item else None

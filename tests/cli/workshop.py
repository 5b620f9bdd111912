"""A small workshop: a handful of tools, their files, and what one run of the command left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOOLS: list[dict[str, Any]] = [
    {
        "tool_id": "mail.send_message",
        "name": "send_message",
        "domain": "mail",
        "description": "Send an email message to one or more recipients.",
        "read_only": False,
        "input_schema": {"type": "object", "properties": {"to": {"type": "string"}, "body": {"type": "string"}}},
    },
    {
        "tool_id": "mail.search_messages",
        "name": "search_messages",
        "domain": "mail",
        "description": "Search the mailbox for messages by sender, subject or words.",
        "read_only": True,
        "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}},
    },
    {
        "tool_id": "calendar.list_events",
        "name": "list_events",
        "domain": "calendar",
        "description": "List the events of a calendar between two dates.",
        "read_only": True,
    },
    {
        "tool_id": "bank.transfer_money",
        "name": "transfer_money",
        "domain": "bank",
        "description": "Transfer money from one account to another.",
        "risk": "destructive",
        "requires": {"scopes": ["payments"]},
    },
]


@dataclass(frozen=True)
class Ran:
    """What one run of the command left behind."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """stdout as the one JSON document that it must be."""
        return json.loads(self.out)


Run = Callable[..., Ran]


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_json(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path

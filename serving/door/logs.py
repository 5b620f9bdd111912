"""Structured logs: one JSON object a line, never with the value of an argument, a goal or a credential."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

ACCESS = logging.getLogger("toolcrib.access")


class JsonLines(logging.Formatter):
    """A log record as one line of JSON; what a call gave as `extra={"fields": {...}}` is added as it is."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            # The class and the place, not the text of the error: that may quote what a user sent.
            line["error"] = record.exc_info[0].__name__
            line["at"] = _place(record)
        return json.dumps(line, ensure_ascii=True, default=str)


def log_as_json(level: int = logging.INFO) -> None:
    """Send toolcrib's and the server's log lines to stderr as JSON, in place of whatever wrote them before."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name in ("toolcrib", "uvicorn", "uvicorn.error"):
        log = logging.getLogger(name)
        log.handlers, log.propagate = [handler], False
        log.setLevel(level)
    logging.getLogger("uvicorn.access").disabled = True  # the door writes its own line, with the slice and the caller


def access(route: str, status: int, milliseconds: float, fields: dict[str, Any]) -> None:
    """One line an answer."""
    ACCESS.info("request", extra={"fields": {"route": route, "status": status, "ms": round(milliseconds, 2), **fields}})


def _place(record: logging.LogRecord) -> str:
    assert record.exc_info is not None
    trace = record.exc_info[2]
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}" if trace is not None else ""

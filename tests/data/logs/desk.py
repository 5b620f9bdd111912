"""A desk of tools for the log tests, and the import of a log in one line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from data.cards import ToolCard
from data.catalog import Catalog
from data.logs import LogReport, import_logs
from data.traces import Trace


def card(domain: str, name: str, **more: Any) -> ToolCard:
    return ToolCard(tool_id=f"{domain}.{name}", name=name, domain=domain, **more)


DESK = Catalog(
    [
        card("mail", "send_message"),
        card("mail", "search"),
        card("calendar", "list_events"),
        card("calendar", "search"),
        card("forge", "create_issue", aliases=("open_ticket",)),
        card("weather", "get_forecast"),
    ]
)


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def imported(*sources: Path | str, format: str = "auto", catalog: Catalog = DESK, **more: Any) -> list[Trace]:
    """The traces of a log."""
    return list(import_logs(sources, format, catalog, **more).traces())


def imported_with_report(
    *sources: Path | str, format: str = "auto", catalog: Catalog = DESK, **more: Any
) -> tuple[list[Trace], LogReport]:
    running = import_logs(sources, format, catalog, **more)
    return list(running.traces()), running.report()


def called(traces: Iterable[Trace]) -> list[tuple[str | None, str, str]]:
    """(tool, outcome, error class) of each line."""
    return [(trace.tool_id, trace.outcome, trace.error_class) for trace in traces]


def menu(trace: Trace) -> list[str] | None:
    return None if trace.menu is None else [shown.tool_id for shown in trace.menu]

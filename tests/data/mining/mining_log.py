"""Small logs for the mining tests: calls written as one line each, mined through a real file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from data.cards import ToolCard
from data.catalog import Catalog
from data.mining.calls import Log, read_log
from data.mining.engines import opened
from data.mining.miner import Mined, mine
from data.mining.options import MiningOptions
from data.trace_store import write_traces
from data.traces import Shown, Trace

Found = Callable[[Callable[[Log], Any], str], list[dict[str, Any]]]

START = datetime(2026, 3, 1, tzinfo=UTC)
TOOLS = ("mail.send", "mail.search", "files.search", "files.read", "sheets.append", "maps.route")


def catalog_of(*tool_ids: str, **cards: Any) -> Catalog:
    """Cards that are only named; the name is what follows the dot."""
    return Catalog(ToolCard(tool_id=i, name=i.split(".")[-1], domain=i.split(".")[0], **cards) for i in tool_ids)


CATALOG = catalog_of(*TOOLS)
PLACES = {"tool_id": "tool", "better": "better"}
"""What a rule says by a tool's place in the catalog, and what it is here."""


def menu(*tool_ids: str, **propensity: float) -> tuple[Shown, ...]:
    """A menu in this order; a propensity is given by the tool id with `_` for its dot."""
    return tuple(
        Shown(tool_id=i, position=p, propensity=propensity.get(i.replace(".", "_"), 1.0))
        for p, i in enumerate(tool_ids)
    )


def call(tool_id: str | None, how: str = "success", goal: str = "send the report", **fields: Any) -> Trace:
    """One call. `how` is an outcome, or an error class, which means a failure."""
    outcome = how if how in ("success", "failure", "unknown") else "failure"
    error = "none" if how == outcome else how
    return Trace.model_validate(
        {"trace_id": "t1", "goal": goal, "tool_id": tool_id, "outcome": outcome, "error_class": error, **fields}
    )


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def mined(traces: Iterable[Trace], catalog: Catalog = CATALOG, **options: Any) -> Mined:
    """The traces, written to a file and mined with these options."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "traces.parquet"
        write_traces(path, traces)
        return mine(path, catalog, options=MiningOptions(**options))


class Story:
    """Many small logs in one file, so that each rule runs once for all of them; no rule looks beyond a trace."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []
        self.told = 0

    def tell(self, *traces: Trace) -> str:
        """Add a small log; returns the mark that its trace ids begin with."""
        self.told += 1
        mark = f"{self.told:03}/"
        self.traces += [trace.model_copy(update={"trace_id": mark + trace.trace_id}) for trace in traces]
        return mark

    @contextmanager
    def read(self) -> Iterator[Found]:
        """What a rule finds in one of the logs, sorted, its trace ids as they were."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "traces.parquet"
            write_traces(path, self.traces)
            with opened(path, "duckdb") as engine:
                log = read_log(engine, CATALOG)

                names = {row.pop("decision"): row for row in log.words().to_pyarrow().to_pylist()}

                def in_words(row: dict[str, Any]) -> dict[str, Any]:
                    ids = {key: TOOLS[row[place]] for key, place in PLACES.items() if place in row}
                    return row | names[row["decision"]] | ids

                @cache
                def of_all(rule: Callable[[Log], Any]) -> list[dict[str, Any]]:
                    listed = [in_words(row) for row in rule(log).to_pyarrow().to_pylist()]
                    return sorted(listed, key=lambda r: (r["trace_id"], r.get("tool_id") or "", r.get("better") or ""))

                def found(rule: Callable[[Log], Any], mark: str) -> list[dict[str, Any]]:
                    own = [row for row in of_all(rule) if row["trace_id"].startswith(mark)]
                    return [row | {"trace_id": row["trace_id"].removeprefix(mark)} for row in own]

                yield found


def rows(mining: Mined, reason: str | None = None) -> list[dict[str, Any]]:
    return [row for row in mining.examples.to_pylist() if reason in (None, row["reason"])]


def same(a: Mined, b: Mined) -> bool:
    """Whether two results are equal, their reports too."""
    return (
        a.report == b.report
        and a.examples.equals(b.examples)
        and a.preferences.equals(b.preferences)
        and a.no_tool.equals(b.no_tool)
        and a.history.equals(b.history)
    )

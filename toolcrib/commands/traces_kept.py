"""`toolcrib traces export`, `forget` and `expire`: the traces that a service has kept in its database."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data.errors import InputError
from data.trace_store import write_traces
from data.traces import Trace
from toolcrib.commands.options import JsonOption
from toolcrib.screen import print_json, say

if TYPE_CHECKING:
    from data.store.ledger import Ledger

_SPANS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}

DatabaseOption = Annotated[
    str,
    typer.Option(
        "--database",
        "-d",
        envvar="TOOLCRIB_DATABASE",
        help="Where the service keeps its traces: a SQLite file, or postgresql://...",
        show_default=False,
        show_envvar=True,
    ),
]


def export_command(
    database: DatabaseOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="The traces to write.")] = Path("traces.parquet"),
    since: Annotated[str, typer.Option("--since", help="Decisions from this moment on, such as 2026-03-01.")] = "",
    until: Annotated[str, typer.Option("--until", help="Decisions before this moment.")] = "",
    tenant: Annotated[str | None, typer.Option("--tenant", help="This tenant's only.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the kept traces as a file that `toolcrib train` learns from.

    A moment without a zone is in UTC. Says what had to be left out: decisions without an outcome, outcomes without a
    decision, decisions that were kept without their text, and spans whose trace is not whole yet.
    """
    start, end = _moment(since, "--since"), _moment(until, "--until")
    ledger = _ledger(database)
    count = _Count()
    write_traces(out, count.of(ledger.traces(start, end, tenant)))
    left = ledger.unpaired(start, end, tenant)
    ledger.database.close()
    if as_json:
        print_json({"traces": count.total, "left_out": asdict(left)})
        return
    say(f"{count.total} traces written to {out}")
    for number, what in (
        (left.decisions, "decisions without an outcome"),
        (left.outcomes, "outcomes without a decision"),
        (left.hashed, "calls whose decision was kept without its text"),
        (left.spans, "spans that wait for the rest of their trace"),
    ):
        if number:
            say(f"left out: {number} {what}")


def forget_command(
    database: DatabaseOption,
    principal: Annotated[str, typer.Option("--principal", "-p", help="Whose traces to remove.", show_default=False)],
    tenant: Annotated[str | None, typer.Option("--tenant", help="In this tenant only; else in all of them.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Remove all that is kept of one person: decisions, outcomes, tickets, observations and spans.

    Also what was kept under the person's hashed name. A spool that waits to be replayed is its service's alone: while
    one waits, run this again after it was replayed.
    """
    from data.store.privacy import names_of

    ledger = _ledger(database)
    counts = ledger.forget(names_of(principal, ledger.database), tenant)
    ledger.database.close()
    _tell("removed", counts, as_json)


def expire_command(
    database: DatabaseOption,
    older_than: Annotated[
        str, typer.Option("--older-than", help="An age: 90d, 12h or 4w (days, hours, weeks).", show_default=False)
    ],
    as_json: JsonOption = False,
) -> None:
    """Remove what is older than an age. Approvals that are still open stay."""
    age = _age(older_than)
    ledger = _ledger(database)
    now = datetime.now(UTC)
    counts = ledger.expire(now - age, now)
    ledger.database.close()
    _tell("removed", counts, as_json)


class _Count:
    """How many traces went by."""

    def __init__(self) -> None:
        self.total = 0

    def of(self, traces: Iterator[Trace]) -> Iterator[Trace]:
        for trace in traces:
            self.total += 1
            yield trace


def _ledger(database: str) -> Ledger:
    from data.store.database import open_database
    from data.store.ledger import Ledger

    return Ledger(open_database(database, make=False))


def _tell(what: str, counts: Mapping[str, int], as_json: bool) -> None:
    if as_json:
        print_json({what: dict(counts)})
        return
    say(f"{what}: " + ", ".join(f"{count} {name}" for name, count in counts.items()))


def _moment(text: str, option: str) -> datetime | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        hint = "give a date such as 2026-03-01 or 2026-03-01T14:00+01:00"
        raise InputError(f"not a moment: '{text[:60]}'", field=option, hint=hint) from error


def _age(text: str) -> timedelta:
    found = re.fullmatch(r"([0-9]{1,4})([hdw])", text)
    if found is None:
        hint = "give a number and a unit: 90d, 12h or 4w"
        raise InputError(f"not an age: '{text[:60]}'", field="--older-than", hint=hint)
    return int(found[1]) * _SPANS[found[2]]

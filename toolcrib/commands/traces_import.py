"""`toolcrib traces import`: the logs of an agent, in whatever form they are, as traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from data.jsonl import load_catalog
from data.logs import FORMATS, import_logs, to_text
from data.trace_store import write_traces
from toolcrib.commands.options import CatalogOption, JsonOption, PartitionOption, partitions
from toolcrib.screen import print_json, say


def import_command(
    catalog: CatalogOption,
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SRC]...", help="Files, folders, patterns or a server to read; bfcl needs none."),
    ] = None,
    form: Annotated[str, typer.Option("--format", "-f", help=f"What SRC holds: {', '.join(FORMATS)}.")] = "auto",
    out: Annotated[str, typer.Option("--out", "-o", help="The traces to write: a path or a URL.")] = "traces.parquet",
    partition_by: PartitionOption = "",
    mapping: Annotated[
        Path | None, typer.Option("--mapping", "-m", help="A YAML file that says which tool a logged name is.")
    ] = None,
    rules: Annotated[
        Path | None, typer.Option("--rules", help="A YAML file with outcome rules of your own, tried first.")
    ] = None,
    redact: Annotated[bool, typer.Option("--redact", help="Mask personal data and secrets.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and report, write nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Read the logs of an agent and write them as traces.

    Says how much of them was usable, and why the rest was not.
    """
    running = import_logs(sources or [], form, load_catalog(catalog), mapping=mapping, rules=rules, redact=redact)
    if dry_run:
        _exhaust(running.traces())
    else:
        write_traces(out, running.traces(), partitions(partition_by))
    told = running.report()
    if as_json:
        print_json(told.model_dump_json())
        return
    say(to_text(told))
    say("nothing was written: --dry-run" if dry_run else f"{told.traces} traces written to {out}")


def _exhaust(traces: Iterator[object]) -> None:
    for _ in traces:
        pass

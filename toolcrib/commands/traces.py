"""`toolcrib traces`: logs in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from data.importers import TRACE_FORMATS, import_traces
from data.jsonl import load_catalog
from data.trace_store import write_traces
from toolcrib.commands.options import CatalogOption
from toolcrib.screen import say

app = typer.Typer(help="Import the logs of an agent.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Import the logs of an agent."""


@app.command("import")
def import_command(
    form: Annotated[str, typer.Option("--format", help=f"What SRC holds: {', '.join(TRACE_FORMATS)}.")],
    catalog: CatalogOption,
    source: Annotated[
        Path | None, typer.Argument(metavar="[SRC]", help="The file or folder to read; bfcl needs none.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The traces to write.")] = Path("traces.parquet"),
) -> None:
    """Read logs of another form and write them as traces."""
    traces, report = import_traces(source, form, load_catalog(catalog))
    write_traces(out, traces)
    say(report.to_text())
    say(f"{len(traces)} traces written to {out}")

"""`toolcrib traces`: logs in."""

from __future__ import annotations

import typer

from toolcrib.commands.traces_import import import_command

app = typer.Typer(help="Import the logs of an agent.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Import the logs of an agent."""


app.command("import")(import_command)

"""`toolcrib traces`: logs in; kept traces out, or removed."""

from __future__ import annotations

import typer

from toolcrib.commands.traces_import import import_command
from toolcrib.commands.traces_kept import expire_command, export_command, forget_command

app = typer.Typer(help="Import the logs of an agent; export or remove what a service kept.", no_args_is_help=True)

app.command("import")(import_command)
app.command("export")(export_command)
app.command("forget")(forget_command)
app.command("expire")(expire_command)

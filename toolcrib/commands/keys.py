"""`toolcrib keys`: API keys of the service, made and checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from data.errors import InputError
from toolcrib.screen import print_json, say, show_table

app = typer.Typer(help="Make API keys of the service, and check what its file grants.", no_args_is_help=True)


@app.command("new")
def new_command(
    name: Annotated[str, typer.Option("--name", help="Who the key is for; it goes into logs.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print a new key, once, and the lines for the service's file, which hold its hash only."""
    from serving.door.grants import is_name
    from serving.door.keys import digest, new_key

    if not is_name(name):
        raise InputError("not 1 to 256 printable characters", field="--name", hint="choose another name")
    key = new_key()
    if as_json:
        print_json({"name": name, "key": key, "sha256": digest(key)})
        return
    say(key)
    say()
    say("This is the only time that the key is shown. Into the service's file, with what it grants:")
    say()
    say("identity:")
    say("  keys:")
    say(f"    - name: {json.dumps(name)}")  # a JSON text is a YAML text, whatever is in it
    say(f'      sha256: "{digest(key)}"')


@app.command("check")
def check_command(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The service's YAML file.")],
) -> None:
    """Read the service's file as the service does and list who it lets in: before a change is put in place."""
    from serving.door.settings import load_settings

    identity = load_settings(config).identity
    rows = [
        (
            key.name,
            key.principal or key.name,
            key.tenant,
            ", ".join(key.scopes),
            ", ".join(right for right in ("may_act_for", "operator", "may_confirm") if getattr(key, right)),
            "" if key.expires is None else key.expires.isoformat(),
        )
        for key in identity.keys
    ]
    show_table("", ("key", "principal", "tenant", "scopes", "rights", "expires"), rows)
    say(f"tokens of {identity.jwt.issuer} are accepted" if identity.jwt is not None else "no tokens are accepted")

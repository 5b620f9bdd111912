"""What a person points at as a source of tools: a file, an address, or a command that starts a server."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from data.errors import InputError
from data.importers.live import Server


def read_source(
    source: str | None, command: str | None, headers: Sequence[str], variables: Sequence[str], timeout_s: float
) -> Path | Server | None:
    """A live Server for an address or a command, the path of a file, or None.

    `headers` are `NAME=VARIABLE` and `variables` are names: the values come from this process's environment, so that
    no credential stands on a command line. Raises InputError for a variable that is not set and for what does not go
    together.
    """
    live = command is not None or (source or "").startswith(("http://", "https://"))
    if command is not None and source is not None:
        raise InputError("give either SRC or --command", field="--command")
    if not live and (headers or variables):
        raise InputError("--header and --env are for a live server", hint="give an address or --command")
    if command is None:
        if variables:
            raise InputError("--env is for a server that is started", field="--env", hint="give --command")
        if not live or source is None:
            return None if source is None else Path(source)
        return Server(url=source, headers=dict(_header(text) for text in headers), timeout_s=timeout_s)
    if headers:
        raise InputError("--header is for a server at an address", field="--header", hint="give --env instead")
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise InputError(f"cannot be split into words: {error}", field="--command") from error
    environment = {name: _variable(name, "--env") for name in variables}
    return Server(command=words, environment=environment, timeout_s=timeout_s)


def _header(text: str) -> tuple[str, str]:
    name, sign, variable = text.partition("=")
    if not (name and sign and variable):
        raise InputError(f"expected NAME=VARIABLE, found '{name}'", field="--header")
    return name, _variable(variable, "--header")


def _variable(name: str, option: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise InputError(f"the environment has no variable '{name[:60]}'", field=option, hint="set it first")
    return value

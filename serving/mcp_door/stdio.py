"""stdio: the door to the one client that started this process, as the identity that the configuration names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mcp.server.stdio import stdio_server

from data.errors import InputError
from serving.door.assembly import Assembly
from serving.door.errors import IDENTITY_UNAVAILABLE, DoorError
from serving.door.granted import Identity, of_grant
from serving.door.grants import IdentitySettings
from serving.door.settings import load_identity
from serving.door.watched import WatchedFile
from serving.mcp_door.running import McpDoor
from serving.mcp_door.server import Context


def granted(identity: IdentitySettings, name: str | None) -> Identity:
    """The identity of the key grant `name`, or of `dev`. Raises InputError for a name that nobody has."""
    if name is None:
        return of_grant("dev", identity.dev, "dev")
    for key in identity.keys:
        if key.name == name:
            return of_grant(key.name, key, key.principal or key.name)
    raise InputError(f"no key is named '{name}'", field="identity.keys", hint="name one of the file's keys")


def identity_of_file(config: Path | None, name: str | None) -> Callable[[Context], Identity]:
    """The identity as the file grants it at the moment of a request. Raises InputError as `granted`."""
    if config is None:
        fixed = granted(IdentitySettings(), name)
        return lambda _: fixed
    watched = WatchedFile(config, lambda path: granted(load_identity(path), name))
    watched.value()

    def identity_of(_: Context) -> Identity:
        try:
            return watched.value()
        except InputError as error:
            raise DoorError(503, IDENTITY_UNAVAILABLE, "what is granted cannot be told at the moment") from error

    return identity_of


async def serve_stdio(door: McpDoor, assembly: Assembly) -> None:
    """Serve until the client closes its end."""
    protocol = door.server.protocol
    async with assembly.running(), door.running(), stdio_server() as (reading, writing):
        await protocol.run(reading, writing, protocol.create_initialization_options())

"""`toolcrib mcp`: the MCP door, between an agent and the MCP servers that it has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data.errors import InputError
from toolcrib.commands.options import (
    ConfigOption,
    FollowedPolicyOption,
    ServedBundleOption,
    ServedCatalogOption,
    ServedRegistryOption,
)
from toolcrib.commands.serve import catalog_of, source_of

if TYPE_CHECKING:
    from data.catalog import Catalog
    from serving.door.settings import ServiceSettings
    from serving.following import Followed


def mcp_command(
    bundle: ServedBundleOption,
    upstreams: Annotated[
        Path, typer.Option("--upstreams", "-u", help="The YAML file that names the MCP servers.", show_default=False)
    ],
    catalog: ServedCatalogOption = None,
    registry: ServedRegistryOption = None,
    config: ConfigOption = None,
    policy: FollowedPolicyOption = None,
    grant: Annotated[
        str | None, typer.Option("--as", help="Over stdio: whose grant of the config holds; default: identity.dev.")
    ] = None,
    http: Annotated[
        int | None,
        typer.Option("--http", min=0, max=65535, help="Serve streamable HTTP on this port, under /mcp; 0: a free one."),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="With --http: the address to listen on.")] = "127.0.0.1",
    dev: Annotated[
        bool, typer.Option("--dev", help="With --http: let requests from this machine in without a credential.")
    ] = False,
) -> None:
    """Serve an agent a few tools that find, check and forward calls of all others, over stdio or streamable HTTP.

    A changed bundle, catalog, policy, grant or server is followed without a restart.
    """
    from serving.door.settings import ServiceSettings, load_settings

    settings = ServiceSettings() if config is None else load_settings(config)
    if http is None:
        if dev:
            raise InputError("--dev is for --http", source="--dev", hint="over stdio, identity.dev or --as is who asks")
        with catalog_of(catalog, registry) as cards:
            _over_stdio(settings, bundle, cards, upstreams, config, policy, grant)
    else:
        if grant is not None:
            raise InputError("--as is for stdio", source="--as", hint="over HTTP, each request's credential says who")
        with catalog_of(catalog, registry) as cards:
            _over_http(settings, bundle, cards, upstreams, config, policy, host, http, dev)


def _over_stdio(
    settings: ServiceSettings,
    bundle: str,
    catalog: Followed[Catalog],
    upstreams: Path,
    config: Path | None,
    policy: Path | None,
    grant: str | None,
) -> None:
    import anyio

    from serving.door.assembly import Assembly
    from serving.door.identity import Authenticator
    from serving.mcp_door.running import McpDoor
    from serving.mcp_door.settings import load_upstreams
    from serving.mcp_door.stdio import identity_of_file, serve_stdio

    found, identity_of = load_upstreams(upstreams), identity_of_file(config, grant)
    nobody = Authenticator(settings.identity, dev=True)  # no HTTP route is served that could ask it
    made = Assembly(settings, catalog=catalog, bundle=source_of(bundle), authenticator=nobody, policy=policy)
    anyio.run(serve_stdio, McpDoor(made, settings, found, identity_of, version=_version()), made)


def _over_http(
    settings: ServiceSettings,
    bundle: str,
    catalog: Followed[Catalog],
    upstreams: Path,
    config: Path | None,
    policy: Path | None,
    host: str,
    port: int,
    dev: bool,
) -> None:
    from serving.door.assembly import Assembly
    from serving.door.identity import Authenticator, check_dev
    from serving.door.listening import listen, listening
    from serving.door.logs import log_as_json
    from serving.door.spans import send_spans
    from serving.mcp_door.http import application, end_streams, identity_of_request, keep_streams
    from serving.mcp_door.running import McpDoor
    from serving.mcp_door.settings import load_upstreams

    check_dev(dev, host)
    found = load_upstreams(upstreams)
    authenticator = Authenticator(settings.identity, source=config, dev=dev)
    send_spans()
    made = Assembly(settings, catalog=catalog, bundle=source_of(bundle), authenticator=authenticator, policy=policy)
    door = McpDoor(made, settings, found, identity_of_request, version=_version())
    log_as_json()
    keep_streams()
    listen(listening(application(door, made, authenticator, host), made.door, settings, host, port, end_streams))


def _version() -> str:
    from importlib.metadata import version

    return version("toolcrib")

"""`toolcrib serve`: the HTTP service on a bundle and a catalog."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
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
from toolcrib.inputs import read_bundle

if TYPE_CHECKING:
    from data.catalog import Catalog
    from serving.following import Followed
    from serving.watch import Source

REGISTRY_VARIABLE = "TOOLCRIB_REGISTRY"


def serve_command(
    bundle: ServedBundleOption,
    catalog: ServedCatalogOption = None,
    registry: ServedRegistryOption = None,
    config: ConfigOption = None,
    policy: FollowedPolicyOption = None,
    database: Annotated[
        str | None, typer.Option("--database", help="Where traces go: a SQLite file or postgresql://...")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")] = 8700,
    dev: Annotated[bool, typer.Option("--dev", help="Let requests from this machine in without a credential.")] = False,
) -> None:
    """Serve menus and the gate over HTTP.

    A changed bundle, catalog, policy or grant is followed without a restart. SIGTERM turns /readyz to 503, and a moment
    later ends what was begun, then stops.
    """
    from serving.door.assembly import Assembly
    from serving.door.identity import Authenticator, check_dev
    from serving.door.listening import listen, listening
    from serving.door.logs import log_as_json
    from serving.door.settings import ServiceSettings, load_settings
    from serving.door.spans import send_spans

    check_dev(dev, host)
    settings = ServiceSettings() if config is None else load_settings(config)
    if database is not None:
        given = {"database": database, "database_env": None}
        settings = settings.model_copy(update={"traces": settings.traces.model_copy(update=given)})
    authenticator = Authenticator(settings.identity, source=config, dev=dev)
    send_spans()
    source = source_of(bundle)
    log_as_json()
    with catalog_of(catalog, registry) as cards:
        made = Assembly(settings, catalog=cards, bundle=source, authenticator=authenticator, policy=policy)
        listen(listening(made.application(), made.door, settings, host, port))


@contextmanager
def catalog_of(file: Path | None, registry: str | None) -> Iterator[Followed[Catalog]]:
    """Where the catalog comes from: a file, or the registry that is named here or in the environment.

    Raises InputError for both and for neither, and what a registry raises that cannot be opened.
    """
    from serving.following import CatalogFile

    if file is not None and registry is not None:
        raise InputError("give --catalog or --registry, not both", source="--registry")
    if file is not None:
        yield CatalogFile(file)
        return
    url = registry or os.environ.get(REGISTRY_VARIABLE, "")
    if not url:
        hint = f"give --catalog FILE, or --registry URL, which may come from {REGISTRY_VARIABLE}"
        raise InputError("there is no catalog to serve", source="--catalog", hint=hint)

    from data.store.approved import Approved
    from data.store.database import open_database

    with closing(open_database(url, make=False)) as database:
        yield Approved(database)


def source_of(bundle: str) -> Source | None:
    """Where the bundle comes from; None for no bundle at all."""
    from serving.watch import alias_source, bundle_source

    if bundle.startswith("models:/"):
        from training.registered import registered

        return alias_source(registered(bundle))
    folder = read_bundle(bundle)
    return None if folder is None else bundle_source(folder)

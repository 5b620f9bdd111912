"""A registered bundle by name and alias or version, `models:/toolcrib@champion`, as a folder that serves."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from data.errors import InputError
from training.tracking import DEFAULT_ROOT, TrackingError, open_client, tracking_uri

_URI = re.compile(r"models:/(?P<name>[^/@]+)(?:@(?P<alias>[^/@]+)|/(?P<version>[0-9]+))")


def registered(uri: str, root: Path = DEFAULT_ROOT) -> Callable[[], Path]:
    """A function that gives the folder of the bundle that `uri` names at that moment.

    A version is fetched once, into the user's cache folder; asking again looks at the alias alone. The function raises
    TrackingError where the store cannot be reached or knows no such model. Raises InputError for another form of name.
    """
    parts = _URI.fullmatch(uri)
    if parts is None:
        raise InputError(
            "is no name of a registered model",
            source=uri,
            hint="write models:/toolcrib@champion or models:/toolcrib/3",
        )
    client, store = open_client(root), tracking_uri(root)
    name, alias = parts["name"], parts["alias"]

    def resolve() -> Path:
        try:
            version = parts["version"] or client.get_model_version_by_alias(name, alias).version
            run_id = client.get_model_version(name, version).run_id
            place = _cache() / f"{name}-{version}-{run_id}"
            if not place.is_dir():
                _fetch(client.get_model_version_download_uri(name, version), store, place)
        except Exception as error:
            raise TrackingError(
                f"{uri}: cannot be fetched from the registry ({type(error).__name__}: {error})"
            ) from error
        return place

    return resolve


def _fetch(source: str, store: str, place: Path) -> None:
    """Fetch into a folder beside and move it into place: a folder that is there is whole."""
    from mlflow.artifacts import download_artifacts

    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as beside:
        found = download_artifacts(artifact_uri=source, dst_path=beside, tracking_uri=store)
        try:
            Path(found).rename(place)
        except OSError:
            if not place.is_dir():  # else another process was first, with the same version
                raise


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolcrib" / "models"

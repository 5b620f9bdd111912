"""The start-up check that `data`, `serving` and `training` are toolcrib's own.

The three names are generic. A folder `data/` in the working directory, or another distribution with a package of
that name, comes first on some import paths; what follows would be an AttributeError far from its cause.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

FLOORS = ("data", "serving", "training")


class ShadowedPackageError(ImportError):
    """Another package stands where one of toolcrib's own belongs; the message names its file and the way out."""


def check_floors() -> None:
    """Raise ShadowedPackageError unless each floor is toolcrib's own, which it says by `TOOLCRIB = True`."""
    for name in FLOORS:
        try:
            module = import_module(name)
        except Exception as error:  # a foreign package may fail in any way of its own while it is imported
            raise _shadowed(name, f"which fails on import: {error}") from error
        if getattr(module, "TOOLCRIB", None) is not True:
            raise _shadowed(name, "which is not toolcrib's")


def _shadowed(name: str, problem: str) -> ShadowedPackageError:
    here = Path(__file__).resolve().parent.parent
    return ShadowedPackageError(
        f"package '{name}' is imported from {_location(name)}, {problem}; toolcrib's own belongs in {here / name}. "
        f"Rename or uninstall the other one, take its folder off PYTHONPATH, or start from another folder",
        name=name,
    )


def _location(name: str) -> str:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return "nowhere (it is not installed)"
    if spec.origin:
        return spec.origin
    return ", ".join(spec.submodule_search_locations or ()) or "an unknown place"

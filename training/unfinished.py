"""An unfinished training: the folder in which a bundle is made, and what of it is done.

It lies beside the bundle, hidden, and goes when the bundle is published. A training that is stopped leaves it behind,
and the same training goes on from there: what went in is part of it, so that no other training does.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from accelerate.utils import broadcast_object_list

from data.catalog import Catalog
from data.errors import InputError, RecipeError
from serving.bundle import sha256
from training.arguments import processes
from training.recipe import Recipe, base_path

log = logging.getLogger("toolcrib")

_STATE = "state.json"
_LOCK = "lock"
_LIBRARIES = ("toolcrib", "torch", "transformers", "sentence-transformers", "scikit-learn", "onnxruntime")

Identity = Mapping[str, str]
"""What a training is made from, by name: two with the same values give the same bundle."""


@dataclass
class Unfinished:
    """`bundle` becomes the bundle, `scratch` is for the stages; `finished`: the names of those that are done."""

    path: Path
    identity: Identity
    finished: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def bundle(self) -> Path:
        return self.path / "bundle"

    @property
    def scratch(self) -> Path:
        return self.path / "scratch"

    def finish(self, stage: str, values: Mapping[str, Any]) -> None:
        """Write down that a stage is done, with the values that the next ones need; all or nothing."""
        self.finished.append(stage)
        self.values = dict(values)
        state = {"identity": dict(self.identity), "finished": self.finished, "values": self.values}
        fresh = self.path / f".{_STATE}"
        fresh.write_text(json.dumps(state), encoding="utf-8")
        os.replace(fresh, self.path / _STATE)


def identity_of(catalog: Catalog, traces: Path, recipe: Recipe) -> dict[str, str]:
    """Digests of everything that the bundle depends on. Traces that are not there have none: mining will say so."""
    versions = [f"{name} {metadata.version(name)}" for name in _LIBRARIES]
    base = Path(base_path(recipe.base_model))
    return {
        "catalog": catalog.version,
        "traces": _digest(traces),
        "recipe": hashlib.sha256(recipe.model_dump_json().encode()).hexdigest(),
        "base model": _digest(base) if base.exists() else recipe.base_model,
        "libraries": ", ".join(versions),
    }


@contextmanager
def unfinished(out: Path, identity: Identity, *, restart: bool = False) -> Iterator[Unfinished]:
    """The folder in which the bundle `out` is made: a new one, or what the same training has left.

    With several processes the first one keeps the folder, and the others read what it found. The folder goes when the
    training is done, when it fails before a stage is, and when what it was given is at fault; an interrupt or any other
    failure leaves it.

    Raises InputError for the folder of another training, unless `restart` throws it away, and for one in use.
    """
    making = Unfinished(out.with_name(f".{out.name}.unfinished"), identity)
    first = processes().is_main_process
    lock = _prepared(making, restart) if first else None
    told: list[Any] = broadcast_object_list([making.finished, making.values])
    making.finished, making.values = told
    if not first:
        yield making
        return
    try:
        yield making
    except (InputError, RecipeError):
        shutil.rmtree(making.path, ignore_errors=True)
        raise
    except BaseException:
        if making.finished and making.bundle.is_dir():
            log.warning("what is done is kept in %s: the same command goes on from there", making.path)
        else:
            shutil.rmtree(making.path, ignore_errors=True)
        raise
    else:
        shutil.rmtree(making.path, ignore_errors=True)
    finally:
        if lock is not None:
            lock.close()


def _prepared(making: Unfinished, restart: bool) -> IO[str]:
    """Lock the folder, take over what is done in it, and clear away what is not; the lock."""
    making.path.mkdir(parents=True, exist_ok=True)
    lock = (making.path / _LOCK).open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise InputError(
            "another training is making this bundle", source=str(making.path), hint="wait for it, or train elsewhere"
        ) from error
    try:
        found = {} if restart else _read(making.path)
        other = [name for name, value in making.identity.items() if found and found["identity"].get(name) != value]
        if other:
            raise InputError(
                f"an unfinished training is here, and not of this: {', '.join(other)} changed since",
                source=str(making.path),
                hint="give what it was started with to finish it, or --restart to start over, or another folder",
            )
    except BaseException:
        lock.close()
        raise
    if found and making.bundle.is_dir():
        making.finished, making.values = found["finished"], found["values"]
        log.info("going on with the unfinished training in %s: done are %s", making.path, ", ".join(making.finished))
    else:
        for part in (making.bundle, making.scratch):
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
        (making.path / _STATE).unlink(missing_ok=True)
    return lock


def _read(folder: Path) -> dict[str, Any]:
    """What is written down there; nothing where no stage was done."""
    try:
        found: dict[str, Any] = json.loads((folder / _STATE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found


def _digest(path: Path) -> str:
    """One digest of a file, or of all files in a folder with their places."""
    if path.is_file():
        return sha256(path)
    places = sorted(p for p in path.rglob("*") if p.is_file())
    return hashlib.sha256("\n".join(f"{p.relative_to(path)} {sha256(p)}" for p in places).encode()).hexdigest()

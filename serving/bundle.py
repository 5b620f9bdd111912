"""The bundle: the folder that training writes and serving reads, every file of it hashed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from data.card_text import CARD_TEXT_VERSION
from data.catalog import content_hash
from data.errors import BundleError
from serving.features import FEATURES, FEATURES_VERSION
from serving.memory import Usage

FORMAT = 1
MANIFEST = "manifest.json"
TOKENIZER = "tokenizer.json"
RETRIEVER = "retriever.onnx"
RERANKER = "reranker.onnx"
INTERACTION = "interaction.npz"
RELEVANCE = "relevance.onnx"
ABSTENTION = "abstention.onnx"
USAGE = "usage/memory.npz"
USAGE_NAMES = "usage/names.json"
CARDS = "cards.npz"

Reranker = Literal["none", "interaction", "cross_encoder"]


def int8_name(graph: str) -> str:
    """`retriever.onnx` -> `retriever.int8.onnx`."""
    return graph.removesuffix(".onnx") + ".int8.onnx"


class Manifest(BaseModel):
    """What is in the folder and how to run it. Lengths in tokens, thresholds are probabilities."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    base_model: str
    card_text_version: str = CARD_TEXT_VERSION
    features_version: str = FEATURES_VERSION
    features: tuple[str, ...] = FEATURES
    catalog_version: str = ""
    retriever_graph: str
    reranker_graph: str = ""
    max_query_tokens: int = Field(ge=8)
    max_card_tokens: int = Field(ge=8)
    max_pair_tokens: int = Field(default=96, ge=16)
    reranker: Reranker = "none"
    rerank_depth: int = Field(default=10, ge=1)
    missing_below: float = 0.0
    widen_below: float = 0.0
    mlflow_run: str | None = None
    metrics: dict[str, Any] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)

    @property
    def version(self) -> str:
        """First 16 hexadecimal digits of the hash over all files and over how they are run."""
        how = self.model_dump(mode="json", exclude={"mlflow_run", "metrics"})
        return content_hash([json.dumps(how, sort_keys=True)])[:16]


@dataclass(frozen=True)
class Bundle:
    """A bundle on disk whose every hash was right when it was loaded."""

    path: Path
    manifest: Manifest

    @property
    def version(self) -> str:
        return self.manifest.version

    def file(self, name: str) -> Path:
        return self.path / name

    def has(self, name: str) -> bool:
        return name in self.manifest.files

    def read(self, name: str) -> bytes:
        """The content of a file. BundleError if it is not the file any more that the bundle was loaded with."""
        try:
            content = self.file(name).read_bytes()
        except OSError as error:
            raise BundleError(f"{self.path}: '{name}' cannot be read ({error})") from error
        if hashlib.sha256(content).hexdigest() != self.manifest.files[name]:
            raise BundleError(f"{self.path}: '{name}' has changed since the bundle was loaded")
        return content

    @cached_property
    def encoded(self) -> frozenset[str]:
        """The hashes of the card texts whose vectors are stored."""
        with np.load(self.file(CARDS), allow_pickle=False) as cards:
            return frozenset(cards["keys"].tolist())

    @cached_property
    def usage(self) -> Usage:
        """The usage memory; an empty one where the bundle carries none."""
        with np.load(self.file(CARDS), allow_pickle=False) as cards:
            dimension = int(cards["vectors"].shape[1])
        if not self.has(USAGE):
            return Usage.empty(dimension)
        names = json.loads(self.file(USAGE_NAMES).read_text(encoding="utf-8"))
        with np.load(self.file(USAGE), allow_pickle=False) as arrays:
            return Usage(**dict(arrays), tools=tuple(names["tools"]), tenants=tuple(names["tenants"]))


def load_bundle(path: Path) -> Bundle:
    """Read a bundle and check every hash. BundleError names the file that is missing, changed or of another form."""
    manifest = _read_manifest(path)
    for name, expected in manifest.files.items():
        file = path / name
        if not file.is_file():
            raise BundleError(f"{path}: '{name}' is missing (the bundle was copied in part; copy it again)")
        if sha256(file) != expected:
            raise BundleError(f"{path}: '{name}' is not the file that was trained (its hash differs; copy it again)")
    return Bundle(path, manifest)


def _read_manifest(path: Path) -> Manifest:
    source = path / MANIFEST
    try:
        raw = json.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BundleError(f"{path}: no {MANIFEST} here, so this is no bundle (give the folder train wrote)") from error
    except (OSError, ValueError, RecursionError) as error:
        raise BundleError(f"{source}: cannot be read ({error})") from error
    if isinstance(raw, dict) and raw.get("format") != FORMAT:
        raise BundleError(f"{source}: format {raw.get('format')} is not the format {FORMAT} that this version reads")
    try:
        manifest = Manifest.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise BundleError(f"{source}: field '{field}': {first['msg']}") from error
    for name, ours in (("card_text_version", CARD_TEXT_VERSION), ("features_version", FEATURES_VERSION)):
        if getattr(manifest, name) != ours:
            raise BundleError(
                f"{source}: {name} is {getattr(manifest, name)}, this version has {ours}; train the bundle again"
            )
    if manifest.features != FEATURES:
        raise BundleError(f"{source}: its features are not those of this version; train the bundle again")
    needed = [TOKENIZER, CARDS, manifest.retriever_graph]
    needed += [manifest.reranker_graph] if manifest.reranker == "cross_encoder" else []
    needed += [INTERACTION] if manifest.reranker == "interaction" else []
    needed += [USAGE_NAMES] if USAGE in manifest.files else []
    for name in needed:
        if name not in manifest.files:
            raise BundleError(f"{source}: lists no '{name}', which this bundle needs")
    for name in manifest.files:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise BundleError(f"{source}: '{name}' points outside the bundle")
    return manifest


def seal(folder: Path, manifest: Manifest) -> Manifest:
    """Hash every file in `folder` and write its manifest."""
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST)
    sealed = manifest.model_copy(update={"files": {name: sha256(folder / name) for name in names}})
    write_manifest(folder, sealed)
    return sealed


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write a manifest as it is: for figures that only a sealed bundle can give, which no hash covers."""
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")


def publish(folder: Path, target: Path) -> None:
    """Move a sealed folder to `target`, on the same file system; a bundle that was there is replaced at once.

    Raises BundleError for a target that holds something other than a bundle.
    """
    check_target(target)
    old = target.with_name(f".{target.name}.old-{os.getpid()}")
    replaced = target.exists()
    if replaced:
        os.replace(target, old)
    try:
        os.replace(folder, target)
    except BaseException:
        if replaced:
            os.replace(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def check_target(target: Path) -> None:
    """Raise BundleError unless a bundle may be published here: nothing, an empty folder, or another bundle."""
    if target.exists() and not ((target / MANIFEST).is_file() or (target.is_dir() and not any(target.iterdir()))):
        raise BundleError(f"{target}: holds something other than a bundle; choose another folder or remove it")


def save_usage(folder: Path, usage: Usage) -> None:
    """Write the usage memory into a bundle folder that is being made."""
    (folder / USAGE).parent.mkdir(exist_ok=True)
    arrays = {k: v for k, v in usage.__dict__.items() if isinstance(v, np.ndarray)}
    save_arrays(folder / USAGE, arrays)
    names = {"tools": usage.tools, "tenants": usage.tenants}
    (folder / USAGE_NAMES).write_text(json.dumps(names, ensure_ascii=False), encoding="utf-8")


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """An .npz without pickles."""
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def sha256(path: Path) -> str:
    """Hexadecimal sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

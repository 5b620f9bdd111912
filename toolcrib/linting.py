"""Linting a catalog whole: its texts by `data`, and whether its tools are found by what serves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from data.catalog import Catalog
from data.findings import Finding
from data.lint import lint_catalog
from serving.bundle import Bundle, load_bundle
from serving.index import Index, build_index, load_models
from serving.self_test import Embed, self_test
from toolcrib.inputs import read_bundle


def findings_of(catalog: Catalog, bundle: str | None, own_words: bool) -> list[Finding]:
    """Every finding. With a bundle (a folder, or `none` for the untrained model where it is installed), cards are
    compared and searched by their vectors too; `own_words` adds the self-test of retrieval.

    Raises as reading the bundle does, and InputError for an empty catalog.
    """
    folder = None if bundle is None else read_bundle(bundle)
    if folder is None:
        index, embed = build_index(catalog, None, None, None), None
    else:
        index, embed = _with_vectors(catalog, load_bundle(folder))
    found = lint_catalog(catalog, index.vectors)
    return [*found, *self_test(index, embed)] if own_words else found


def _with_vectors(catalog: Catalog, bundle: Bundle) -> tuple[Index, Embed]:
    encoder, weights = load_models(bundle, threads=1)

    def embed(query: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = encoder.encode([query], bundle.manifest.max_query_tokens).vectors[0]
        return vector

    return build_index(catalog, bundle, encoder, weights), embed

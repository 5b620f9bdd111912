"""Reranking for its own sake: a query and documents in, documents in order out, by the bundle's cross-encoder.

A bundle may carry a cross-encoder that does not serve in `select`, where it earned nothing; here it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np

from serving.bundle import Bundle
from serving.cross_encoder import CrossEncoderReranker, reader_of
from serving.service.errors import ModelFailedError


@dataclass(frozen=True)
class Reranked:
    """Place of a document in the request, and its relevance in [0, 1]."""

    index: int
    relevance: float


def rerank(reader: CrossEncoderReranker, query: str, documents: Sequence[str], top_n: int | None) -> list[Reranked]:
    """The documents best first, equal ones in the order given; at most `top_n` of them.

    One sigmoid over the model's logit, and nowhere another. Raises ModelFailedError for scores that are no numbers.
    """
    logits, _ = reader.scores(query, documents)
    if not np.isfinite(logits).all():
        raise ModelFailedError("the model gave no usable scores", hint="keep your own order; the operator has to look")
    order = np.argsort(-logits, kind="stable")[: top_n or len(documents)]
    chances = 1.0 / (1.0 + np.exp(-logits[order].astype(np.float64)))
    return [Reranked(int(row), float(chance)) for row, chance in zip(order, chances, strict=True)]


class Readers:
    """The cross-encoder of the bundle that serves, loaded when it is first asked for. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._loaded: tuple[str, CrossEncoderReranker | None] = "", None

    def of(self, bundle: Bundle, threads: int) -> CrossEncoderReranker | None:
        """The bundle's cross-encoder; None where it has none. Raises BundleError for one that cannot be loaded."""
        with self._lock:
            if self._loaded[0] != bundle.version:
                self._loaded = bundle.version, reader_of(bundle, threads)
            return self._loaded[1]

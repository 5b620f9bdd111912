"""Models: what a bundle's models say of one query. One that fails costs order, never the answer, and is noted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from data.card_text import card_text
from data.words import split_identifier
from serving.bundle import ABSTENTION, RELEVANCE, Bundle
from serving.cross_encoder import CrossEncoderReranker, corrected, reader_of
from serving.embedding_cache import EmbeddingCache, EmbeddingKey
from serving.encoder import Encoded, Encoder
from serving.evidence import Evidence, reading_order
from serving.features import Signals
from serving.index import Index, load_models
from serving.interaction import InteractionWeights
from serving.judged import Run, named
from serving.relevance import SHORT_GOAL_WORDS, Head, abstention, fit_features, relevance
from serving.settings import SelectorSettings
from serving.slice import Abstention


class Models:
    """What is loaded from a bundle; `encoder`, `weights` (of the interaction), `cross`, `head` (relevance) and `fit`
    (abstention) are None where it has none, all of them without a bundle. Threads may share it."""

    def __init__(self, bundle: Bundle | None, settings: SelectorSettings) -> None:
        self._bundle, self._settings = bundle, settings
        self.encoder: Encoder | None = None
        self.weights: InteractionWeights | None = None
        self.cross: CrossEncoderReranker | None = None
        self.head: Head | None = None
        self.fit: Head | None = None
        if bundle is None:
            return
        heads = (RELEVANCE, ABSTENTION)
        self.head, self.fit = (Head(bundle.file(name)) if bundle.has(name) else None for name in heads)
        if bundle.manifest.reranker == "cross_encoder":
            self.cross = reader_of(bundle, settings.threads)
        self.encoder, self.weights = load_models(bundle, settings.threads)

    def embedding_key(self, query: str) -> EmbeddingKey | None:
        """By what a query's encoding is kept; None without a bundle."""
        if self._bundle is None:
            return None
        limit, states = self._bundle.manifest.max_query_tokens, self.weights is not None
        return EmbeddingKey(query, self._bundle.version, limit, states, self._settings.threads)

    def encode(self, query: str, embeddings: EmbeddingCache | None, run: Run) -> Encoded | None:
        """The query's vector, and its token states where the interaction needs them; None where there is none."""
        key, encoder = self.embedding_key(query), self.encoder
        if encoder is None or key is None:
            return None

        def encode() -> Encoded:
            encoded = encoder.encode([query], key.max_tokens, states=key.states)
            if not np.isfinite(encoded.vectors).all():
                raise ValueError("its vector is not finite")
            return encoded

        try:
            return encode() if embeddings is None else embeddings.get(key, encode)
        except Exception as error:  # a model that fails must cost order, never the answer
            run.degrade("encode", f"the encoder failed ({error}); lexical search alone")
            return None

    def rerank(
        self, query: str, encoded: Encoded | None, seen: Signals, rows: NDArray[np.int64], index: Index, run: Run
    ) -> Signals:
        """The candidates' signals, with the scores of the reranker that serves."""
        if encoded is None or not len(rows):
            return seen
        try:
            if self.weights is not None and index.tokens is not None and encoded.states is not None:
                scores = self.weights.scores(encoded.states[0], index.tokens, rows, seen.cosine)
                reranked = replace(seen, interaction=scores)
            elif self.cross is not None:
                scores = self._read_pairs(query, rows, seen, index, run)
                reranked = replace(seen, cross=scores)
            else:
                return seen
            if not np.isfinite(scores).all():
                raise ValueError("a score is not finite")
            run.note("rerank", len(rows), scores=named(index.catalog.ids, rows, scores))
            return reranked
        except Exception as error:  # a model that fails must cost order, never the answer
            run.degrade("rerank", f"the reranker failed ({error}); first-stage scores alone")
        return seen

    def judge(
        self,
        query: str,
        found: Evidence,
        rows: NDArray[np.int64],
        seen: Signals,
        ids: Sequence[str],
        run: Run,
        *,
        doubtful: bool,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], Abstention]:
        """The candidates, best first, with their relevance (NaN without a trained head), and whether anything fits.

        `doubtful`: that nothing fitted requests before says little of this catalog.
        """
        if self.head is None or found.cosine is None:
            if self._bundle is not None:
                if self.head is None:
                    run.degrade("relevance", "the bundle has no relevance head; the fused order stands", "standing")
                else:
                    run.degrade("relevance", "no vectors for this query; the fused order stands")
            return rows, np.full(len(rows), np.nan), Abstention()
        try:
            relevant = relevance(self.head, seen)
            if not np.isfinite(relevant).all():
                raise ValueError("a relevance is not finite")
            stance = self._stance(query, found, seen, relevant, doubtful=doubtful)
        except Exception as error:  # a model that fails must cost order, never the answer
            run.degrade("relevance", f"the head failed ({error}); the fused order stands")
            return rows, np.full(len(rows), np.nan), Abstention()
        order = np.lexsort((rows, -relevant))
        run.note("relevance", len(rows), scores=named(ids, rows[order], relevant[order]))
        return rows[order], relevant[order], stance

    def _read_pairs(
        self, query: str, rows: NDArray[np.int64], seen: Signals, index: Index, run: Run
    ) -> NDArray[np.float32]:
        """The cosines, those of the first candidates corrected by the cross-encoder, as deep as the time allows."""
        assert self._bundle is not None
        assert self.cross is not None
        read = reading_order(seen, self._bundle.manifest.rerank_depth)
        texts = [card_text(index.catalog.cards[row]) for row in rows[read]]
        deadline = time.perf_counter() + self._settings.rerank_budget_ms / 1000
        logits, reached = self.cross.scores(query, texts, deadline=deadline)
        if reached < len(read):
            run.degrade("rerank", f"the time budget ended after {reached} of {len(read)} candidates", "late")
        return corrected(seen.cosine, logits, read)

    def _stance(
        self, query: str, found: Evidence, seen: Signals, relevant: NDArray[np.float64], *, doubtful: bool
    ) -> Abstention:
        """Whether anything fits, by the abstention head where the bundle has one.

        A catalog without any past turns nobody away: the head has learned from a catalog that had one.
        """
        if self.fit is None or self._bundle is None or found.usage is None or found.usage.reach == 0.0:
            return Abstention()
        nothing = 0.0 if doubtful else found.usage.nothing
        fit = float(self.fit.probabilities(fit_features(relevant, seen, nothing))[0])
        if not np.isfinite(fit):
            raise ValueError("whether anything fits is not finite")
        short = len(split_identifier(query)) <= SHORT_GOAL_WORDS
        called = bool((seen.exact > 0).any() or (short and (seen.name >= 1.0).any()))
        manifest = self._bundle.manifest
        return abstention(fit, query, manifest.missing_below, manifest.widen_below, named=called)

"""Late interaction at serving time: the trained weights over cached card tokens, in plain arrays.

The same formula as `training.interaction`, whose parity is checked at export: tokens of both sides projected to unit
vectors, MaxSim in both directions weighted by learned token weights, added to the cosine. The card side is projected
once; a query costs two small matrix products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_NO_TOKEN = np.float32(-1e4)


@dataclass(frozen=True)
class CardTokens:
    """Projected tokens of all cards, packed: `tokens` (total, p + 1) float16, the last place the token's weight before
    the softmax; `start` (n + 1,) int: card i owns rows start[i] to start[i + 1]."""

    tokens: NDArray[np.float16]
    start: NDArray[np.int64]

    def padded(self, rows: NDArray[np.int64]) -> tuple[Floats, NDArray[np.bool_]]:
        """The tokens of some cards (k, longest, p + 1) float32 and which of them are real (k, longest)."""
        length = self.start[rows + 1] - self.start[rows]
        offsets = np.arange(int(length.max(initial=1)))
        real = offsets[None, :] < length[:, None]
        where = np.where(real, self.start[rows][:, None] + offsets[None, :], 0)
        return self.tokens[where].astype(np.float32), real


@dataclass(frozen=True)
class InteractionWeights:
    """`query`, `card` (p, d) projections; `*_weight` (d,) and `*_bias` give a token's weight; `mix` (2,)."""

    query: Floats
    query_weight: Floats
    query_bias: Floats
    card: Floats
    card_weight: Floats
    card_bias: Floats
    mix: Floats

    @classmethod
    def load(cls, path: Path) -> InteractionWeights:
        with np.load(path, allow_pickle=False) as arrays:
            return cls(**{name: arrays[name] for name in arrays.files})

    def card_tokens(self, states: Sequence[Floats]) -> CardTokens:
        """Project the token states of cards, each (length, d)."""
        start = np.concatenate([[0], np.cumsum([len(s) for s in states])]).astype(np.int64)
        width = len(self.card) + 1
        packed = [_project(s, self.card, self.card_weight, self.card_bias).astype(np.float16) for s in states]
        return CardTokens(np.concatenate(packed) if packed else np.zeros((0, width), np.float16), start)

    def scores(self, query_states: Floats, cards: CardTokens, rows: NDArray[np.int64], cosine: Floats) -> Floats:
        """Scores (k,) of the cards in `rows` for a query's token states (q, d); `cosine` (k,) is added to.

        On the scale of a cosine: with untrained weights the score is the cosine itself.
        """
        if not len(rows):
            return np.zeros(0, np.float32)
        query = _project(query_states, self.query, self.query_weight, self.query_bias)
        tokens, real = cards.padded(rows)
        similar = tokens[..., :-1] @ query[:, :-1].T
        similar = np.where(real[..., None], similar, _NO_TOKEN)
        forward = similar.max(axis=1) @ _softmax(query[:, -1])
        weight = _softmax(np.where(real, tokens[..., -1], _NO_TOKEN))
        backward = (np.maximum(similar.max(axis=2), np.float32(-1.0)) * weight).sum(axis=1)
        total: Floats = (cosine + self.mix[0] * forward + self.mix[1] * backward).astype(np.float32)
        return total


def _project(states: Floats, matrix: Floats, weight: Floats, bias: Floats) -> Floats:
    projected = states @ matrix.T
    projected /= np.maximum(np.linalg.norm(projected, axis=1, keepdims=True), np.float32(1e-12))
    return np.concatenate([projected, (states @ weight + bias)[:, None]], axis=1)


def _softmax(values: Floats) -> Floats:
    raised = np.exp(values - values.max(axis=-1, keepdims=True))
    shares: Floats = raised / raised.sum(axis=-1, keepdims=True)
    return shares

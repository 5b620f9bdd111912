"""Card vectors: what the encoder makes of a card, and of what its server says of itself, as one vector.

A request often names what a server is about ("the weather", "the repository") and not what its tool is called. A
card's vector therefore leans towards that of its server; without a text of the server it is the card text's own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from data.card_text import card_text, server_text
from data.cards import ToolCard
from serving.encoder import Encoded, Encoder
from serving.memory import unit

SERVER_WEIGHT = 0.5
"""How much a server's vector counts beside its tool's."""


def encode_cards(
    encoder: Encoder, cards: Sequence[ToolCard], max_tokens: int, *, states: bool = False, workers: int = 1
) -> Encoded:
    """Unit vectors (n, d) of cards, and with `states` the token states of their own texts, as `Encoder.encode`."""
    encoded = encoder.encode([card_text(card) for card in cards], max_tokens, states=states, workers=workers)
    said = [server_text(card) for card in cards]
    servers = [text for text in dict.fromkeys(said) if text]
    if not servers:
        return encoded
    place = {text: row for row, text in enumerate(servers)}
    of = encoder.encode(servers, max_tokens, workers=workers).vectors
    rows = np.array([row for row, text in enumerate(said) if text])
    vectors = encoded.vectors.copy()
    vectors[rows] = unit(vectors[rows] + np.float32(SERVER_WEIGHT) * of[[place[said[row]] for row in rows]])
    return Encoded(vectors, encoded.states)


def card_key(card: ToolCard) -> str:
    """The hash of all that `encode_cards` reads of a card, 32 hexadecimal characters."""
    texts = [card_text(card)] + ([server_text(card)] if server_text(card) else [])
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]

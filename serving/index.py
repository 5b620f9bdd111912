"""The index: everything about a catalog that is computed once, one row a card."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data.card_text import card_text
from data.cards import ToolCard
from data.catalog import Catalog
from data.errors import InputError
from serving.bundle import CARDS, INTERACTION, TOKENIZER, Bundle, save_arrays
from serving.encoder import Encoder
from serving.interaction import CardTokens, InteractionWeights
from serving.lexical import LexicalIndex
from serving.mask import StaticMask


@dataclass(frozen=True)
class Index:
    """Arrays by catalog row: `vectors` (n, d) unit float32 and `tokens` (where a bundle has an interaction); `risk`,
    `cost` and `p50` (n,), NaN = not declared; `domain` (n,) numbers equal domains alike."""

    catalog: Catalog
    lexical: LexicalIndex
    mask: StaticMask
    risk: NDArray[np.int8]
    cost: NDArray[np.float64]
    p50: NDArray[np.float64]
    domain: NDArray[np.int64]
    vectors: NDArray[np.float32] | None
    tokens: CardTokens | None


def build_index(
    catalog: Catalog, bundle: Bundle | None, encoder: Encoder | None, weights: InteractionWeights | None
) -> Index:
    """Index `catalog`. Cards that the bundle has met keep their stored vectors; the others are encoded now.

    Raises InputError for an empty catalog.
    """
    if not len(catalog):
        raise InputError("the catalog is empty", hint="import at least one tool")
    if bundle is None or encoder is None:
        return index_of(catalog, None, None)
    return index_of(catalog, *_encoded(catalog.cards, bundle, encoder, weights))


def index_of(catalog: Catalog, vectors: NDArray[np.float32] | None, tokens: CardTokens | None) -> Index:
    """The index of a catalog whose cards are encoded already."""
    cards = catalog.cards
    domains = {name: number for number, name in enumerate(dict.fromkeys(card.domain for card in cards))}
    return Index(
        catalog=catalog,
        lexical=LexicalIndex.build(cards),
        mask=StaticMask.build(cards),
        risk=np.array([int(card.risk) for card in cards], np.int8),
        cost=np.array([_or_nan(card.cost_usd) for card in cards]),
        p50=np.array([_or_nan(card.p50_ms) for card in cards]),
        domain=np.array([domains[card.domain] for card in cards], np.int64),
        vectors=vectors,
        tokens=tokens,
    )


def save_cards(folder: Path, catalog: Catalog, vectors: NDArray[np.float32], tokens: CardTokens | None) -> None:
    """Write what `build_index` would encode into a bundle folder that is being made."""
    arrays = {"keys": np.array([_key(card) for card in catalog]).astype("U32"), "vectors": vectors}
    if tokens is not None:
        arrays |= {"tokens": tokens.tokens, "start": tokens.start}
    save_arrays(folder / CARDS, arrays)


def _encoded(
    cards: tuple[ToolCard, ...], bundle: Bundle, encoder: Encoder, weights: InteractionWeights | None
) -> tuple[NDArray[np.float32], CardTokens | None]:
    with np.load(bundle.file(CARDS), allow_pickle=False) as stored:
        place = {key: row for row, key in enumerate(stored["keys"].tolist())}
        old_vectors = stored["vectors"]
        old = CardTokens(stored["tokens"], stored["start"]) if weights is not None else None
    known = np.array([place.get(_key(card), -1) for card in cards], np.int64)
    missing = np.flatnonzero(known < 0)
    vectors = np.zeros((len(cards), encoder.dimension), np.float32)
    vectors[known >= 0] = old_vectors[known[known >= 0]]
    fresh: list[NDArray[np.float16]] = []
    if len(missing):
        texts = [card_text(cards[row]) for row in missing]
        encoded = encoder.encode(
            texts, bundle.manifest.max_card_tokens, states=weights is not None, workers=os.cpu_count() or 1
        )
        vectors[missing] = encoded.vectors
        if weights is not None and encoded.states is not None:
            made = weights.card_tokens(encoded.states)
            fresh = [made.tokens[made.start[i] : made.start[i + 1]] for i in range(len(missing))]
    if old is None:
        return vectors, None
    waiting = iter(fresh)
    parts = [next(waiting) if row < 0 else old.tokens[old.start[row] : old.start[row + 1]] for row in known.tolist()]
    start = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return vectors, CardTokens(np.concatenate(parts), start)


def _key(card: ToolCard) -> str:
    return hashlib.sha256(card_text(card).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def load_models(bundle: Bundle, threads: int) -> tuple[Encoder, InteractionWeights | None]:
    """The encoder of a bundle, and the weights of its interaction where it has one."""
    encoder = Encoder(bundle.file(bundle.manifest.retriever_graph), bundle.file(TOKENIZER), threads=threads)
    return encoder, InteractionWeights.load(bundle.file(INTERACTION)) if bundle.has(INTERACTION) else None

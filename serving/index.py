"""The index: everything about a catalog that is computed once, one row a card."""

from __future__ import annotations

import io
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from data.cards import ToolCard
from data.catalog import Catalog
from data.errors import BundleError, InputError
from serving.bundle import CARDS, INTERACTION, TOKENIZER, Bundle, save_arrays
from serving.card_vectors import card_key, encode_cards
from serving.encoder import Encoder
from serving.interaction import CardTokens, InteractionWeights
from serving.lexical import LexicalIndex
from serving.mask import StaticMask
from serving.ragged import appended, taken, woven

_LOG = logging.getLogger("toolcrib.index")


@dataclass(frozen=True)
class Index:
    """Arrays by catalog row: `vectors` (n, d) unit float32 and `tokens` (where a bundle has an interaction); `risk`,
    `cost` and `p50` (n,), NaN = not declared; `domain` (n,) numbers equal domains alike. `encoded_by` is the version
    of the bundle that the vectors and tokens come from; `keys` the hashes of the texts that were encoded. `advertised`:
    connections that a card may be told to need."""

    catalog: Catalog
    lexical: LexicalIndex
    mask: StaticMask
    risk: NDArray[np.int8]
    cost: NDArray[np.float64]
    p50: NDArray[np.float64]
    domain: NDArray[np.int64]
    vectors: NDArray[np.float32] | None
    tokens: CardTokens | None
    encoded_by: str = ""
    keys: tuple[str, ...] = ()
    advertised: frozenset[str] = frozenset()


def build_index(
    catalog: Catalog,
    bundle: Bundle | None,
    encoder: Encoder | None,
    weights: InteractionWeights | None,
    earlier: Index | None = None,
) -> Index:
    """Index `catalog`. Cards that the bundle has met keep their stored vectors; the others are encoded now.

    What an `earlier` index holds of an unchanged card is taken from there, its vectors if the same bundle made them;
    the index is the same as without. Raises InputError for an empty catalog.
    """
    if not len(catalog):
        raise InputError("the catalog is empty", hint="import at least one tool")
    kept = None if earlier is None else np.array(catalog.rows_in(earlier.catalog), np.int64)
    lexical = LexicalIndex.build(catalog.cards, earlier.lexical if earlier is not None else None, kept)
    if bundle is None or encoder is None:
        return _index(catalog, lexical, _Encoded(None, None))
    before = None if earlier is None or earlier.encoded_by != bundle.version else earlier
    return _index(catalog, lexical, _encoded(catalog.cards, bundle, encoder, weights, before, kept), bundle.version)


def index_of(catalog: Catalog, vectors: NDArray[np.float32] | None, tokens: CardTokens | None) -> Index:
    """The index of a catalog whose cards are encoded already."""
    return _index(catalog, LexicalIndex.build(catalog.cards), _Encoded(vectors, tokens))


def save_cards(folder: Path, catalog: Catalog, vectors: NDArray[np.float32], tokens: CardTokens | None) -> None:
    """Write what `build_index` would encode into a bundle folder that is being made."""
    arrays = {"keys": np.array([card_key(card) for card in catalog]).astype("U32"), "vectors": vectors}
    if tokens is not None:
        arrays |= {"tokens": tokens.tokens, "start": tokens.start}
    save_arrays(folder / CARDS, arrays)


class _Encoded(NamedTuple):
    """What the encoder made of every card, and the hash of the text that it read."""

    vectors: NDArray[np.float32] | None
    tokens: CardTokens | None
    keys: tuple[str, ...] = ()


def _index(catalog: Catalog, lexical: LexicalIndex, encoded: _Encoded, encoded_by: str = "") -> Index:
    cards = catalog.cards
    domains = {name: number for number, name in enumerate(dict.fromkeys(card.domain for card in cards))}
    return Index(
        catalog=catalog,
        lexical=lexical,
        mask=StaticMask.build(cards),
        risk=np.array([int(card.risk) for card in cards], np.int8),
        cost=np.array([_or_nan(card.cost_usd) for card in cards]),
        p50=np.array([_or_nan(card.p50_ms) for card in cards]),
        domain=np.array([domains[card.domain] for card in cards], np.int64),
        vectors=encoded.vectors,
        tokens=encoded.tokens,
        encoded_by=encoded_by,
        keys=encoded.keys,
        advertised=frozenset(name for card in cards if card.advertise for name in card.requires.connections),
    )


def _encoded(
    cards: tuple[ToolCard, ...],
    bundle: Bundle,
    encoder: Encoder,
    weights: InteractionWeights | None,
    earlier: Index | None,
    kept: NDArray[np.int64] | None,
) -> _Encoded:
    """Vectors and tokens by text: of the earlier index, else stored in the bundle, else encoded now."""
    if earlier is None or kept is None:
        keys = tuple(card_key(card) for card in cards)
        place: dict[str, int] = {}
        vectors, tokens = np.zeros((0, encoder.dimension), np.float32), _no_tokens(weights)
    else:
        keys = tuple(earlier.keys[row] if row >= 0 else card_key(cards[i]) for i, row in enumerate(kept.tolist()))
        place = {key: row for row, key in enumerate(earlier.keys)}
        vectors, tokens = earlier.vectors, earlier.tokens  # type: ignore[assignment]
    wanted = [key for key in dict.fromkeys(keys) if key not in place]
    if wanted:
        text_of = dict(zip(reversed(keys), reversed(cards), strict=True))
        made = _stored_or_made([text_of[key] for key in wanted], wanted, bundle, encoder, weights, idle=earlier is None)
        place |= {key: len(vectors) + at for at, key in enumerate(wanted)}
        vectors = np.concatenate([vectors, made[0]])
        if tokens is not None and made[1] is not None:
            tokens = _joined(tokens, made[1])
    rows = np.array([place[key] for key in keys], np.int64)
    if tokens is not None:
        where, start = taken(tokens.start, rows)
        tokens = CardTokens(tokens.tokens[where], start)
    return _Encoded(vectors[rows], tokens, keys)


def _stored_or_made(
    cards: list[ToolCard],
    keys: list[str],
    bundle: Bundle,
    encoder: Encoder,
    weights: InteractionWeights | None,
    *,
    idle: bool,
) -> tuple[NDArray[np.float32], CardTokens | None]:
    """Vectors and tokens of cards with different texts. Where nothing is served yet (`idle`), all cores encode."""
    stored = _stored(keys, bundle, encoder, weights, must=idle)
    known = np.array([stored.place.get(key, -1) for key in keys], np.int64)
    missing = np.flatnonzero(known < 0)
    new = [cards[row] for row in missing.tolist()]
    workers = (os.cpu_count() or 1) if idle else 1
    limit = bundle.manifest.max_card_tokens
    encoded = encode_cards(encoder, new, limit, states=weights is not None, workers=workers)
    rows = woven(known, len(stored.vectors))
    vectors = np.concatenate([stored.vectors, encoded.vectors])[rows]
    if weights is None or stored.tokens is None or encoded.states is None:
        return vectors, None
    both = _joined(stored.tokens, weights.card_tokens(encoded.states))
    where, start = taken(both.start, rows)
    return vectors, CardTokens(both.tokens[where], start)


class _Stored(NamedTuple):
    """What training has encoded already, by the hash of the text."""

    place: dict[str, int]
    vectors: NDArray[np.float32]
    tokens: CardTokens | None


def _stored(
    keys: list[str], bundle: Bundle, encoder: Encoder, weights: InteractionWeights | None, *, must: bool
) -> _Stored:
    """What the bundle's file has where it has any of `keys`, else nothing. A bundle is loaded whole or not at all
    (`must`); but one that serves already may have been overwritten since, and cards can be encoded without it."""
    nothing = _Stored({}, np.zeros((0, encoder.dimension), np.float32), _no_tokens(weights))
    if bundle.encoded.isdisjoint(keys):
        return nothing
    try:
        content = bundle.read(CARDS)
    except BundleError:
        if must:
            raise
        _LOG.warning("the bundle that serves is not on disk any more as it was; changed cards are encoded anew")
        return nothing
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        place = {key: row for row, key in enumerate(arrays["keys"].tolist())}
        tokens = CardTokens(arrays["tokens"], arrays["start"]) if weights is not None else None
        return _Stored(place, arrays["vectors"], tokens)


def _joined(first: CardTokens, second: CardTokens) -> CardTokens:
    return CardTokens(np.concatenate([first.tokens, second.tokens]), appended(first.start, second.start))


def _no_tokens(weights: InteractionWeights | None) -> CardTokens | None:
    return None if weights is None else weights.card_tokens([])


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def load_models(bundle: Bundle, threads: int) -> tuple[Encoder, InteractionWeights | None]:
    """The encoder of a bundle, and the weights of its interaction where it has one."""
    encoder = Encoder(bundle.file(bundle.manifest.retriever_graph), bundle.file(TOKENIZER), threads=threads)
    return encoder, InteractionWeights.load(bundle.file(INTERACTION)) if bundle.has(INTERACTION) else None

"""Card vectors: the text of a card's server draws its vector near, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
from tiny import Trained

from data.card_text import card_text, server_text
from data.cards import ToolCard
from data.catalog import Catalog
from serving.bundle import RETRIEVER, TOKENIZER, load_bundle
from serving.card_vectors import SERVER_WEIGHT, card_key, encode_cards
from serving.encoder import Encoder
from serving.index import build_index, load_models

MAX = 16


@pytest.fixture(scope="module")
def encoder(trained: Trained) -> Encoder:
    return Encoder(trained.bundle / RETRIEVER, trained.bundle / TOKENIZER)


def plain() -> list[ToolCard]:
    return list(tiny.catalog().cards[:4])


def of_server(card: ToolCard, text: str) -> ToolCard:
    return card.model_copy(update={"server_description": text})


def test_without_a_servers_text_a_cards_vector_is_that_of_its_text(encoder: Encoder) -> None:
    cards = plain()
    expected = encoder.encode([card_text(card) for card in cards], MAX)
    np.testing.assert_array_equal(encode_cards(encoder, cards, MAX).vectors, expected.vectors)


def test_a_servers_text_draws_its_own_tools_near_and_leaves_the_others(encoder: Encoder) -> None:
    first, *others = plain()
    said = of_server(first, "Weather for sailors")
    vectors = encode_cards(encoder, [said, *others], MAX).vectors
    alone = encode_cards(encoder, [first, *others], MAX).vectors
    server = encoder.encode([server_text(said)], MAX).vectors[0]
    mixed = alone[0] + SERVER_WEIGHT * server
    np.testing.assert_allclose(vectors[0], mixed / np.linalg.norm(mixed), atol=1e-5)
    assert vectors[0] @ server > alone[0] @ server
    np.testing.assert_array_equal(vectors[1:], alone[1:])


def test_token_states_are_those_of_the_cards_own_text(encoder: Encoder) -> None:
    card = plain()[0]
    ours = encode_cards(encoder, [of_server(card, "Weather")], MAX, states=True).states
    theirs = encoder.encode([card_text(card)], MAX, states=True).states
    assert ours is not None
    assert theirs is not None
    np.testing.assert_array_equal(ours[0], theirs[0])


def test_the_key_changes_with_either_text_and_with_nothing_else() -> None:
    card = plain()[0]
    said = of_server(card, "Weather")
    assert card_key(card) == card_key(card.model_copy(update={"owner": "somebody", "cost_usd": 1.0}))
    keys = {card_key(one) for one in (card, said, of_server(card, "Tides"), said.model_copy(update={"name": "other"}))}
    assert len(keys) == 4


def test_the_index_holds_these_vectors(trained: Trained) -> None:
    catalog = Catalog([of_server(card, "Letters and post") for card in tiny.catalog()])
    bundle = load_bundle(trained.bundle)
    served, weights = load_models(bundle, 1)
    vectors = build_index(catalog, bundle, served, weights).vectors
    assert vectors is not None
    expected = encode_cards(served, catalog.cards, bundle.manifest.max_card_tokens).vectors
    np.testing.assert_allclose(vectors, expected, atol=1e-6)

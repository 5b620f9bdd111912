"""The index: what was encoded in training is not encoded again, what is new is encoded now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import tiny
from tiny import Trained

from data.card_text import card_text
from data.cards import ToolCard
from data.catalog import Catalog
from data.errors import InputError
from serving.bundle import Bundle, load_bundle
from serving.encoder import Encoded, Encoder
from serving.index import Index, build_index, load_models
from serving.interaction import InteractionWeights

Models = tuple[Bundle, Encoder, InteractionWeights | None]


@pytest.fixture
def models(trained: Trained) -> Models:
    bundle = load_bundle(trained.bundle)
    return (bundle, *load_models(bundle, 1))


def count_texts(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are encoded from now on."""
    seen: list[str] = []
    encode = encoder.encode

    def counted(texts: Sequence[str], max_tokens: int, *, states: bool = False, workers: int = 1) -> Encoded:
        seen.extend(texts)
        return encode(texts, max_tokens, states=states, workers=workers)

    monkeypatch.setattr(encoder, "encode", counted)
    return seen


def tokens_of(index: Index, tool_id: str) -> np.ndarray:
    assert index.tokens is not None
    row = index.catalog.row[tool_id]
    return index.tokens.tokens[index.tokens.start[row] : index.tokens.start[row + 1]]


def vector_of(index: Index, tool_id: str) -> np.ndarray:
    assert index.vectors is not None
    return np.asarray(index.vectors[index.catalog.row[tool_id]])


def test_the_catalog_of_the_training_is_not_encoded_again(
    trained: Trained, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = count_texts(models[1], monkeypatch)
    index = build_index(trained.catalog, *models)
    assert seen == []
    assert index.vectors is not None
    assert index.vectors.shape == (len(trained.catalog), 32)


def test_a_new_and_a_changed_card_are_encoded_and_the_others_keep_their_vectors(
    trained: Trained, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = build_index(trained.catalog, *models)
    cards = list(trained.catalog)
    changed = cards[0].model_copy(update={"description": "Forecast the weather of a city"})
    new = ToolCard(tool_id="files.write_file", name="write_file", description="Write the content of a file")
    seen = count_texts(models[1], monkeypatch)
    index = build_index(Catalog([new, changed, *reversed(cards[1:])]), *models)
    assert len(seen) == 2
    assert not np.allclose(vector_of(index, changed.tool_id), vector_of(whole, changed.tool_id))
    for card in cards[1:]:
        np.testing.assert_array_equal(vector_of(index, card.tool_id), vector_of(whole, card.tool_id))
        np.testing.assert_array_equal(tokens_of(index, card.tool_id), tokens_of(whole, card.tool_id))
    assert len(tokens_of(index, new.tool_id)) > 2
    np.testing.assert_allclose(np.linalg.norm(vector_of(index, new.tool_id)), 1.0, atol=1e-5)


def test_a_changed_rule_is_no_new_text(trained: Trained, models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    cheap = Catalog(card.model_copy(update={"cost_usd": 0.0, "core": False}) for card in trained.catalog)
    seen = count_texts(models[1], monkeypatch)
    build_index(cheap, *models)
    assert seen == []


def test_stored_vectors_are_what_the_served_graph_says_of_each_card(trained: Trained, models: Models) -> None:
    bundle, encoder, weights = models
    index = build_index(trained.catalog, bundle, encoder, weights)
    for card in trained.catalog:
        now = encoder.encode([card_text(card)], bundle.manifest.max_card_tokens, states=True)
        np.testing.assert_allclose(vector_of(index, card.tool_id), now.vectors[0], atol=1e-5)
        assert weights is not None
        assert now.states is not None
        fresh = weights.card_tokens(now.states).tokens
        np.testing.assert_allclose(tokens_of(index, card.tool_id), fresh, atol=2e-3)


def test_an_empty_catalog_is_refused(models: Models) -> None:
    with pytest.raises(InputError, match="the catalog is empty"):
        build_index(Catalog([]), *models)


def test_what_a_card_does_not_declare_is_not_a_number() -> None:
    catalog = Catalog(
        [ToolCard(tool_id="a", name="a", cost_usd=0.0), ToolCard(tool_id="b", name="b", domain="x", p50_ms=5.0)]
    )
    index = build_index(catalog, None, None, None)
    assert index.cost[0] == 0.0
    assert np.isnan(index.cost[1])
    assert np.isnan(index.p50[0])
    assert index.domain[0] != index.domain[1]
    assert (index.vectors, index.tokens) == (None, None)


def test_without_an_interaction_no_tokens_are_kept(trained: Trained, models: Models) -> None:
    index = build_index(trained.catalog, models[0], models[1], None)
    assert index.tokens is None
    assert index.vectors is not None


def test_a_wholly_foreign_catalog_is_encoded_whole(models: Models, tmp_path: Path) -> None:
    foreign = Catalog([ToolCard(tool_id=f"x.t{i}", name=f"t{i}", description=tiny.CORE) for i in range(3)])
    index = build_index(foreign, *models)
    assert index.vectors is not None
    assert np.isfinite(index.vectors).all()
    assert index.tokens is not None
    assert len(index.tokens.start) == 4

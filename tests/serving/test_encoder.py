"""The encoder: a text's result is its own, whatever else is encoded beside it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import tiny
from tiny import Trained

from data.errors import BundleError
from serving.bundle import RETRIEVER, TOKENIZER
from serving.encoder import Encoder, session

MAX = 16


@pytest.fixture(scope="module")
def encoder(trained: Trained) -> Encoder:
    return Encoder(trained.bundle / RETRIEVER, trained.bundle / TOKENIZER)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    made = [goal for card in tiny.catalog() for goal in tiny.goals(card.tool_id)][:40]
    return ["email", *made, "send the email for anna " * 9]


def test_vectors_have_length_one_and_states_a_row_a_token(encoder: Encoder, texts: list[str]) -> None:
    encoded = encoder.encode(texts, MAX, states=True)
    assert encoded.vectors.shape == (len(texts), encoder.dimension)
    np.testing.assert_allclose(np.linalg.norm(encoded.vectors, axis=1), 1.0, atol=1e-5)
    assert encoded.states is not None
    assert [len(states) for states in encoded.states] == [len(encoder.token_ids(text, MAX)) for text in texts]


def test_a_text_alone_equals_the_same_text_among_others_longer_and_shorter(encoder: Encoder, texts: list[str]) -> None:
    together = encoder.encode(texts, MAX, states=True)
    assert together.states is not None
    for place in (0, 1, len(texts) // 2, len(texts) - 1):
        alone = encoder.encode([texts[place]], MAX, states=True)
        assert alone.states is not None
        np.testing.assert_allclose(alone.vectors[0], together.vectors[place], atol=1e-5)
        np.testing.assert_allclose(alone.states[0], together.states[place], atol=1e-4)


def test_the_order_of_texts_does_not_matter(encoder: Encoder, texts: list[str]) -> None:
    order = random.Random(0).sample(range(len(texts)), len(texts))
    shuffled = encoder.encode([texts[place] for place in order], MAX).vectors
    np.testing.assert_allclose(shuffled, encoder.encode(texts, MAX).vectors[order], atol=1e-5)


def test_a_long_text_is_cut_at_the_limit_with_both_markers_kept(encoder: Encoder) -> None:
    short, long = encoder.token_ids("email", MAX), encoder.token_ids("email " * 500, MAX)
    assert len(long) == MAX
    assert (long[0], long[-1]) == (short[0], short[-1])
    tail = encoder.encode(["email " * 500, "email " * 500 + "about weather"], MAX).vectors
    np.testing.assert_allclose(tail[0], tail[1], atol=1e-6)


@pytest.mark.parametrize("text", ["", "   ", "日本語", "\u200b", "a" * 5000, "0f" * 3000])
def test_any_text_has_a_vector(encoder: Encoder, text: str) -> None:
    encoded = encoder.encode([text, "email"], MAX, states=True)
    assert np.isfinite(encoded.vectors).all()
    assert encoded.states is not None
    assert len(encoded.states[0]) <= MAX


def test_no_texts_have_no_vectors(encoder: Encoder) -> None:
    encoded = encoder.encode([], MAX, states=True)
    assert encoded.vectors.shape == (0, encoder.dimension)
    assert encoded.states == []


def test_special_tokens_do_not_count_as_tokens_of_a_text(encoder: Encoder) -> None:
    assert encoder.count("") == 0
    assert encoder.count("send the email") == len(encoder.token_ids("send the email", MAX)) - 2


def test_a_file_that_is_no_graph_is_named(tmp_path: Path) -> None:
    (tmp_path / "retriever.onnx").write_bytes(b"\x00" * 64)
    with pytest.raises(BundleError, match=r"retriever\.onnx"):
        session(tmp_path / "retriever.onnx", 1)

"""The interaction in plain arrays: a card's score is its own, and untrained weights change nothing."""

from __future__ import annotations

import numpy as np
import pytest

from serving.interaction import CardTokens, InteractionWeights

D, P = 12, 6


def weights(mix: tuple[float, float], seed: int = 0) -> InteractionWeights:
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    return InteractionWeights(
        query=draw(P, D),
        query_weight=draw(D),
        query_bias=draw(1),
        card=draw(P, D),
        card_weight=draw(D),
        card_bias=draw(1),
        mix=np.array(mix, np.float32),
    )


def states(*lengths: int, seed: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(length, D)).astype(np.float32) for length in lengths]


QUERY = states(5, seed=9)[0]
COSINE = np.array([0.1, 0.5, -0.2, 0.3], np.float32)
ROWS = np.arange(4)


def test_without_a_mix_the_score_is_the_cosine() -> None:
    model = weights((0.0, 0.0))
    cards = model.card_tokens(states(3, 9, 1, 4))
    np.testing.assert_array_equal(model.scores(QUERY, cards, ROWS, COSINE), COSINE)


def test_a_card_scores_the_same_alone_as_beside_longer_ones() -> None:
    model = weights((0.7, 0.4))
    cards = model.card_tokens(states(3, 40, 1, 4))
    together = model.scores(QUERY, cards, ROWS, COSINE)
    for row in ROWS:
        alone = model.scores(QUERY, cards, np.array([row]), COSINE[[row]])
        assert alone[0] == pytest.approx(float(together[row]), abs=1e-5)


def test_scores_follow_the_order_of_the_rows() -> None:
    model = weights((0.7, 0.4))
    cards = model.card_tokens(states(3, 9, 1, 4))
    order = np.array([2, 0, 3, 1])
    forward = model.scores(QUERY, cards, ROWS, COSINE)
    np.testing.assert_allclose(model.scores(QUERY, cards, order, COSINE[order]), forward[order], atol=1e-6)


def test_the_score_is_maxsim_in_both_directions_weighted_by_token() -> None:
    model = weights((0.5, 0.25))
    card = states(4, seed=3)[0]

    def side(x: np.ndarray, matrix: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        projected = x @ matrix.T
        raw = np.exp(x @ weight + bias)
        return projected / np.linalg.norm(projected, axis=1, keepdims=True), raw / raw.sum()

    q, q_share = side(QUERY, model.query, model.query_weight, model.query_bias)
    c, c_share = side(card, model.card, model.card_weight, model.card_bias)
    similar = q @ c.T
    expected = 0.1 + 0.5 * (similar.max(axis=1) * q_share).sum() + 0.25 * (similar.max(axis=0) * c_share).sum()
    got = model.scores(QUERY, model.card_tokens([card]), np.array([0]), np.array([0.1], np.float32))
    assert got[0] == pytest.approx(expected, abs=2e-3), "cards are kept in 16 bits"


def test_no_rows_have_no_scores_and_no_cards_no_tokens() -> None:
    model = weights((0.5, 0.5))
    assert model.scores(QUERY, model.card_tokens(states(3)), np.zeros(0, np.int64), COSINE[:0]).shape == (0,)
    empty = model.card_tokens([])
    assert empty.tokens.shape == (0, P + 1)
    assert empty.start.tolist() == [0]


def test_padding_marks_which_tokens_are_real() -> None:
    cards = CardTokens(np.arange(12, dtype=np.float16).reshape(6, 2), np.array([0, 1, 4, 6]))
    tokens, real = cards.padded(np.array([1, 0]))
    assert tokens.shape == (2, 3, 2)
    assert real.tolist() == [[True, True, True], [True, False, False]]
    assert tokens[0].tolist() == [[2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    assert tokens[1, 0].tolist() == [0.0, 1.0]

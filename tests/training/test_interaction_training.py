"""The interaction learned: parity with serving, a start that cannot hurt, and stopping early."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from serving.bundle import INTERACTION, save_arrays
from serving.cross_encoder import COSINE_SCALE
from serving.interaction import CardTokens, InteractionWeights
from training import interaction as interactions
from training.interaction import (
    Interaction,
    InteractionExample,
    InteractionSettings,
    as_arrays,
    held_out_mrr,
    train_interaction,
)

D = 16
RNG = np.random.default_rng(0)
CARDS = [RNG.normal(size=(length, D)).astype(np.float32) for length in (3, 9, 1, 6, 5, 7, 2, 4)]


def example(number: int) -> InteractionExample:
    """A request whose token states resemble those of its right card."""
    rng = np.random.default_rng(100 + number)
    right = number % len(CARDS)
    states = CARDS[right][rng.integers(0, len(CARDS[right]), 4)] + 0.3 * rng.normal(size=(4, D))
    rows = np.arange(len(CARDS))
    cosine = rng.normal(scale=0.1, size=len(CARDS)).astype(np.float32)
    return InteractionExample(states.astype(np.float32), rows, cosine, rows == right)


EXAMPLES = [example(number) for number in range(48)]
SETTINGS = InteractionSettings(projected=8, epochs=4, learning_rate=1e-2)


def random_model() -> Interaction:
    torch.manual_seed(1)
    model = Interaction(D, 8)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    return model


def test_serving_in_plain_arrays_equals_training(tmp_path: Path) -> None:
    model = random_model()
    save_arrays(tmp_path / INTERACTION, as_arrays(model))
    weights = InteractionWeights.load(tmp_path / INTERACTION)
    states = [torch.from_numpy(card) for card in CARDS]
    packed = weights.card_tokens(CARDS)
    with torch.no_grad():
        exact = np.concatenate([model.card(card).numpy() for card in states])
    np.testing.assert_allclose(packed.tokens.astype(np.float32), exact, atol=4e-3)
    for one in EXAMPLES[:8]:
        with torch.no_grad():
            trained = interactions._scores(model, states, one).numpy() / COSINE_SCALE
        whole = CardTokens(exact, packed.start)
        np.testing.assert_allclose(weights.scores(one.states, whole, one.candidates, one.cosine), trained, atol=1e-4)
        served = weights.scores(one.states, packed, one.candidates, one.cosine)
        np.testing.assert_allclose(served, trained, atol=5e-3)


def test_before_training_the_score_is_the_cosine() -> None:
    model = Interaction(D, 8)
    scores = interactions._scores(model, [torch.from_numpy(card) for card in CARDS], EXAMPLES[0]).detach().numpy()
    np.testing.assert_allclose(scores / COSINE_SCALE, EXAMPLES[0].cosine, atol=1e-5)


def test_training_finds_what_the_cosine_does_not() -> None:
    model, curve = train_interaction(CARDS, EXAMPLES[:32], EXAMPLES[32:], SETTINGS)
    assert max(curve) > curve[0] + 0.2
    states = [torch.from_numpy(card) for card in CARDS]
    assert held_out_mrr(model, states, EXAMPLES[32:]) == pytest.approx(max(curve))


def test_the_best_epoch_is_kept_and_patience_ends_a_training(monkeypatch: pytest.MonkeyPatch) -> None:
    said = iter([0.5, 0.7, 0.6, 0.65, 0.9])
    kept: list[torch.Tensor] = []

    def told(model: Interaction, *_: object) -> float:
        kept.append(model.mix.detach().clone())
        return next(said)

    monkeypatch.setattr(interactions, "held_out_mrr", told)
    model, curve = train_interaction(
        CARDS, EXAMPLES[:16], EXAMPLES[16:20], InteractionSettings(projected=8, epochs=9, patience=2)
    )
    assert curve == [0.5, 0.7, 0.6, 0.65], "two epochs without a gain end it"
    torch.testing.assert_close(model.mix, kept[1])
    assert not torch.equal(kept[1], kept[3])


def test_a_training_that_only_hurts_leaves_the_cosine(monkeypatch: pytest.MonkeyPatch) -> None:
    said = iter([0.9, 0.8, 0.7])
    monkeypatch.setattr(interactions, "held_out_mrr", lambda *_: next(said))
    model, _ = train_interaction(CARDS, EXAMPLES[:16], EXAMPLES[16:], InteractionSettings(projected=8, patience=2))
    assert not model.mix.detach().numpy().any()


def test_the_same_seed_gives_the_same_weights() -> None:
    one, again = (as_arrays(train_interaction(CARDS, EXAMPLES[:16], EXAMPLES[16:], SETTINGS)[0]) for _ in "ab")
    for name, value in one.items():
        np.testing.assert_array_equal(value, again[name])


def test_without_examples_the_rank_is_nothing() -> None:
    assert held_out_mrr(Interaction(D, 8), [], []) == 0.0

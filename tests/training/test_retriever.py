"""The retriever: every pair is seen, requests move to their cards, and what is frozen stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from sentence_transformers import SentenceTransformer
from tiny import Trained
from transformers import TrainerCallback

from data.card_text import card_text
from training.retriever import Pair, RetrieverSettings, freeze, train_retriever

CARDS = {card.tool_id: card_text(card) for card in tiny.catalog()}


class Seen(TrainerCallback):  # type: ignore[misc]
    """How many steps a training took, and whether it said anything on the way."""

    def __init__(self) -> None:
        self.steps = 0

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.steps = state.global_step


@pytest.fixture
def model(trained: Trained) -> SentenceTransformer:
    return SentenceTransformer(str(trained.base), device="cpu")


def pairs(tool_ids: Sequence[str], each: int = 6, negatives: tuple[str, ...] = ()) -> list[Pair]:
    return [
        Pair(goal, CARDS[tool], frozenset([tool, goal]), negatives)
        for tool in tool_ids
        for goal in tiny.goals(tool)[:each]
    ]


def test_with_few_tools_every_pair_is_still_seen_in_every_epoch(model: SentenceTransformer) -> None:
    seen = Seen()
    two_tools = pairs(["mail.send_message", "files.read_file"])
    train_retriever(model, two_tools, RetrieverSettings(epochs=2, batch_size=12), [seen])
    assert seen.steps == 2 * 6, "a batch holds each tool once: twelve pairs of two tools are six batches"


def test_requests_move_to_the_cards_that_served_them(model: SentenceTransformer) -> None:
    tools = list(tiny.catalog().ids)[:6]
    goals = [tiny.goals(tool)[6] for tool in tools]  # the last request of each is not trained on

    def right_share() -> float:
        similar = model.encode(goals) @ model.encode([CARDS[tool] for tool in tools]).T
        return float(np.mean(similar.argmax(axis=1) == np.arange(len(tools))))

    before = right_share()
    train_retriever(model, pairs(tools), RetrieverSettings(epochs=6, batch_size=6, learning_rate=2e-3))
    assert right_share() > before
    assert right_share() >= 0.8


def test_word_embeddings_and_frozen_layers_stay_as_they_were(model: SentenceTransformer) -> None:
    before = {name: value.clone() for name, value in model[0].auto_model.state_dict().items()}
    train_retriever(model, pairs(["mail.send_message", "files.read_file"]), RetrieverSettings(freeze_layers=1))
    after = model[0].auto_model.state_dict()
    changed = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert not {name for name in changed if "word_embeddings" in name or "layer.0." in name}
    assert any("layer.1." in name for name in changed)


def test_freezing_no_layer_freezes_the_words_alone(model: SentenceTransformer) -> None:
    freeze(model, 0)
    fixed = [name for name, p in model[0].auto_model.named_parameters() if not p.requires_grad]
    assert fixed == ["embeddings.word_embeddings.weight"]


def test_hard_negatives_take_part(trained: Trained) -> None:
    def moved(negatives: tuple[str, ...]) -> np.ndarray:
        model = SentenceTransformer(str(trained.base), device="cpu")
        train_retriever(model, pairs(["mail.send_message"], 4, negatives), RetrieverSettings(epochs=2, batch_size=4))
        return np.asarray(model.encode(["email"]))

    assert not np.allclose(moved(()), moved((CARDS["files.read_file"],)))

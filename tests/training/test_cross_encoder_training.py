"""The cross-encoder learns from pairs, its mistakes are mined with care, and its graph says what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers.cross_encoder import CrossEncoder
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel, BertTokenizerFast, DistilBertConfig, DistilBertModel

from serving.cross_encoder import CrossEncoderReranker, bare
from training.cross_encoder import (
    CandidatesLoss,
    CrossEncoderSettings,
    ScoredPair,
    export_cross_encoder,
    mistakes,
    train_cross_encoder,
)
from training.pair_model import pair_logits

TOPICS = {
    "weather": ("rain", "sun", "storm"),
    "music": ("song", "album", "band"),
    "travel": ("hotel", "flight", "train"),
    "money": ("bank", "loan", "tax"),
}
CARDS = {topic: f"{topic} tool: finds {' and '.join(words)}" for topic, words in TOPICS.items()}
FILLER = ("tool", "finds", "and", "please", "show", "me", "the", "a", ":")
TINY = CrossEncoderSettings(
    layers=2, epochs=24, batch_size=4, learning_rate=5e-4, max_pair_tokens=48, max_pairs=1_000, seed=3
)


def a_vocabulary() -> dict[str, int]:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *FILLER, *TOPICS, *(w for ws in TOPICS.values() for w in ws)]
    return {word: i for i, word in enumerate(words)}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny untrained BERT with three layers and a tokenizer of whole words."""
    folder = tmp_path_factory.mktemp("base")
    vocabulary = a_vocabulary()
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.2,
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizerFast(vocab=vocabulary).save_pretrained(folder)
    return folder


def toy_pairs() -> list[ScoredPair]:
    return [
        ScoredPair(f"please show me the {word}", CARDS[other], float(other == topic))
        for topic, words in TOPICS.items()
        for word in words
        for other in TOPICS
    ]


def logits(model: CrossEncoder, query: str, cards: list[str]) -> list[float]:
    with torch.inference_mode():
        scores: list[float] = pair_logits(
            model, bare(model.tokenizer.backend_tokenizer), [(query, cards)], int(model.max_seq_length)
        ).tolist()
    return scores


def share_right(model: CrossEncoder) -> float:
    asked = [(f"please show me the {word}", topic) for topic, words in TOPICS.items() for word in words]
    topics = list(TOPICS)
    right = [topics[int(np.argmax(logits(model, q, [CARDS[t] for t in topics])))] == topic for q, topic in asked]
    return sum(right) / len(right)


@pytest.fixture(scope="module")
def trained(base: Path) -> CrossEncoder:
    return train_cross_encoder(base, toy_pairs(), TINY)


@pytest.fixture(scope="module")
def untrained(base: Path) -> CrossEncoder:
    return train_cross_encoder(base, toy_pairs(), CrossEncoderSettings(learning_rate=0.0, max_pair_tokens=48))


def test_training_ranks_the_right_card_first(trained: CrossEncoder, untrained: CrossEncoder) -> None:
    assert share_right(untrained) < 0.7
    assert share_right(trained) > 0.9


def test_a_right_card_scores_above_zero_and_a_wrong_one_below(trained: CrossEncoder) -> None:
    music, money = logits(trained, "please show me the song", [CARDS["music"], CARDS["money"]])
    assert music > 0.0 > money


def cosine_read(model: CrossEncoder, query: str, card: str) -> float:
    ids = model.tokenizer(query, card, return_tensors="pt")
    with torch.inference_mode():
        states = model[0].model(**ids).last_hidden_state[0].numpy()
    types = ids["token_type_ids"][0].numpy()
    asked, offered = states[types == 0].mean(0), states[types == 1].mean(0)
    return float(asked @ offered / np.linalg.norm(asked) / np.linalg.norm(offered))


def test_first_scores_rank_by_the_cosine_of_what_was_read_of_each_side(untrained: CrossEncoder) -> None:
    query, cards = "show me the rain", list(CARDS.values())
    scores = np.array(logits(untrained, query, cards))
    cosines = np.array([cosine_read(untrained, query, card) for card in cards])
    assert scores - scores[0] == pytest.approx(20.0 * (cosines - cosines[0]), abs=1e-3)


def test_first_scores_are_zero_on_average(untrained: CrossEncoder) -> None:
    scores = [logits(untrained, query, list(CARDS.values())) for query in dict.fromkeys(p.query for p in toy_pairs())]
    assert np.mean(scores) == pytest.approx(0.0, abs=1e-3)


def test_only_the_lowest_layers_are_kept_and_they_are_the_base(base: Path) -> None:
    model = train_cross_encoder(
        base, toy_pairs()[:4], CrossEncoderSettings(layers=1, learning_rate=0.0, max_pair_tokens=48)
    )
    layers = model[0].model.encoder.layer
    assert len(layers) == 1
    original = BertModel.from_pretrained(base).encoder.layer[0]
    assert torch.equal(layers[0].output.dense.weight, original.output.dense.weight)


def test_word_embeddings_stay_as_they_are(base: Path, trained: CrossEncoder) -> None:
    original = BertModel.from_pretrained(base)
    assert torch.equal(trained[0].model.get_input_embeddings().weight, original.get_input_embeddings().weight)
    assert not torch.equal(
        trained[0].model.encoder.layer[1].output.dense.weight, original.encoder.layer[1].output.dense.weight
    )


def test_the_same_seed_trains_the_same_model(base: Path) -> None:
    once, again = (
        train_cross_encoder(base, toy_pairs()[:16], CrossEncoderSettings(layers=1, max_pair_tokens=48))
        for _ in range(2)
    )
    assert logits(once, "show me the rain", [CARDS["weather"]]) == logits(again, "show me the rain", [CARDS["weather"]])


def test_requests_beyond_the_cap_are_not_read(base: Path) -> None:
    settings = CrossEncoderSettings(layers=1, epochs=1, max_pair_tokens=48, max_pairs=9)
    first_two = [pair for pair in toy_pairs() if pair.query in {p.query for p in toy_pairs()[:8]}]
    capped, exact = (train_cross_encoder(base, pairs, settings) for pairs in (toy_pairs(), first_two))
    assert logits(capped, "show me the tax", [CARDS["money"]]) == logits(exact, "show me the tax", [CARDS["money"]])


def test_a_cap_below_the_first_request_is_an_error_that_names_it(base: Path) -> None:
    with pytest.raises(ValueError, match="max_pairs = 3"):
        train_cross_encoder(base, toy_pairs(), CrossEncoderSettings(max_pairs=3))


def loss_of(
    model: CrossEncoder,
    cards: list[str],
    labels: list[float],
    weights: list[float] | None = None,
) -> float:
    with torch.inference_mode():
        columns = [["please show me the rain"], [cards], [weights or [1.0] * len(cards)]]
        loss = CandidatesLoss(model, 48)(columns, [torch.tensor(labels)])
    return float(loss)


def test_a_weight_of_two_is_the_pair_twice(trained: CrossEncoder) -> None:
    weather, money = CARDS["weather"], CARDS["money"]
    twice = loss_of(trained, [weather, money, money], [0.5, 0.0, 0.0])
    assert loss_of(trained, [weather, money], [0.5, 0.0], [1.0, 2.0]) == pytest.approx(twice, rel=1e-4)
    assert twice != pytest.approx(loss_of(trained, [weather, money], [0.5, 0.0]), rel=1e-2)


def test_where_no_card_serves_a_high_score_is_what_costs(trained: CrossEncoder) -> None:
    fitting, other = logits(trained, "please show me the rain", [CARDS["weather"], CARDS["money"]])
    assert loss_of(trained, [CARDS["weather"]], [0.0]) == pytest.approx(np.log1p(np.exp(fitting)), rel=1e-3)
    assert loss_of(trained, [CARDS["money"]], [0.0]) == pytest.approx(np.log1p(np.exp(other)), rel=1e-3)
    assert fitting > other


def test_the_exported_graph_scores_as_the_model_does_and_int8_nearly_so(trained: CrossEncoder, tmp_path: Path) -> None:
    pairs = [(f"show me the {word}", card) for words in TOPICS.values() for word in words for card in CARDS.values()]
    figures = export_cross_encoder(trained, tmp_path, pairs)
    assert figures["pairs"] == 48
    assert figures["fused"]
    assert figures["max_difference"] < 1e-4
    assert figures["int8_rank_correlation"] > 0.9
    assert figures["int8_same_best"] > 0.9


def test_a_served_score_is_the_raw_logit_whatever_cards_are_beside_it(trained: CrossEncoder, tmp_path: Path) -> None:
    export_cross_encoder(trained, tmp_path, [("show me the rain", CARDS["weather"])] * 2)
    expected = logits(trained, "show me the rain", [CARDS["weather"]])
    for graph, tolerance in (("reranker.onnx", 1e-4), ("reranker.int8.onnx", 1.0)):
        served = CrossEncoderReranker(tmp_path / graph, tmp_path / "reranker.tokenizer.json", max_pair_tokens=48)
        alone, _ = served.scores("show me the rain", [CARDS["weather"]])
        beside, _ = served.scores("show me the rain", ["rain " * 400, CARDS["weather"], "a"])
        assert alone[0] == beside[1]
        assert alone[0] == pytest.approx(expected[0], abs=tolerance)


def test_export_leaves_the_model_as_it_was(trained: CrossEncoder, tmp_path: Path) -> None:
    before = trained[0].model.config._attn_implementation
    export_cross_encoder(trained, tmp_path, [("rain", "a"), ("rain", "the")])
    assert trained[0].model.config._attn_implementation == before


def test_a_tokenizer_that_the_bundle_has_is_not_written_twice(
    trained: CrossEncoder, base: Path, tmp_path: Path
) -> None:
    Tokenizer.from_file(str(base / "tokenizer.json")).save(str(tmp_path / "tokenizer.json"))
    export_cross_encoder(trained, tmp_path, [("rain", "a"), ("rain", "the")])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["reranker.int8.onnx", "reranker.onnx", "tokenizer.json"]


def test_a_base_that_is_no_bert_is_exported_without_fusion(base: Path, tmp_path: Path) -> None:
    folder = tmp_path / "base"
    config = DistilBertConfig(vocab_size=len(a_vocabulary()), dim=32, n_layers=2, n_heads=2, hidden_dim=64)
    DistilBertModel(config).save_pretrained(folder)
    BertTokenizerFast(vocab=a_vocabulary()).save_pretrained(folder)
    model = train_cross_encoder(folder, toy_pairs()[:8], CrossEncoderSettings(layers=1, max_pair_tokens=48))
    figures = export_cross_encoder(model, tmp_path, [("rain", CARDS["weather"]), ("rain", CARDS["money"])])
    assert not figures["fused"]
    assert figures["max_difference"] < 1e-4


def unit(*rows: tuple[float, ...]) -> np.ndarray:
    made = np.array(rows, np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def test_mistakes_are_the_nearest_wrong_cards_hardest_first() -> None:
    cards = unit((1, 0, 0), (0.8, 0.6, 0), (0.5, 0.8, 0), (0, 0, 1))
    assert mistakes(unit((1, 0.1, 0)), cards, [frozenset({0})], 2) == [[1, 2]]
    assert mistakes(unit((1, 0.1, 0)), cards, [frozenset({0})], 2, rank_from=1) == [[2, 3]]


def test_equal_cosines_come_in_row_order() -> None:
    cards = unit((0, 1, 0), (1, 0, 0), (0, 0, 1), (0, -1, 0))
    assert mistakes(unit((1, 0, 0)), cards, [frozenset({1})], 3) == [[0, 2, 3]]


def test_positives_equivalents_and_excluded_tools_are_no_mistakes() -> None:
    cards = unit((1, 0, 0), (0.8, 0.6, 0), (0.5, 0.8, 0), (0, 0, 1))
    assert mistakes(unit((1, 0, 0)), cards, [frozenset({0, 1})], 4, excluded=frozenset({3})) == [[2]]


def test_a_twin_of_the_right_card_that_scores_like_it_is_left_out() -> None:
    cards = unit((1, 0, 0), (1, 0.05, 0), (0, 1, 0))
    assert mistakes(unit((1, 0, 0)), cards, [frozenset({0})], 2) == [[2]]


def test_a_wrong_card_above_the_right_one_is_a_mistake_unless_it_is_its_twin() -> None:
    cards = unit((0.6, 0.8, 0), (1, 0, 0), (0, 0, 1))
    assert mistakes(unit((1, 0, 0)), cards, [frozenset({0})], 1) == [[1]]


def test_a_twin_that_scores_well_below_the_right_card_is_a_mistake() -> None:
    cards = unit((0.3, 1, 0), (0.1, 1, 0), (0, 0, 1))
    query = unit((1, 0.1, 0))
    assert mistakes(query, cards, [frozenset({0})], 1, margin=0.05) == [[1]]
    assert mistakes(query, cards, [frozenset({0})], 1, margin=0.9) == [[2]]


def test_a_request_that_no_card_serves_has_its_nearest_cards_as_mistakes() -> None:
    cards = unit((1, 0, 0), (0, 1, 0))
    assert mistakes(unit((0, 1, 0.1)), cards, [frozenset()], 1) == [[1]]

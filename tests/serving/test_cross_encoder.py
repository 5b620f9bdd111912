"""The cross-encoder at serving time: how pairs are cut, what a score depends on, and what a deadline buys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from data.errors import BundleError
from serving.cross_encoder import CrossEncoderReranker, Pair, encode_pairs

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", *(f"q{i}" for i in range(60)), *(f"c{i}" for i in range(200))]
VOCABULARY = {word: i for i, word in enumerate(WORDS)}


def words(prefix: str, count: int) -> str:
    return " ".join(f"{prefix}{i}" for i in range(count))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    made = Tokenizer(WordLevel(VOCABULARY, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    made.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return made


def save_graph(path: Path, output: str) -> None:
    """A graph whose score is the sum of a pair's ids and types, so that every token read can be seen."""
    names = ("input_ids", "attention_mask", "token_type_ids")
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["input_ids", "attention_mask"], ["seen"]),
            helper.make_node("Add", ["seen", "token_type_ids"], ["marked"]),
            helper.make_node("Cast", ["marked"], ["real"], to=TensorProto.FLOAT),
            helper.make_node("ReduceSum", ["real", "axes"], [output], keepdims=0),
        ],
        "sum",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "length"]) for name in names],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["n"])],
        [helper.make_tensor("axes", TensorProto.INT64, [1], [1])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Path:
    made = tmp_path_factory.mktemp("graph")
    tokenizer.save(str(made / "tokenizer.json"))
    save_graph(made / "sum.onnx", "score")
    return made


@pytest.fixture(scope="module")
def reranker(folder: Path) -> CrossEncoderReranker:
    return CrossEncoderReranker(folder / "sum.onnx", folder / "tokenizer.json", max_pair_tokens=40)


class Clock:
    """Reads 1, 2, 3, ... seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def read(tokenizer: Tokenizer, pair: Pair) -> str:
    return " ".join(tokenizer.id_to_token(i) for i in pair.ids)


def test_a_pair_is_the_query_then_the_card_each_with_its_type(tokenizer: Tokenizer) -> None:
    (pair,) = encode_pairs(tokenizer, "q0 q1", ["c0"], 40)
    assert read(tokenizer, pair) == "[CLS] q0 q1 [SEP] c0 [SEP]"
    assert pair.types == [0, 0, 0, 0, 1, 1]


def test_a_template_without_types_gets_them_by_where_a_token_comes_from(tokenizer: Tokenizer) -> None:
    other = Tokenizer.from_str(tokenizer.to_str())
    other.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] [SEP] $B [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    (pair,) = encode_pairs(other, "q0", ["c0 c1"], 40)
    assert pair.types == [0, 0, 0, 0, 1, 1, 0]


def test_a_long_card_is_cut_and_the_query_is_whole(tokenizer: Tokenizer) -> None:
    (pair,) = encode_pairs(tokenizer, words("q", 12), [words("c", 200)], 40)
    assert len(pair.ids) == 40
    assert read(tokenizer, pair) == f"[CLS] {words('q', 12)} [SEP] {words('c', 25)} [SEP]"


def test_a_query_too_long_for_any_card_is_cut_to_leave_sixteen_tokens(tokenizer: Tokenizer) -> None:
    long, short = encode_pairs(tokenizer, words("q", 60), [words("c", 200), "c0"], 40)
    assert read(tokenizer, long) == f"[CLS] {words('q', 21)} [SEP] {words('c', 16)} [SEP]"
    assert read(tokenizer, short) == f"[CLS] {words('q', 21)} [SEP] c0 [SEP]"


def test_a_long_card_changes_no_score_but_its_own(reranker: CrossEncoderReranker) -> None:
    alone, _ = reranker.scores("q0 q1", ["c0 c1"])
    beside, _ = reranker.scores("q0 q1", [words("c", 200), "c0 c1", ""])
    assert beside[1] == alone[0]
    assert beside[0] != alone[0]


def test_scores_come_in_the_order_of_the_cards(reranker: CrossEncoderReranker) -> None:
    scores, reached = reranker.scores("q0", ["c5 c6 c7", "c1", "c9"])
    fixed = 1 + VOCABULARY["q0"] + 2 + 2 + 1  # the three special tokens, the query, the second one's type
    assert scores.tolist() == [
        fixed + sum(VOCABULARY[word] + 1 for word in card.split()) for card in ("c5 c6 c7", "c1", "c9")
    ]
    assert reached == 3


def test_a_deadline_leaves_the_lowest_ranks_without_a_score(
    reranker: CrossEncoderReranker,
) -> None:
    cards = [f"c{i}" for i in range(6)]
    full, _ = reranker.scores("q0", cards)
    scores, reached = reranker.scores("q0", cards, deadline=4.0, clock=Clock())
    assert reached == 4
    assert scores[:4].tolist() == full[:4].tolist()
    assert np.isnan(scores[4:]).all()


def test_a_deadline_already_past_reaches_no_card(reranker: CrossEncoderReranker) -> None:
    scores, reached = reranker.scores("q0", ["c0", "c1"], deadline=0.0, clock=Clock())
    assert reached == 0
    assert np.isnan(scores).all()


def test_without_cards_there_is_nothing_to_score(reranker: CrossEncoderReranker) -> None:
    scores, reached = reranker.scores("q0", [])
    assert scores.shape == (0,)
    assert reached == 0


def test_padding_and_truncation_saved_in_the_tokenizer_file_are_not_obeyed(
    tmp_path: Path, folder: Path, reranker: CrossEncoderReranker
) -> None:
    saved = Tokenizer.from_file(str(folder / "tokenizer.json"))
    saved.enable_padding(length=64)
    saved.enable_truncation(8)
    saved.save(str(tmp_path / "tokenizer.json"))
    padding = CrossEncoderReranker(folder / "sum.onnx", tmp_path / "tokenizer.json", max_pair_tokens=40)
    cards = [words("c", 30), "c0"]
    assert padding.scores("q0", cards)[0].tolist() == reranker.scores("q0", cards)[0].tolist()


def test_a_graph_of_another_kind_is_refused_by_name(tmp_path: Path, folder: Path) -> None:
    save_graph(tmp_path / "encoder.onnx", "vector")
    with pytest.raises(BundleError, match=r"encoder\.onnx.*no output 'score'"):
        CrossEncoderReranker(tmp_path / "encoder.onnx", folder / "tokenizer.json", max_pair_tokens=40)

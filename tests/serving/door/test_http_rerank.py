"""Reranking over HTTP in the shape that clients of rerank services send, on a bundle that carries a cross-encoder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper
from shop import Shop, error_of, open_shop
from tiny import Trained

from data.jsonl import save_catalog
from serving.bundle import MANIFEST, Manifest, seal
from serving.watch import bundle_source


def save_graph(path: Path, scale: float) -> None:
    """A graph whose score is `scale` times the number of tokens: the longer document is the better one."""
    names = ("input_ids", "attention_mask", "token_type_ids")
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["attention_mask"], ["real"], to=TensorProto.FLOAT),
            helper.make_node("ReduceSum", ["real", "axes"], ["length"], keepdims=0),
            helper.make_node("Mul", ["length", "scale"], ["score"]),
        ],
        "length",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "tokens"]) for name in names],
        [helper.make_tensor_value_info("score", TensorProto.FLOAT, ["n"])],
        [
            helper.make_tensor("axes", TensorProto.INT64, [1], [1]),
            helper.make_tensor("scale", TensorProto.FLOAT, [], [scale]),
        ],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))


@pytest.fixture
def ranking(own_bundle: Path, trained: Trained, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shop]:
    save_graph(own_bundle / "reranker.onnx", getattr(request, "param", 0.1))
    written = json.loads((own_bundle / MANIFEST).read_text())
    seal(own_bundle, Manifest.model_validate({**written, "reranker_graph": "reranker.onnx"}))
    save_catalog(tmp_path / "tools.jsonl", trained.catalog)
    tools: list[dict[str, Any]] = [json.loads(line) for line in (tmp_path / "tools.jsonl").read_text().splitlines()]
    (tmp_path / "served").mkdir()
    with open_shop(tmp_path / "served", tools, bundle=bundle_source(own_bundle)) as opened:
        yield opened


def test_documents_come_back_best_first_by_their_places(ranking: Shop) -> None:
    body = {
        "query": "send the email",
        "documents": ["short", {"text": "a much longer text"}, "middle one"],
        "model": "any",
    }
    found = ranking.ok("/v1/rerank", body)
    assert [one["index"] for one in found["results"]] == [1, 2, 0]
    scores = [one["relevance_score"] for one in found["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 < score < 1.0 for score in scores)
    assert all(one["document"] is None for one in found["results"])
    assert found["model"] == ranking.select("send the email")["versions"]["bundle"]
    top = ranking.ok("/v1/rerank", {**body, "top_n": 1.0, "return_documents": True})
    assert top["results"][0]["document"] == {"text": "a much longer text"}
    assert len(top["results"]) == 1


def test_documents_may_be_empty_or_odd(ranking: Shop) -> None:
    found = ranking.ok("/v1/rerank", {"query": "\U0001f600", "documents": ["", "\u0000", "x" * 20_000]})
    assert len(found["results"]) == 3


@pytest.mark.parametrize("ranking", [float("nan"), float("inf")], indirect=True)
def test_scores_that_are_no_numbers_are_one_clear_error(ranking: Shop) -> None:
    error_of(ranking.post("/v1/rerank", {"query": "a", "documents": ["b", "c"]}), 500, "model_failed")
    assert ranking.select("send the email for anna")["degradations"] == [], "it does not serve in select"

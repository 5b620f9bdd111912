"""Contract 10 over HTTP: a model that fails costs order, never the answer, and never opens anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tiny
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shop import Shop, open_shop, shown
from tiny import Trained

from data.jsonl import save_catalog
from serving.encoder import Encoded
from serving.watch import bundle_source

PEOPLE = {"ann": {"may_act_for": True, "scopes": ["accounts"]}}


@pytest.fixture(scope="module")
def shop(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    save_catalog(folder / "tools.jsonl", trained.catalog)
    tools = [json.loads(line) for line in (folder / "tools.jsonl").read_text().splitlines()]
    nothing_kept = {"slices": 0, "embeddings": 0}
    with open_shop(folder, tools, bundle=bundle_source(trained.bundle), people=PEOPLE, cache=nothing_kept) as opened:
        yield opened


def broken(how: str, shape: tuple[int, ...]) -> Any:
    if how == "raises":
        raise RuntimeError("at /srv/models/secret.onnx")
    return np.full(shape, np.nan if how == "nan" else np.inf, np.float32)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["encoder", "reranker", "head", "fit"]),
    st.sampled_from(["raises", "nan", "infinite"]),
    st.sampled_from([*tiny.catalog().ids]),
    st.sampled_from([[], ["accounts"]]),
    st.sampled_from([None, True, False]),
)
def test_whatever_fails_there_is_an_answer_and_it_shows_no_more_than_before(
    shop: Shop, part: str, how: str, tool_id: str, scopes: list[str], mutation: bool | None
) -> None:
    body = {"goal": tiny.goals(tool_id)[0], "caller": {"scopes": scopes}, "mutation": mutation, "request_id": "r"}
    whole = shop.ok("/v1/select", body)
    assert whole["degradations"] == []
    selector = shop.assembly.watch.live.current
    assert selector.encoder is not None
    width = selector.encoder.dimension
    with pytest.MonkeyPatch.context() as patch:
        match part:
            case "encoder":
                patch.setattr(selector.encoder, "encode", lambda *_, **__: Encoded(broken(how, (1, width)), None))
            case "reranker":
                patch.setattr(type(selector.models.weights), "scores", lambda *given: broken(how, (len(given[3]),)))
            case "head":
                patch.setattr(selector.models.head, "probabilities", lambda rows: broken(how, (len(rows),)))
            case "fit":
                patch.setattr(selector.models.fit, "probabilities", lambda rows: broken(how, (len(rows),)))
        found = shop.ok("/v1/select", body)
    assert found["degradations"], "and the answer says so"
    assert found["recorded"]
    assert "secret" not in json.dumps(found)
    assert (tiny.GUARDED in json.dumps(found)) <= (scopes == ["accounts"])
    writes = {card.tool_id for card in tiny.catalog() if card.risk.word != "read_only"}
    assert mutation is not False or not writes & set(shown(found))
    known = {entry["tool_id"]: entry["verdict"] for entry in whole["menu"]}
    for entry in found["menu"]:
        assert entry["relevance"] is None or 0.0 <= entry["relevance"] <= 1.0
        assert known.get(entry["tool_id"], entry["verdict"]) == entry["verdict"]

"""What the rerankers say of requests: each pair once, whichever views share it, and only by those that are wanted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_heads import request

from data.cards import ToolCard
from data.catalog import Catalog
from serving.cross_encoder import COSINE_SCALE
from serving.evidence import reading_order
from training import rerankers
from training.decisions import Decision, same_names
from training.recipe import Recipe
from training.rerankers import Readings
from training.workshop import Workshop

TOOLS = tuple(f"files.tool{number}" for number in range(10))
DEPTH = 4


class CountingReader:
    """A logit by the words alone, and which pairs were asked for."""

    def __init__(self) -> None:
        self.read: Counter[tuple[str, str]] = Counter()

    def scores(self, goal: str, cards: Sequence[str]) -> tuple[np.ndarray, int]:
        self.read.update((goal, card) for card in cards)
        return np.array([logit(goal, card) for card in cards], np.float32), len(cards)


class CountingEncoder:
    """States by the words alone, and how often each text was encoded."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def encode(self, texts: Sequence[str], max_tokens: int, **_: Any) -> SimpleNamespace:
        self.seen.update(texts)
        return SimpleNamespace(states=[np.full((2, 3), len(text), np.float32) for text in texts])


def logit(goal: str, card: str) -> float:
    return len(goal) + sum(map(ord, card)) % 17


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> CountingReader:
    made = CountingReader()
    monkeypatch.setattr(rerankers, "cross_encoder_of", lambda shop: made)
    return made


def a_shop(**changes: Any) -> Workshop:
    catalog = Catalog(ToolCard(tool_id=tool, name=tool.partition(".")[2], domain="files") for tool in TOOLS)
    decisions = [Decision(f"goal {i}", i, "", None, ((TOOLS[i], 1.0),), (), None, "valid", True) for i in range(3)]
    recipe = Recipe.model_validate({"cross_encoder": {"depth": DEPTH}})
    shop = Workshop(catalog, recipe, Path("unused"), Path("unused"), decisions, same_names(catalog))
    shop.encoder, shop.reranker_graph = CountingEncoder(), "reranker.onnx"  # type: ignore[assignment]
    for name, value in changes.items():
        setattr(shop, name, value)
    return shop


def test_two_views_of_a_request_share_what_was_read(reader: CountingReader) -> None:
    shop = a_shop()
    readings, chosen = Readings(shop), [0, 1, 2]
    rows = [np.arange(6), np.arange(2, 8), np.arange(4, 10)]
    for logged in (True, False):
        requests = [request(i, logged=logged) for i in chosen]
        made = readings.add(chosen, requests, rows)
        for i, before, after in zip(chosen, requests, made, strict=True):
            read = reading_order(before.signals, DEPTH)
            expected = before.signals.cosine.copy()
            cards = [shop.card_texts[row] for row in rows[i][read]]
            expected[read] += np.array([logit(f"goal {i}", card) for card in cards]) / COSINE_SCALE
            np.testing.assert_allclose(after.signals.cross, expected, rtol=1e-6)
    assert set(reader.read.values()) == {1}


def test_only_what_is_wanted_reads(reader: CountingReader) -> None:
    weights = SimpleNamespace(scores=lambda state, tokens, rows, cosine: cosine + state[0, 0])
    shop = a_shop(weights=weights, card_tokens=object())
    encoder, chosen, rows = shop.encoder, [0, 1], [np.arange(6)] * 2
    requests = [request(i, logged=True) for i in chosen]
    readings = Readings(shop)

    none = readings.add(chosen, requests, rows, wanted=["none"])
    assert none == requests
    assert not reader.read
    assert not encoder.seen

    for _ in range(2):
        made = readings.add(chosen, requests, rows, wanted=["interaction"])
        for before, after in zip(requests, made, strict=True):
            np.testing.assert_allclose(after.signals.interaction, before.signals.cosine + len("goal 0"))
            assert not after.signals.cross.any()
    assert not reader.read
    assert encoder.seen == {"goal 0": 1, "goal 1": 1}

"""Documents by relevance: one order, one sigmoid, and no answer from scores that are no numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.cross_encoder import CrossEncoderReranker
from serving.service.errors import ModelFailedError
from serving.service.reranking import rerank


class Fixed(CrossEncoderReranker):
    """Gives the logits that it was made with."""

    def __init__(self, logits: Sequence[float]) -> None:
        self._logits = np.array(logits, np.float32)

    def scores(
        self, query: str, texts: Sequence[str], *, deadline: float | None = None
    ) -> tuple[np.ndarray[tuple[int], np.dtype[np.float32]], int]:
        return self._logits, len(texts)


@given(st.lists(st.floats(-8, 8, width=16), min_size=1, max_size=9), st.integers(1, 12))
def test_the_best_come_first_and_equal_ones_in_the_order_given(logits: list[float], top_n: int) -> None:
    found = rerank(Fixed(logits), "q", ["d"] * len(logits), top_n)
    expected = sorted(range(len(logits)), key=lambda index: (-logits[index], index))[:top_n]
    assert [one.index for one in found] == expected
    for one in found:
        assert one.relevance == pytest.approx(1 / (1 + math.exp(-logits[one.index])), abs=1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_no_numbers_are_no_ranking(bad: float) -> None:
    with pytest.raises(ModelFailedError):
        rerank(Fixed([0.5, bad]), "q", ["a", "b"], None)

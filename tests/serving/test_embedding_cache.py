"""The embedding cache: one pass a text, also when many ask at once, and nothing kept that failed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tiny
from tiny import Trained

from data.context import Caller
from serving.embedding_cache import EmbeddingCache, EmbeddingKey
from serving.encoder import Encoded
from serving.selector import Selector

KEY = EmbeddingKey("send the email", "bundle-1", 16)


class Passes:
    """An encoder that counts its passes, and waits in each until it may go on."""

    def __init__(self, *, held: bool = False) -> None:
        self.count, self.may_go, self.entered = 0, threading.Event(), threading.Event()
        if not held:
            self.may_go.set()

    def __call__(self) -> Encoded:
        self.count += 1
        self.entered.set()
        assert self.may_go.wait(30)
        return Encoded(np.full((1, 8), self.count, np.float32), [np.full((3, 8), self.count, np.float32)])


def test_a_text_is_encoded_once() -> None:
    cache, passes = EmbeddingCache(), Passes()
    first, second = (cache.get(KEY, passes) for _ in "ab")
    assert second is first
    assert passes.count == 1
    assert (cache.figures().hits, cache.figures().misses, cache.hit_ratio) == (1, 1, 0.5)


@pytest.mark.parametrize(
    "other",
    [
        KEY._replace(text="Send the email"),
        KEY._replace(bundle_version="bundle-2"),
        KEY._replace(max_tokens=17),
        KEY._replace(states=True),
        KEY._replace(threads=2),
    ],
)
def test_whatever_a_vector_depends_on_is_in_its_key(other: EmbeddingKey) -> None:
    cache, passes = EmbeddingCache(), Passes()
    cache.get(KEY, passes)
    cache.get(other, passes)
    assert passes.count == 2


def test_equal_texts_in_flight_are_encoded_once() -> None:
    cache, passes = EmbeddingCache(), Passes(held=True)
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(cache.get, KEY, passes) for _ in range(8)]
        assert passes.entered.wait(30)
        other = threads.submit(cache.get, KEY._replace(text="other"), Passes())
        passes.may_go.set()
        found = [future.result(30) for future in asked]
        other.result(30)
    assert passes.count == 1
    assert all(encoded is found[0] for encoded in found)
    figures = cache.figures()
    assert (figures.misses, figures.hits + figures.joined) == (2, 7)


def test_another_text_does_not_wait_for_one_in_flight() -> None:
    cache, held = EmbeddingCache(), Passes(held=True)
    waiting = threading.Thread(target=cache.get, args=(KEY, held))
    waiting.start()
    assert held.entered.wait(30)
    assert cache.get(KEY._replace(text="other"), Passes()).vectors.shape == (1, 8)
    held.may_go.set()
    waiting.join(30)


def test_a_failure_reaches_everybody_who_waits_and_is_not_kept() -> None:
    cache, entered, go = EmbeddingCache(), threading.Event(), threading.Event()

    def fail() -> Encoded:
        entered.set()
        assert go.wait(30)
        raise RuntimeError("no memory")

    with ThreadPoolExecutor(2) as threads:
        leader = threads.submit(cache.get, KEY, fail)
        assert entered.wait(30)
        follower = threads.submit(cache.get, KEY, fail)
        go.set()
        for future in (leader, follower):
            with pytest.raises(RuntimeError, match="no memory"):
                future.result(30)
    passes = Passes()
    cache.get(KEY, passes)
    assert passes.count == 1


def test_what_is_handed_out_cannot_be_written_to() -> None:
    found = EmbeddingCache().get(KEY, Passes())
    assert found.states is not None
    for array in (found.vectors, *found.states):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_bytes_are_bounded() -> None:
    cache = EmbeddingCache(10_000)
    for number in range(50):
        cache.get(KEY._replace(text=f"text {number}" * 20), Passes())
        assert 0 < cache.figures().bytes <= 10_000
    assert cache.figures().evictions > 40


def test_without_capacity_every_text_is_encoded() -> None:
    cache, passes = EmbeddingCache(0), Passes()
    for _ in range(3):
        cache.get(KEY, passes)
    assert passes.count == 3


def test_a_decision_is_the_same_with_and_without_and_selectors_may_share_one(trained: Trained) -> None:
    cache = EmbeddingCache()
    plain = Selector.load(trained.bundle, tiny.catalog())
    sharing = [Selector.load(trained.bundle, tiny.catalog(), embeddings=cache) for _ in "ab"]
    for goal in tiny.goals("mail.send_message"):
        expected = plain.select(goal, Caller(), request_id="r").canonical()
        assert [one.select(goal, Caller(), request_id="r").canonical() for one in sharing] == [expected] * 2
    assert (cache.figures().misses, cache.figures().hits) == (7, 7)

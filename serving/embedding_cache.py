"""Embedding cache: a text is encoded once, also when many ask at once; what comes out is what the encoder would give.

The key holds all that a vector depends on, so that selectors with different bundles may share one cache. Texts in
flight are joined (single-flight): concurrent equal texts cost one pass.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

import numpy as np

from serving.encoder import Encoded
from serving.lru import Lru

_OVERHEAD = 1024
"""Bytes that an entry takes beside its arrays and its text: Python objects and array headers."""


class EmbeddingKey(NamedTuple):
    """What an encoding depends on. `max_tokens` cuts the text; `states`: token states were asked for as well;
    `threads` is the encoder's, because a sum in another order may end in another bit."""

    text: str
    bundle_version: str
    max_tokens: int
    states: bool = False
    threads: int = 1


@dataclass(frozen=True)
class EmbeddingFigures:
    """`joined`: lookups that waited for an equal text in flight. `bytes`: what is kept now."""

    hits: int
    joined: int
    misses: int
    evictions: int
    bytes: int


class EmbeddingCache:
    """Encodings up to `capacity` bytes in all. Threads may share it; arrays are handed out read-only."""

    def __init__(self, capacity: int = 64 * 2**20) -> None:
        self._kept: Lru[EmbeddingKey, Encoded] = Lru(capacity)
        self._flying: dict[EmbeddingKey, Future[Encoded]] = {}
        self._lock = Lock()
        self._hits = self._joined = self._misses = 0

    def get(self, key: EmbeddingKey, encode: Callable[[], Encoded]) -> Encoded:
        """The encoding of `key`; `encode` makes it where it is neither kept nor being made.

        What `encode` raises reaches everybody who waits for it, and is not kept: the next lookup tries again.
        """
        with self._lock:  # both at once: an entry that just landed must be seen in the one place or the other
            kept = self._kept.get(key)
            if kept is not None:
                self._hits += 1
                return kept
            flying = self._flying.get(key)
            if flying is None:
                mine = self._flying[key] = Future()
                self._misses += 1
            else:
                self._joined += 1
        if flying is not None:
            return flying.result()
        try:
            made = _read_only(encode())
        except BaseException as error:
            with self._lock:
                del self._flying[key]
            mine.set_exception(error)
            raise
        with self._lock:
            self._kept.put(key, made, _weight(key, made))
            del self._flying[key]
        mine.set_result(made)
        return made

    def kept(self, key: EmbeddingKey) -> Encoded | None:
        """The encoding of `key` where it is kept; nothing is encoded, and no lookup counted."""
        with self._lock:
            return self._kept.get(key)

    def figures(self) -> EmbeddingFigures:
        """Counts since the start."""
        with self._lock:
            return EmbeddingFigures(
                self._hits, self._joined, self._misses, self._kept.evictions, bytes=self._kept.weight
            )

    @property
    def hit_ratio(self) -> float:
        """Share of the lookups that cost no pass of the encoder; 0 before the first."""
        figures = self.figures()
        saved = figures.hits + figures.joined
        return saved / (saved + figures.misses) if saved + figures.misses else 0.0


def _read_only(encoded: Encoded) -> Encoded:
    """The same arrays, closed for writing; a state that is a view of more than itself is copied out of it."""
    states = encoded.states
    if states is not None:
        states = [np.array(state) if state.base is not None else state for state in states]
    for array in (encoded.vectors, *(states or ())):
        array.flags.writeable = False
    return Encoded(encoded.vectors, states)


def _weight(key: EmbeddingKey, encoded: Encoded) -> int:
    arrays = encoded.vectors.nbytes + sum(state.nbytes for state in encoded.states or ())
    return arrays + 4 * len(key.text) + _OVERHEAD

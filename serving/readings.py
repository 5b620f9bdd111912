"""Readings: what lexical search has read of each card, as numbers, so that an unchanged card is not read again.

Fields are weighted by repetition before the term frequency saturates (the simple form of BM25F; Robertson, Zaragoza
and Taylor, 2004).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from data.cards import ToolCard
from serving.ragged import Ints, appended, starts, taken, woven
from serving.spelling import SpellingIndex
from serving.tokens import identifier_key, tokenize

_MAX_FIELD_WORDS = 512

_FIELDS: tuple[tuple[int, Callable[[ToolCard], Iterable[str]]], ...] = (
    (4, lambda card: (card.name,)),
    (2, lambda card: card.examples),
    (2, lambda card: card.aliases),
    (1, lambda card: (card.domain,)),
    (1, lambda card: (card.summary, card.description)),
    (1, lambda card: (*card.capabilities, *card.entities, *card.input_concepts)),
    (1, lambda card: card.parameter_names),
)
"""Weight and texts of each field. `not_for` is no field: it names the rival."""


class Lexicon:
    """A number for every token that a card was ever read to hold. It only grows, so that the readings of successive
    catalogs can share it; what no card of a catalog holds any more is for that catalog's index to pass over."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.spelling = SpellingIndex()
        self.adding = Lock()

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, token: str) -> int:
        """The token's number, a new one if it has none; whoever adds holds `adding`."""
        return self.numbers.setdefault(token, len(self.numbers))


@dataclass(frozen=True)
class Readings:
    """By catalog row. Row i holds the tokens start[i] to start[i + 1]: which, how often by the weights of its fields,
    and whether as a word (a word may be meant by a slip of the pen, two words that stand as one may not). `length`
    (n,) is the sum of its `times`. Row i's name has the words name_start[i] to name_start[i + 1]; `name_key`, `id_key`
    (n,) are its name and id in the one form of all spellings, -1 where nothing is left of one.
    """

    lexicon: Lexicon
    start: Ints
    token: NDArray[np.int32]
    times: NDArray[np.int32]
    word: NDArray[np.bool_]
    length: Ints
    name_start: Ints
    name_word: NDArray[np.int32]
    name_key: NDArray[np.int32]
    id_key: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.length)

    def followed(self, kept: Ints, fresh: Readings) -> Readings:
        """The readings of a catalog that keeps some rows: `kept` (n,) is a row of these, or -1 for the next of `fresh`,
        which has the same lexicon."""
        rows = woven(kept, len(self))
        where, start = taken(appended(self.start, fresh.start), rows)
        named, name_start = taken(appended(self.name_start, fresh.name_start), rows)
        return Readings(
            lexicon=self.lexicon,
            start=start,
            token=np.concatenate([self.token, fresh.token])[where],
            times=np.concatenate([self.times, fresh.times])[where],
            word=np.concatenate([self.word, fresh.word])[where],
            length=np.concatenate([self.length, fresh.length])[rows],
            name_start=name_start,
            name_word=np.concatenate([self.name_word, fresh.name_word])[named],
            name_key=np.concatenate([self.name_key, fresh.name_key])[rows],
            id_key=np.concatenate([self.id_key, fresh.id_key])[rows],
        )


def read_cards(cards: Sequence[ToolCard], lexicon: Lexicon) -> Readings:
    """Read every card; what is new to the lexicon is added to it."""
    with lexicon.adding:
        read = [_read(card) for card in cards]
        number = lexicon.add
        tokens = [[number(token) for token in times] for times, _ in read]
        names = [[number(word) for word in dict.fromkeys(tokenize(card.name).words)] for card in cards]
        keys = [[number(key) if (key := identifier_key(t)) else -1 for t in (c.name, c.tool_id)] for c in cards]
        lexicon.spelling.add(word for _, words in read for word in words)
    return Readings(
        lexicon=lexicon,
        start=starts(len(row) for row in tokens),
        token=_packed(tokens),
        times=_packed([times.values() for times, _ in read]),
        word=np.array([token in words for times, words in read for token in times], np.bool_),
        length=np.array([times.total() for times, _ in read], np.int64),
        name_start=starts(len(row) for row in names),
        name_word=_packed(names),
        name_key=np.array([name for name, _ in keys], np.int32),
        id_key=np.array([whole for _, whole in keys], np.int32),
    )


def _read(card: ToolCard) -> tuple[Counter[str], set[str]]:
    """How often a card holds each token, as its fields weigh, and which of them are words and not joins."""
    times: Counter[str] = Counter()
    words: set[str] = set()
    for weight, texts_of in _FIELDS:
        for text in texts_of(card):
            tokens = tokenize(text)
            words.update(tokens.words[:_MAX_FIELD_WORDS])
            for token in (*tokens.words[:_MAX_FIELD_WORDS], *tokens.joins[:_MAX_FIELD_WORDS]):
                times[token] += weight
    # Kebab, dots and spaces end a chunk's join early; the whole name is a token in every spelling, and so is the id.
    for key in sorted({identifier_key(card.name), identifier_key(card.tool_id)} - {"", *times}):
        times[key] = 1
    return times, words


def _packed(rows: Sequence[Iterable[int]]) -> NDArray[np.int32]:
    return np.fromiter(chain.from_iterable(rows), np.int32)

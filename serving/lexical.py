"""Lexical search: BM25 over a catalog's fields, the share of a tool's name in the query, and exact names.

How rare a word is and how long a card is are facts about a set of cards. The set is what the asking tenant can see: the
shared cards and its own. Another tenant's private text is in none of its sums, so that it cannot shift a score.

A BM25 query has at most 256 words: of a longer one the rarest are kept. Words that no card has are taken for slips of
the pen and tried one letter off, the first 16 of them. Both bounds hold for any length of goal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from data.cards import ToolCard
from serving.ragged import Ints, taken
from serving.readings import Lexicon, Readings, read_cards
from serving.tokens import Tokens, content_words, identifier_key, neighbours_joined, tokenize

MAX_QUERY_WORDS = 256
MAX_CORRECTED_WORDS = 16
_K1 = 1.5
_B = 0.75
_UNSURE = 0.5
"""Weight of a match that is not on the word as written: a corrected slip, or words that also stand as one."""
_CORRECTIONS = 3
_NAME_BONUS = 0.3
_VIEWS = 64
_FORGOTTEN = 3
"""A lexicon with this many times the tokens that cards still hold is left behind, and all cards are read again."""


@dataclass(frozen=True, eq=False)
class LexicalScores:
    """By catalog row: `bm25` float32 (n,), at least 0; `name` float32 (n,), the share in [0, 1] of the words of
    the tool's name that the query holds; `exact` bool (n,), the query is the tool's name or id in any
    spelling.
    """

    bm25: NDArray[np.float32]
    name: NDArray[np.float32]
    exact: NDArray[np.bool_]

    @property
    def ranking(self) -> NDArray[np.float32]:
        """float32 (n,): BM25 raised by up to 30% by the share of the name; the order where there is nothing else."""
        return self.bm25 * (1.0 + np.float32(_NAME_BONUS) * self.name)


@dataclass(frozen=True, eq=False)
class _View:
    """The cards that one tenant can see: which (n,), None for all; how many; and by row what their length, against the
    average of these cards, adds below the fraction of BM25. `frequency` keeps what was counted of them."""

    visible: NDArray[np.bool_] | None
    count: int
    damping: NDArray[np.float64]
    frequency: dict[int, int] = field(default_factory=dict)


class _Postings:
    """Entries by token instead of by row."""

    def __init__(self, start: Ints, token: NDArray[np.int32], tokens: int) -> None:
        self.order = np.argsort(token, kind="stable")
        self.row = np.repeat(np.arange(len(start) - 1), np.diff(start))[self.order]
        self.start = np.concatenate([[0], np.cumsum(np.bincount(token, minlength=tokens))]).astype(np.int64)

    def has(self, token: int) -> bool:
        """Whether any row holds the token; a lexicon may have grown since."""
        return token + 1 < len(self.start) and bool(self.start[token] < self.start[token + 1])

    def of(self, token: int) -> slice:
        return slice(int(self.start[token]), int(self.start[token + 1]))


class LexicalIndex:
    """The lexical side of one catalog. Scores do not depend on the order of the cards, nor on cards that the tenant
    cannot see. Threads may share it."""

    def __init__(self, readings: Readings, tenants: Sequence[Iterable[str]]) -> None:
        """`tenants`: by row, whose the card is; nobody's in particular is everybody's."""
        self._read = readings
        self._numbers, self._spelling = readings.lexicon.numbers, readings.lexicon.spelling
        self._text = _Postings(readings.start, readings.token, len(readings.lexicon))
        self._times = readings.times[self._text.order].astype(np.float64)
        self._word = readings.word[self._text.order]
        self._names = _Postings(readings.name_start, readings.name_word, len(readings.lexicon))
        self._name_length = np.maximum(1, np.diff(readings.name_start))
        owned = [(owner, row) for row, owners in enumerate(tenants) for owner in owners]
        self._shared = np.ones(len(readings), np.bool_)
        self._shared[[row for _, row in owned]] = False
        self._own: dict[str, list[int]] = {}
        for owner, row in owned:
            self._own.setdefault(owner, []).append(row)
        self._whole = _view(readings.length, None)
        # of a function and not of a method: an index that has been replaced is let go of at once
        self._view = lru_cache(_VIEWS)(partial(_view_of, readings.length, self._shared, self._own))

    @classmethod
    def build(
        cls, cards: Sequence[ToolCard], earlier: LexicalIndex | None = None, kept: Ints | None = None
    ) -> LexicalIndex:
        """Index `cards`; row i of every result is `cards[i]`.

        With an `earlier` index, `kept` (n,) names by row the row there of the card that has not changed since, or -1;
        what comes of it is the same, and only the others are read.
        """
        tenants = [card.tenants for card in cards]
        if earlier is None or kept is None or earlier._has_outgrown_its_cards():
            return cls(read_cards(cards, Lexicon()), tenants)
        fresh = read_cards([cards[row] for row in np.flatnonzero(kept < 0).tolist()], earlier._read.lexicon)
        return cls(earlier._read.followed(kept, fresh), tenants)

    def scores(self, query: str, tenant: str | None = None) -> LexicalScores:
        """Score every card against a query, by what `tenant` can see; None counts every card.

        A card that the tenant cannot see has a BM25 of 0. A query without a known word scores 0 everywhere.
        """
        view = self._whole if tenant is None else self._view(tenant if tenant in self._own else None)
        read = tokenize(query)
        sure, unsure = self._matched(read, view)
        bm25 = self._sum([*sure, *unsure], len(sure), view)
        return LexicalScores(bm25=bm25, name=self._name_share(read, {*read.words, *unsure}), exact=self._exact(query))

    @property
    def words_held(self) -> int:
        """Tokens that are kept, also those that no card holds any more."""
        return len(self._read.lexicon)

    # What a tenant can see

    def _frequency(self, token: int, view: _View) -> int:
        """How many cards of the view hold the token."""
        known = view.frequency.get(token)
        if known is None:
            rows = self._text.row[self._text.of(token)] if self._text.has(token) else self._text.row[:0]
            known = len(rows) if view.visible is None else int(np.count_nonzero(view.visible[rows]))
            view.frequency[token] = known
        return known

    def _known(self, token: str, view: _View) -> bool:
        number = self._numbers.get(token)
        return number is not None and self._frequency(number, view) > 0

    def _is_word(self, token: str, view: _View) -> bool:
        """Whether a card of the view holds the token as a word of its own."""
        if not self._known(token, view):
            return False
        where = self._text.of(self._numbers[token])
        as_word = self._word[where]
        return bool(as_word.any() if view.visible is None else (as_word & view.visible[self._text.row[where]]).any())

    def _rarity(self, token: str, view: _View) -> float:
        """The inverse document frequency of a token among the cards of the view, which hold it."""
        found = self._frequency(self._numbers[token], view)
        return math.log1p((view.count - found + 0.5) / (found + 0.5))

    # The parts of the score

    def _matched(self, read: Tokens, view: _View) -> tuple[list[str], list[str]]:
        """The tokens of the view that a query holds as written, and those that it may mean."""
        words = content_words(read.words)
        sure = [word for word in words if self._known(word, view)]
        certain = set(sure)
        unknown = [word for word in words if word not in certain]
        if len(sure) > MAX_QUERY_WORDS:
            rarest = set(sorted(sure, key=lambda word: self._rarity(word, view), reverse=True)[:MAX_QUERY_WORDS])
            sure = [word for word in sure if word in rarest]
        unsure = [join for join in (*read.joins, *neighbours_joined(read.words)) if self._known(join, view)]
        for word in unknown[:MAX_CORRECTED_WORDS]:
            near = [found for found in self._spelling.near(word) if self._is_word(found, view)]
            unsure.extend(sorted(near, key=lambda found: (self._rarity(found, view), found))[:_CORRECTIONS])
        return sure, [token for token in dict.fromkeys(unsure) if token not in set(sure)][:MAX_QUERY_WORDS]

    def _sum(self, tokens: list[str], sure: int, view: _View) -> NDArray[np.float32]:
        """BM25 in the form of Lucene: the sum over the tokens of weight * times / (times + damping), where the weight
        of the first `sure` tokens is their rarity and that of the others a part of it."""
        if not tokens:
            return np.zeros(len(self._read), np.float32)
        where, start = taken(self._text.start, np.array([self._numbers[token] for token in tokens]))
        rows, times = self._text.row[where], self._times[where]
        weight = [self._rarity(token, view) * (1.0 if at < sure else _UNSURE) for at, token in enumerate(tokens)]
        parts = np.repeat(weight, start[1:] - start[:-1]) * times / (times + view.damping[rows])
        if view.visible is not None:
            parts *= view.visible[rows]
        return np.bincount(rows, parts, len(self._read)).astype(np.float32)

    def _name_share(self, read: Tokens, held: set[str]) -> NDArray[np.float32]:
        numbers = [self._numbers[word] for word in held if word in self._numbers]
        where, _ = taken(self._names.start, np.array([one for one in numbers if self._names.has(one)], np.int64))
        found = np.bincount(self._names.row[where], minlength=len(self._read))
        share = (found / self._name_length).astype(np.float32)
        for key in {*read.joins, *neighbours_joined(read.words)} & self._numbers.keys():
            share[self._read.name_key == self._numbers[key]] = 1.0
        return share

    def _exact(self, query: str) -> NDArray[np.bool_]:
        key = self._numbers.get(identifier_key(query), -2)
        exact: NDArray[np.bool_] = (self._read.name_key == key) | (self._read.id_key == key)
        return exact

    def _has_outgrown_its_cards(self) -> bool:
        held = int(np.count_nonzero(np.diff(self._text.start)))
        return self.words_held > _FORGOTTEN * held + 10_000


def _view_of(length: Ints, shared: NDArray[np.bool_], own: Mapping[str, list[int]], owner: str | None) -> _View:
    """What a tenant with cards of its own can see, or, for None, any other."""
    if not own:
        return _view(length, None)
    seen = shared.copy()
    seen[own.get(owner, []) if owner is not None else []] = True
    return _view(length, seen)


def _view(length: Ints, visible: NDArray[np.bool_] | None) -> _View:
    seen = length if visible is None else length[visible]
    average = max(1, int(seen.sum())) / max(1, len(seen))
    damping: NDArray[np.float64] = _K1 * ((1 - _B) + _B * length.astype(np.float64) / average)
    return _View(visible, len(seen), damping)

"""Lexical search: BM25 over a catalog's fields, the share of a tool's name in the query, and exact names.

Fields are weighted by repetition before the term frequency saturates (the simple form of BM25F; Robertson, Zaragoza
and Taylor, 2004). Everything but a sum over the query's tokens is computed at build time.

A BM25 query has at most 256 words: of a longer one the rarest are kept. Words that no card has are taken for slips of
the pen and tried one letter off, the first 16 of them. Both bounds hold for any length of goal.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import bm25s
import numpy as np
from numpy.typing import NDArray

from data.cards import ToolCard
from serving.spelling import SpellingIndex
from serving.tokens import Tokens, content_words, identifier_key, neighbours_joined, tokenize

# bm25s sets its own logger to DEBUG when it is imported.
logging.getLogger("bm25s").setLevel(logging.WARNING)

MAX_QUERY_WORDS = 256
MAX_CORRECTED_WORDS = 16
_MAX_FIELD_WORDS = 512
_K1 = 1.5
_B = 0.75
_UNSURE = 0.5
"""Weight of a match that is not on the word as written: a corrected slip, or words that also stand as one."""
_CORRECTIONS = 3
_NAME_BONUS = 0.3

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

_Postings = dict[str, NDArray[np.intp]]


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


class LexicalIndex:
    """The lexical side of one catalog. Scores do not depend on the order of the cards. Threads may share it."""

    def __init__(self, cards: Sequence[ToolCard]) -> None:
        self._rows = len(cards)
        self._vocabulary: dict[str, int] = {}
        words: set[str] = set()
        documents = [
            [self._vocabulary.setdefault(token, len(self._vocabulary)) for token in _read(card, words)]
            for card in cards
        ]
        self._bm25 = bm25s.BM25(k1=_K1, b=_B)
        self._documents_with = np.zeros(0, dtype=np.int64)
        if self._vocabulary:
            self._bm25.index((documents, self._vocabulary), create_empty_token=False, show_progress=False)
            self._documents_with = np.diff(self._bm25.scores["indptr"])
        self._spelling = SpellingIndex(words)
        self._keys = _rows_by([{identifier_key(card.name), identifier_key(card.tool_id)} - {""} for card in cards])
        self._name_keys = _rows_by([{identifier_key(card.name)} - {""} for card in cards])
        self._name_words = _rows_by([set(tokenize(card.name).words) for card in cards])
        self._name_length = np.array([max(1, len(set(tokenize(c.name).words))) for c in cards], dtype=np.int32)

    @classmethod
    def build(cls, cards: Sequence[ToolCard]) -> LexicalIndex:
        """Index `cards`; row i of every result is `cards[i]`."""
        return cls(cards)

    def scores(self, query: str) -> LexicalScores:
        """Score every card against a query. A query without a known word scores 0 everywhere."""
        read = tokenize(query)
        sure, unsure = self._matched(read)
        bm25 = self._sum(sure) + np.float32(_UNSURE) * self._sum(unsure)
        return LexicalScores(bm25=bm25, name=self._name_share(read, {*read.words, *unsure}), exact=self._exact(query))

    def _matched(self, read: Tokens) -> tuple[list[str], list[str]]:
        """The tokens of the vocabulary that a query holds as written, and those that it may mean."""
        words = content_words(read.words)
        sure = [word for word in words if word in self._vocabulary]
        if len(sure) > MAX_QUERY_WORDS:
            rarest = set(sorted(sure, key=self._rarity, reverse=True)[:MAX_QUERY_WORDS])
            sure = [word for word in sure if word in rarest]
        unsure = [join for join in (*read.joins, *neighbours_joined(read.words)) if join in self._vocabulary]
        unknown = [word for word in words if word not in self._vocabulary]
        for word in unknown[:MAX_CORRECTED_WORDS]:
            near = sorted(self._spelling.near(word), key=lambda found: (self._rarity(found), found))
            unsure.extend(near[:_CORRECTIONS])
        certain = set(sure)
        return sure, [token for token in dict.fromkeys(unsure) if token not in certain][:MAX_QUERY_WORDS]

    def _sum(self, tokens: list[str]) -> NDArray[np.float32]:
        if not tokens:
            return np.zeros(self._rows, dtype=np.float32)
        found: NDArray[np.float32] = self._bm25.get_scores_from_ids([self._vocabulary[token] for token in tokens])
        return found

    def _rarity(self, word: str) -> float:
        """The inverse document frequency of a word of the vocabulary."""
        documents = int(self._documents_with[self._vocabulary[word]])
        return float(np.log1p((self._rows - documents + 0.5) / (documents + 0.5)))

    def _name_share(self, read: Tokens, held: set[str]) -> NDArray[np.float32]:
        found = np.zeros(self._rows, dtype=np.int32)
        for word in held & self._name_words.keys():
            found[self._name_words[word]] += 1
        share = (found / self._name_length).astype(np.float32)
        for key in {*read.joins, *neighbours_joined(read.words)} & self._name_keys.keys():
            share[self._name_keys[key]] = 1.0
        return share

    def _exact(self, query: str) -> NDArray[np.bool_]:
        exact = np.zeros(self._rows, dtype=np.bool_)
        key = identifier_key(query)
        if key in self._keys:
            exact[self._keys[key]] = True
        return exact


def _read(card: ToolCard, words: set[str]) -> list[str]:
    """All tokens of a card, each as often as its fields weigh; its words (not its joins) are added to `words`."""
    read: list[str] = []
    for weight, texts_of in _FIELDS:
        for text in texts_of(card):
            tokens = tokenize(text)
            words.update(tokens.words[:_MAX_FIELD_WORDS])
            read.extend((*tokens.words[:_MAX_FIELD_WORDS], *tokens.joins[:_MAX_FIELD_WORDS]) * weight)
    # Kebab, dots and spaces end a chunk's join early; the whole name is a token in every spelling, and so is the id.
    missing = {identifier_key(card.name), identifier_key(card.tool_id)} - {"", *read}
    read.extend(sorted(missing))
    return read


def _rows_by(names_of_rows: Sequence[set[str]]) -> _Postings:
    rows: dict[str, list[int]] = {}
    for row, names in enumerate(names_of_rows):
        for name in names:
            rows.setdefault(name, []).append(row)
    return {name: np.array(found, dtype=np.intp) for name, found in rows.items()}

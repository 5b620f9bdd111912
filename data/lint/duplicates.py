"""Near-duplicates: tools that say almost the same, so that neither a model nor a search can choose between them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from data.cards import ToolCard
from data.findings import Finding
from data.lint.texts import finding, said, share_callers
from data.words import split_identifier

LEXICAL_THRESHOLD = 0.85
"""Jaccard similarity of two tools' words (name, summary, description, parameter names)."""
VECTOR_THRESHOLD = 0.94
"""Cosine of two tools' embedded card texts."""
_MIN_WORDS = 5
_BLOCK = 1_024
_NAMED = 3

Pair = tuple[int, int, float]
"""Two positions, the smaller first, and how alike they are, in [0, 1]."""


def lint_near_duplicates(cards: Sequence[ToolCard], vectors: NDArray[np.float32] | None) -> Iterator[Finding]:
    """One finding for each card that has later cards like it, unless one of the two says when to take which. Of cards
    alike in words also unless each name has a word that its own text repeats and the other card lacks.

    `vectors`, where given, are (n, d) unit rows, one a card. Equal descriptions are another rule's finding.
    """
    words = [words_of(card) for card in cards]
    pairs = {
        (one, other): share
        for one, other, share in lexical_pairs(words)
        if not (_own_word(cards[one], words[other]) and _own_word(cards[other], words[one]))
    }
    if vectors is not None:
        pairs |= {(one, other): share for one, other, share in vector_pairs(vectors) if (one, other) not in pairs}
    alike: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
    for (one, other), share in pairs.items():
        if _confusable(cards[one], cards[other]):
            alike[one].append((-share, other))
    for one in sorted(alike):
        others = sorted(alike[one])
        named = ", ".join(f"'{cards[other].tool_id}' ({-share:.2f})" for share, other in others[:_NAMED])
        more = ", ..." if len(others) > _NAMED else ""
        yield finding("near-duplicate", cards[one], "description", f"says nearly what {named}{more} says")


def lexical_pairs(words: Sequence[frozenset[str]], threshold: float = LEXICAL_THRESHOLD) -> Iterator[Pair]:
    """Every pair of sets whose Jaccard similarity reaches the threshold; sets of a few words are left out.

    Exact, by prefix filtering (Bayardo, Ma and Srikant, 2007): two sets as alike as this share one of their rarest
    words, so only sets that do are compared.
    """
    counts = Counter(word for one in words for word in one)
    rank = {word: place for place, word in enumerate(sorted(counts, key=lambda word: (counts[word], word)))}
    by_rarity = [sorted(rank[word] for word in one) for one in words]
    held: defaultdict[int, list[int]] = defaultdict(list)
    for place in sorted(range(len(words)), key=lambda place: len(words[place])):
        own = words[place]
        if len(own) < _MIN_WORDS:
            continue
        prefix = by_rarity[place][: len(own) - math.ceil(threshold * len(own)) + 1]
        least = threshold * len(own)
        for other in {other for word in prefix for other in held[word] if len(words[other]) >= least}:
            common = len(own & words[other])
            share = common / (len(own) + len(words[other]) - common)
            if share >= threshold:
                yield min(place, other), max(place, other), share
        for word in prefix:
            held[word].append(place)


def vector_pairs(vectors: NDArray[np.float32], threshold: float = VECTOR_THRESHOLD) -> Iterator[Pair]:
    """Every pair of unit rows whose cosine reaches the threshold."""
    for start in range(0, len(vectors), _BLOCK):
        cosines = vectors[start : start + _BLOCK] @ vectors[start:].T
        for row, column in zip(*np.nonzero(cosines >= threshold), strict=True):
            if column > row:
                yield start + int(row), start + int(column), float(cosines[row, column])


def words_of(card: ToolCard) -> frozenset[str]:
    """The words of a card's name, summary, description and parameter names."""
    own = " ".join((card.name, card.summary, card.description, *card.parameter_names))
    return frozenset(split_identifier(own))


def _confusable(one: ToolCard, other: ToolCard) -> bool:
    told_apart = _speaks_of(one, other) or _speaks_of(other, one)
    return share_callers(one, other) and said(one) != said(other) and not told_apart


def _own_word(card: ToolCard, of_other: frozenset[str]) -> bool:
    """Whether a word of the card's name stands in its text too, and nowhere in the other card."""
    return not {*split_identifier(card.name)}.isdisjoint({*split_identifier(said(card))} - of_other)


def _speaks_of(one: ToolCard, other: ToolCard) -> bool:
    """Whether a card says when to take the other."""
    texts = " ".join((*one.not_for, *one.prefer_over))
    return other.tool_id in texts or other.name in texts

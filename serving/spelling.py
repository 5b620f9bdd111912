"""Spelling: which words of a vocabulary an unknown word is one slip away from.

A slip is one letter missing, added, changed, or two neighbours swapped. The words of the vocabulary are filed under
every form they take when one letter is left out; a slip shares at least one such form with the word that was meant, so
that a look-up costs as many dictionary reads as the unknown word has letters.
"""

from __future__ import annotations

from collections.abc import Iterable

MIN_LETTERS = 4
"""Shorter words have too many neighbours: a correction would be a guess."""


class SpellingIndex:
    """The words of one vocabulary that can be meant by a slip: letters only, at least `MIN_LETTERS` long.

    It only grows. One thread may add while others look.
    """

    def __init__(self, vocabulary: Iterable[str] = ()) -> None:
        self._filed: dict[str, list[str]] = {}
        self._words: set[str] = set()
        self.add(vocabulary)

    def add(self, vocabulary: Iterable[str]) -> None:
        """File more words; those that are filed already stay as they are."""
        for word in set(vocabulary) - self._words:
            self._words.add(word)
            if len(word) >= MIN_LETTERS and word.isalpha():
                for form in _shortened(word):
                    self._filed.setdefault(form, []).append(word)

    def near(self, word: str) -> list[str]:
        """The words within one slip of `word`, sorted; none for a word that is too short or holds more than letters."""
        if len(word) < MIN_LETTERS or not word.isalpha():
            return []
        found = {near for form in _shortened(word) for near in self._filed.get(form, ())}
        return sorted(near for near in found if _one_slip_apart(word, near))


def _shortened(word: str) -> set[str]:
    return {word, *(word[:i] + word[i + 1 :] for i in range(len(word)))}


def _one_slip_apart(first: str, second: str) -> bool:
    """Whether the restricted Damerau-Levenshtein distance is at most 1."""
    if abs(len(first) - len(second)) > 1:
        return False
    start = 0
    while start < min(len(first), len(second)) and first[start] == second[start]:
        start += 1
    a, b = first[start:], second[start:]
    return a == b or a[1:] == b or a == b[1:] or a[1:] == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])

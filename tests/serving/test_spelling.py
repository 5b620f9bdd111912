"""One slip of the pen, and not two."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from serving.spelling import SpellingIndex

INDEX = SpellingIndex(["echo", "calendar", "calendars", "event", "tea", "ec2x"])


def test_every_kind_of_slip_is_found() -> None:
    for slip in ("ehco", "ecko", "eco" + "h", "echoo", "xecho"):
        assert INDEX.near(slip) == ["echo"], slip
    assert INDEX.near("calender") == ["calendar"]
    assert INDEX.near("evnt") == ["event"]


def test_two_slips_are_not_found() -> None:
    assert INDEX.near("kalender") == []


def test_short_words_and_words_with_digits_are_left_alone() -> None:
    assert INDEX.near("eco") == []
    assert INDEX.near("ec3x") == []
    assert SpellingIndex(["tea"]).near("teas") == []


def slips(word: str) -> set[str]:
    letters = "abc"
    cuts = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    changed = {a + letter + b[1:] for a, b in cuts if b for letter in letters}
    added = {a + letter + b for a, b in cuts for letter in letters}
    left_out = {a + b[1:] for a, b in cuts if b}
    swapped = {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
    return {word} | changed | added | left_out | swapped


words = st.text(alphabet="abc", min_size=4, max_size=6)


@given(st.sets(words, max_size=30), words)
def test_what_is_near_is_exactly_what_one_slip_makes(vocabulary: set[str], typed: str) -> None:
    assert SpellingIndex(vocabulary).near(typed) == sorted(word for word in vocabulary if word in slips(typed))

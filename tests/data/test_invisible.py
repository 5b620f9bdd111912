"""Invisible text: what hides is found, what belongs to a script is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.invisible import escaped, invisible_characters, mixed_scripts


@pytest.mark.parametrize(
    "text",
    [
        "plain text,\n\ttabs and lines",
        "tạo ảnh, поиск файлов, 検索, مرحبا",
        "family \U0001f468\u200d\U0001f469\u200d\U0001f467 and heart \u2764\ufe0f",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    ],
)
def test_writing_of_any_script_hides_nothing(text: str) -> None:
    assert invisible_characters(text) == []


def test_a_joiner_in_plain_text_or_in_a_run_of_joiners_hides() -> None:
    assert invisible_characters("se\u200dnd") == ["\u200d"]
    assert invisible_characters("\U0001f468\u200d\u200c\u200d\U0001f469") == ["\u200d", "\u200c"]


def test_each_hidden_character_is_named_once_in_order() -> None:
    assert invisible_characters("a\u200bb\u202ec\u200b") == ["\u200b", "\u202e"]


def test_escaping_shows_the_code_and_keeps_the_rest() -> None:
    assert escaped("a\u200bb\U000e0041\n") == "a\\u{200B}b\\u{E0041}\n"


@given(st.text())
def test_an_escaped_text_hides_nothing(text: str) -> None:
    assert invisible_characters(escaped(text)) == []


def test_scripts_are_mixed_only_where_they_look_alike() -> None:
    assert mixed_scripts("p\u0430ypal") == ["Cyrillic", "Latin"]
    assert mixed_scripts("search_検索") == []
    assert mixed_scripts("\u043f\u043e\u0438\u0441\u043a_2") == []

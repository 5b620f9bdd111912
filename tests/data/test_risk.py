"""Risk from a name: destruction wins, nouns are not verbs, and silence is careful."""

from __future__ import annotations

import pytest

from data.cards import Risk
from data.risk import DESTRUCTIVE_VERBS, READ_VERBS, WRITE_VERBS, WRITE_VERBS_OR_NOUNS, infer_risk, verb_risk


@pytest.mark.parametrize(
    ("name", "risk"),
    [
        ("getUserById", Risk.READ_ONLY),
        ("list_issues", Risk.READ_ONLY),
        ("calculate_tax", Risk.READ_ONLY),
        ("send_email", Risk.WRITE),
        ("createEvent", Risk.WRITE),
        ("get_or_create_user", Risk.WRITE),
        ("search_and_book", Risk.WRITE),
        ("book_flight", Risk.WRITE),
        ("delete_list", Risk.DESTRUCTIVE),
        ("todo_delete", Risk.DESTRUCTIVE),
        ("listAndPurge", Risk.DESTRUCTIVE),
        ("get_call_details", Risk.READ_ONLY),
        ("find_music_store", Risk.READ_ONLY),
        ("frobnicate", Risk.WRITE),
    ],
)
def test_the_verbs_of_a_name_say_the_risk(name: str, risk: Risk) -> None:
    assert infer_risk(name) is risk


def test_a_name_without_a_verb_takes_it_from_the_description() -> None:
    assert infer_risk("weather", "Retrieves the weather of a city.") is Risk.READ_ONLY
    assert infer_risk("DelTemp", "Deletes all temporary keys.") is Risk.DESTRUCTIVE
    assert infer_risk("weather", "The weather, got and listed.") is Risk.WRITE


def test_a_reassuring_description_does_not_soften_a_name() -> None:
    assert infer_risk("delete_user", "Retrieves a user.") is Risk.DESTRUCTIVE


def test_a_name_without_a_known_verb_says_nothing() -> None:
    assert verb_risk("weather") is None


def test_no_verb_stands_in_two_tables() -> None:
    tables = (READ_VERBS, WRITE_VERBS, WRITE_VERBS_OR_NOUNS, DESTRUCTIVE_VERBS)
    assert len(frozenset().union(*tables)) == sum(map(len, tables))

"""Cards, catalogs and their text: careful defaults, one canonical form, and names split into words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from data.card_text import card_text, server_text, shorten
from data.cards import Risk, ToolCard, Trust
from data.catalog import Catalog, card_json
from data.errors import InputError
from data.words import split_identifier


def test_what_a_card_does_not_say_is_read_carefully() -> None:
    card = ToolCard(tool_id="a", name="a")
    assert (card.risk, card.trust, card.cost_usd, card.advertise) == (Risk.DESTRUCTIVE, Trust.THIRD_PARTY, None, False)


def test_sets_of_names_have_one_form() -> None:
    assert ToolCard(tool_id="a", name="a", tenants=("b", "a", "b")).tenants == ("a", "b")


def test_the_same_moment_is_the_same_card_whatever_its_zone() -> None:
    east, utc, bare = "2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00"
    cards = [ToolCard.model_validate({"tool_id": "a", "name": "a", "first_seen": s}) for s in (east, utc, bare)]
    assert {Catalog([card]).version for card in cards} == {Catalog([cards[0]]).version}
    assert cards[0].first_seen == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_card_does_not_change() -> None:
    with pytest.raises(ValidationError):
        ToolCard(tool_id="a", name="a").name = "b"


def test_a_catalog_refuses_the_same_id_twice() -> None:
    with pytest.raises(InputError, match=r"'a' is used by card 1 and card 3"):
        Catalog(ToolCard(tool_id=tool_id, name="x") for tool_id in "aba")


def test_the_version_follows_content_and_order() -> None:
    a, b = ToolCard(tool_id="a", name="a"), ToolCard(tool_id="b", name="b")
    versions = [Catalog(cards).version for cards in ([a, b], [b, a], [a], [a.model_copy(update={"core": True}), b])]
    assert len(set(versions)) == 4
    assert Catalog([a, b]).version == versions[0]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("addPerson", ["add", "person"]),
        ("appTableRecord_search", ["app", "table", "record", "search"]),
        ("getHTTPResponse", ["get", "http", "response"]),
        ("canvas-create-edge", ["canvas", "create", "edge"]),
        ("tạo_ảnh", ["tạo", "ảnh"]),
        ("検索", ["検索"]),
        ("", []),
    ],
)
def test_a_name_is_split_into_its_words(name: str, words: list[str]) -> None:
    assert split_identifier(name) == words


def test_what_a_server_says_is_a_text_of_its_own() -> None:
    card = ToolCard(tool_id="post.send", name="send", domain="post", server_description="Letters " * 60)
    assert server_text(card).startswith("post. Letters Letters")
    assert len(server_text(card)) < 160
    assert "Letters" not in card_text(card)
    assert server_text(card.model_copy(update={"server_description": " "})) == ""


def test_a_card_without_a_servers_text_is_written_as_before_there_was_one() -> None:
    card = ToolCard(tool_id="post.send", name="send")
    assert "server_description" not in card_json(card)
    assert Catalog([card]).version != Catalog([card.model_copy(update={"server_description": "x"})]).version


def test_the_card_text_never_names_the_rival() -> None:
    card = ToolCard(
        tool_id="post.send", name="send", domain="post", description="Send a mail.", not_for=("chat messages",)
    )
    assert "chat" not in card_text(card)
    assert card_text(card).startswith("post send")


def test_texts_are_cut_between_words() -> None:
    assert shorten("one two  three", 8) == "one two"
    assert shorten("abcdefgh", 4) == "abcd"

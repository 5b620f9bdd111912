"""Which cards of a catalog are those of an earlier one, so that what was made of them holds."""

from __future__ import annotations

from data.cards import ToolCard
from data.catalog import Catalog

PARAMETERS = {"to": {"type": "string"}, "body": {"type": "string", "maxLength": 1}}


def card(name: str, **changes: object) -> ToolCard:
    return ToolCard.model_validate(
        {"tool_id": name, "name": name, "input_schema": {"properties": PARAMETERS}, **changes}
    )


def test_equal_cards_are_found_wherever_they_stand() -> None:
    earlier = Catalog([card("a"), card("b"), card("c")])
    assert Catalog([card("c"), card("new"), card("a", core=True), card("b")]).rows_in(earlier) == [2, -1, -1, 1]


def test_what_python_takes_for_equal_is_another_card() -> None:
    schema = {"properties": {**PARAMETERS, "body": {"type": "string", "maxLength": True}}}
    assert Catalog([card("a", input_schema=schema)]).rows_in(Catalog([card("a")])) == [-1]


def test_another_order_of_the_parameters_is_another_card_to_read() -> None:
    turned = card("a", input_schema={"properties": dict(reversed(PARAMETERS.items()))})
    assert Catalog([turned]).rows_in(Catalog([card("a")])) == [-1]
    assert Catalog([turned]).version == Catalog([card("a")]).version


def test_a_catalog_that_takes_over_texts_has_the_version_it_would_have() -> None:
    first = Catalog([card("a"), card("b")])
    cards = [first.cards[1], card("new")]
    assert Catalog(cards, first).version == Catalog(cards).version
    assert Catalog(cards, first).texts[0] is first.texts[1]

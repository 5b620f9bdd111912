"""Side by side: the same requests to two bundles in turns, over a catalog with hostile cards written to be chosen."""

from __future__ import annotations

import tiny
from tiny import Trained

from data.cards import Risk, Trust
from data.catalog import Catalog
from data.queries import Query
from training.poisoned import CARDS_A_KIND, poisoned
from training.side_by_side import side_by_side


def many() -> list[Query]:
    """Every logged request as a query of its own."""
    return [
        Query(qid=f"{tool_id} {number}", text=goal, gold=(tool_id,))
        for tool_id in tiny.catalog().ids
        for number, goal in enumerate(tiny.goals(tool_id))
    ]


def test_hostile_cards_stand_behind_the_catalog_and_change_nothing_else() -> None:
    catalog = tiny.catalog()
    tainted, sample, hostile = poisoned(catalog, many())
    assert tainted.cards[: len(catalog)] == catalog.cards
    added = tainted.cards[len(catalog) :]
    assert {card.tool_id for card in added} == hostile
    assert len(added) == 3 * CARDS_A_KIND
    assert {(card.risk, card.trust) for card in added} == {(Risk.READ_ONLY, Trust.THIRD_PARTY)}
    texts = [card.description for card in added]
    assert sum("always call this tool first" in text for text in texts) == CARDS_A_KIND
    assert sum("instead of any other" in text for text in texts) == CARDS_A_KIND
    assert all(query.gold for query in sample)


def test_the_same_seed_attacks_the_same_requests() -> None:
    one, other, third = (poisoned(tiny.catalog(), many(), seed) for seed in (1, 1, 2))
    assert one[0].version == other[0].version
    assert one[1] == other[1]
    assert one[1] != third[1]


def test_an_id_that_is_taken_is_left_to_its_owner() -> None:
    card = tiny.catalog().cards[0]
    catalog = Catalog([*tiny.catalog(), card.model_copy(update={"tool_id": "mirror.0", "name": "mine"})])
    tainted, _, hostile = poisoned(catalog, many())
    assert "mirror.0" not in hostile
    assert tainted["mirror.0"].name == "mine"


def test_the_same_bundle_on_both_sides_answers_the_same(trained: Trained) -> None:
    ours, theirs = side_by_side(trained.bundle, trained.bundle, trained.catalog, many())
    assert len(ours) == len(theirs) == 60
    timeless = [
        [{name: value for name, value in row.items() if name != "ms"} for row in side] for side in (ours, theirs)
    ]
    assert timeless[0] == timeless[1]
    assert all(0.0 <= row["poisoned"] <= 1.0 and row["ms"] > 0.0 for row in ours)
    assert all(row["poisoned"] > 0.0 for row in ours if row["poisoned_first"])
    assert any(row["poisoned"] > 0.0 for row in ours), "an attack that never gets anywhere tells nothing"


def test_few_requests_are_sampled_as_they_are(trained: Trained) -> None:
    ours, _ = side_by_side(trained.bundle, trained.bundle, trained.catalog, many()[:7])
    assert len(ours) == 7

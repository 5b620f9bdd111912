"""The bundle's past and the catalog it meets: its own, hardly its own, another one."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
from tiny import Trained

from data.cards import ToolCard
from data.catalog import Catalog
from data.errors import InputError
from serving.bundle import load_bundle
from serving.memory import Link, Usage, make_usage
from serving.past import doubt, fitting, kinship
from serving.selector import Selector
from serving.settings import SelectorSettings


def past(tools: int) -> Usage:
    links = [Link(0, f"past.t{number}", 1.0) for number in range(tools)]
    return make_usage(np.eye(1, 4, dtype=np.float32), [*links, Link(0, None, 1.0)], [0])


def catalog(known: int, new: int) -> Catalog:
    ids = [*(f"past.t{number}" for number in range(known)), *(f"new.t{number}" for number in range(new))]
    return Catalog(ToolCard(tool_id=tool, name=tool) for tool in ids)


@pytest.mark.parametrize(
    ("known", "new", "kin"),
    [
        (100, 0, "own"),
        (100, 5000, "own"),
        (50, 50, "own"),
        (49, 10, "thin"),
        (10, 500, "thin"),
        (5, 5, "thin"),
        (1, 0, "thin"),
        (9, 10, "thin"),
        (9, 100, "foreign"),
        (1, 500, "foreign"),
        (0, 1, "foreign"),
    ],
)
def test_a_catalog_is_the_pasts_own_by_the_share_of_its_tools(known: int, new: int, kin: str) -> None:
    usage, met = past(100), catalog(known, new)
    assert kinship(usage, met) == kin
    assert bool(doubt(usage, met)) is (kin != "own")
    assert (fitting(usage, met) is usage) is (kin != "foreign")
    assert not any(character.isdigit() for character in doubt(usage, met)), "callers read it"


def test_without_a_past_every_catalog_is_its_own() -> None:
    assert kinship(Usage.empty(4), catalog(0, 3)) == "own"


def test_one_equal_name_does_not_make_another_catalog_this_one(trained: Trained) -> None:
    others = [ToolCard(tool_id=f"x.t{number}", name=f"t{number}", description="Do it.") for number in range(20)]
    foreign = Catalog([*others, tiny.catalog()["mail.send_message"]])
    with pytest.raises(InputError, match="trained on another catalog: 1 of the 11 tools"):
        Selector.load(trained.bundle, foreign)
    carried = Selector.load(trained.bundle, foreign, settings=SelectorSettings(allow_foreign_catalog=True))
    found = carried.select(tiny.no_tool_goals()[0], request_id="r")
    assert found.abstention.outcome == "menu"
    assert [(one.stage, one.kind) for one in found.degradations] == [("retrieve", "standing")]


def test_a_catalog_that_has_lost_most_of_its_tools_turns_nobody_away_for_what_once_fitted_nothing(
    trained: Trained,
) -> None:
    few = Catalog(tiny.catalog().cards[:4])
    found = Selector.load(trained.bundle, few).select(tiny.no_tool_goals()[0], request_id="r")
    whole = Selector.load(trained.bundle, tiny.catalog()).select(tiny.no_tool_goals()[0], request_id="r")
    assert "few of the tools in the bundle's past" in found.degradations[0].what
    assert whole.degradations == ()
    assert found.abstention.fit is not None
    assert whole.abstention.fit is not None
    assert found.abstention.fit > whole.abstention.fit


def test_what_follows_is_served_though_it_has_become_another_catalog(trained: Trained) -> None:
    """A registry's decisions are to be followed; a service that starts with such a pair is told instead."""
    first = Selector.load(trained.bundle, tiny.catalog())
    other = Catalog([ToolCard(tool_id="x.send_email", name="send_email", description="Send an email.")])
    second = Selector(load_bundle(trained.bundle), other, earlier=first)
    found = second.select("send the email", request_id="r")
    assert found.ranking == ("x.send_email",)
    assert found.degradations[0].kind == "standing"

"""Missing: a step that nothing fits names a connection where a card advertises it, and where it would help."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny
from tiny import Trained

from data.cards import Requires
from data.catalog import Catalog
from data.context import Caller
from serving.bundle import load_bundle, seal
from serving.door.translate import answer
from serving.selector import Selector
from serving.service.asking import Decided
from serving.settings import SelectorSettings
from serving.several import select_several
from serving.slice import Slice

MAIL = "mail.send_message"
GOAL = tiny.goals(MAIL)[0] + " on monday"
CONNECTED = Caller(principal="p", connections=("mail",))


def catalog(**rules: object) -> Catalog:
    """The catalog, with what the mail tool asks for."""
    changed = {"requires": Requires(connections=("mail",)), "advertise": True, **rules}
    return Catalog(card.model_copy(update=changed if card.tool_id == MAIL else {}) for card in tiny.catalog())


@pytest.fixture(scope="module")
def strict(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trained bundle with a threshold between the step as it fits with the mail tool, and as it does without."""
    selector = load(trained.bundle, catalog())
    fits = [selector.judge(GOAL, who).stance.fit for who in (Caller(), CONNECTED)]
    assert fits[0] is not None
    assert fits[1] is not None
    assert fits[0] < fits[1], "the step is served by the mail tool"
    folder = tmp_path_factory.mktemp("missing") / "bundle"
    shutil.copytree(trained.bundle, folder)
    between = (fits[0] + fits[1]) / 2
    seal(folder, load_bundle(folder).manifest.model_copy(update={"missing_below": between, "widen_below": between}))
    return folder


def load(bundle: Path, of: Catalog) -> Selector:
    return Selector.load(bundle, of, settings=SelectorSettings(explore_rate=0.0))


def alone(selector: Selector, who: Caller) -> Slice:
    return selector.select(GOAL, who, request_id="r")


def together(selector: Selector, who: Caller) -> Slice:
    return select_several(selector, [GOAL, GOAL + " too"], who, request_id="r")


@pytest.mark.parametrize("ask", [alone, together])
def test_what_is_missing_is_named_where_its_card_advertises_it(
    strict: Path, ask: Callable[[Selector, Caller], Slice]
) -> None:
    found = ask(load(strict, catalog()), Caller())
    assert found.abstention.outcome == "missing_capability"
    assert found.abstention.missing_connections == ("mail",)
    assert "The user could connect: mail." in found.abstention.advice
    assert MAIL not in found.public().model_dump_json(), "the connection is named, not the tool"


@pytest.mark.parametrize("ask", [alone, together])
def test_over_http_it_is_a_field_and_not_words_alone(strict: Path, ask: Callable[[Selector, Caller], Slice]) -> None:
    selector = load(strict, catalog())
    told = answer(Decided(ask(selector, Caller()), cached=False), selector.catalog, "discovery", "text").model_dump()
    assert [part["abstention"]["missing_connections"] for part in (told, *told["parts"])] == [["mail"]] * (
        1 + len(told["parts"])
    )


@pytest.mark.parametrize(
    "rules",
    [
        {"advertise": False},
        {"requires": Requires(connections=("mail",), scopes=("post",))},
        {"tenants": ("other",)},
        {"requires": Requires(connections=("mail",)), "envs": ("production",)},
    ],
    ids=["not advertised", "a scope is missing too", "another tenant's", "of another environment"],
)
def test_nothing_is_named_that_is_not_advertised_or_would_not_help(strict: Path, rules: dict[str, object]) -> None:
    found = alone(load(strict, catalog(**rules)), Caller())
    assert found.abstention.outcome == "missing_capability"
    assert found.abstention.missing_connections == ()
    assert "connect" not in found.abstention.advice


def test_who_is_connected_is_told_of_nothing(strict: Path) -> None:
    found = alone(load(strict, catalog()), CONNECTED)
    assert found.abstention.outcome == "menu"
    assert MAIL in {entry.tool_id for entry in found.menu}

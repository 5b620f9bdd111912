"""The service on a registry: a decision there is served at the next look, whatever else is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from shop import TOOLS, Shop, open_shop, shown, tool

from data.cards import ToolCard
from data.registry import content_of
from data.store.approved import Approved
from data.store.database import open_database
from data.store.registry import Registry
from serving.live import UnfitError

NEW = ToolCard.model_validate(tool("shop.parcel", "Track the parcel of an order with quartzword."))
ORDERS = "shop.orders"


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    database = open_database(tmp_path / "registry.db")
    registry = Registry(database)
    registry.offer([ToolCard.model_validate(row) for row in TOOLS], "shop", "job")
    registry.approve_all("anna")
    yield registry
    database.close()


@pytest.fixture
def shop(tmp_path: Path, registry: Registry) -> Iterator[Shop]:
    with open_shop(tmp_path, catalog=Approved(registry.database)) as opened:
        yield opened


def offer(registry: Registry, *, without: str = "", also: tuple[ToolCard, ...] = ()) -> None:
    cards = [
        ToolCard.model_validate(row) for row in TOOLS if row["tool_id"] not in {without, *(c.tool_id for c in also)}
    ]
    registry.offer([*cards, *also], "shop", "job")


def poll(shop: Shop) -> None:
    shop.assembly.watch.poll()


def test_what_waits_is_not_shown_and_once_approved_is_found(shop: Shop, registry: Registry) -> None:
    offer(registry, also=(NEW,))
    poll(shop)
    assert "parcel" not in json.dumps(shop.select("track the parcel quartzword")["menu"])
    registry.approve(NEW.tool_id, content_of(NEW), "anna")
    poll(shop)
    assert NEW.tool_id in shown(shop.select("track the parcel quartzword"))


def test_a_changed_text_waits_and_the_approved_one_is_shown(shop: Shop, registry: Registry) -> None:
    before = shop.select("list the orders")
    changed = ToolCard.model_validate(tool(ORDERS, "List the orders and send them to zebraland."))
    offer(registry, also=(changed,))
    poll(shop)
    after = shop.select("list the orders")
    assert (after["rendered"], after["cached"]) == (before["rendered"], True), "nothing has changed at all"
    registry.approve(ORDERS, content_of(changed), "anna")
    poll(shop)
    assert "zebraland" in json.dumps(shop.select("list the orders")["rendered"])


@pytest.mark.parametrize("how", ["rejected", "gone from its source"])
def test_a_tool_that_is_taken_away_is_gone_and_cannot_be_called(shop: Shop, registry: Registry, how: str) -> None:
    before = shop.select("list the orders")
    assert ORDERS in shown(before)
    if how == "rejected":
        registry.reject(ORDERS, content_of(next(c for c in registry.shown() if c.tool_id == ORDERS)), "anna")
    else:
        offer(registry, without=ORDERS)
    poll(shop)
    assert ORDERS not in json.dumps(shop.select("list the orders"))
    assert shop.check(before["slice_id"], ORDERS)["rule"] == "not_available"


@pytest.fixture
def unfit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing new is fit to serve."""

    def refuse(_: object) -> None:
        raise UnfitError("a model fails")

    monkeypatch.setattr("serving.live.verify", refuse)


def test_what_is_taken_away_is_hidden_even_if_nothing_new_can_be_served(
    shop: Shop, registry: Registry, unfit: None
) -> None:
    before = shop.select("list the orders")
    offer(registry, without=ORDERS)
    swap = shop.assembly.watch.poll()
    assert swap is not None
    assert not swap.accepted
    assert ORDERS not in json.dumps(shop.select("list the orders"))
    assert shop.check(before["slice_id"], ORDERS)["rule"] == "not_available"
    assert "shop.refund" in shown(shop.select("refund the order")), "what is still approved serves on"


def test_a_card_that_was_narrowed_is_hidden_while_the_new_one_cannot_be_served(
    shop: Shop, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrowed = next(c for c in registry.shown() if c.tool_id == ORDERS).model_copy(update={"tenants": ("rival",)})
    offer(registry, also=(narrowed,))
    registry.approve(ORDERS, content_of(narrowed), "anna")
    with monkeypatch.context() as broken:
        broken.setattr("serving.live.verify", lambda _: (_ for _ in ()).throw(UnfitError("a model fails")))
        poll(shop)
        assert ORDERS not in json.dumps(shop.select("list the orders"))
        assert ORDERS not in json.dumps(shop.select("list the orders", who="rita"))
    offer(registry, also=(narrowed, NEW))
    registry.approve(NEW.tool_id, content_of(NEW), "anna")
    poll(shop)
    assert ORDERS not in json.dumps(shop.select("list the orders"))
    assert ORDERS in shown(shop.select("list the orders", who="rita"))


def test_the_last_tool_can_be_taken_away(shop: Shop, registry: Registry) -> None:
    registry.offer([], "shop", "job")
    poll(shop)
    assert shown(shop.select("list the orders")) == ["toolcrib.search_tools"]
    offer(registry)
    poll(shop)
    assert ORDERS in shown(shop.select("list the orders")), "it came back as it was"


def test_while_the_registry_is_away_what_was_approved_serves_on(shop: Shop, registry: Registry) -> None:
    assert registry.database.file is not None
    hidden = registry.database.file.rename(registry.database.file.with_suffix(".away"))
    reports = [shop.assembly.watch.poll() for _ in range(3)]
    assert reports[0] is not None
    assert "is gone" in reports[0].problem
    assert reports[1:] == [None, None]
    assert ORDERS in shown(shop.select("list the orders"))
    hidden.rename(registry.database.file)
    assert shop.assembly.watch.poll() is None

"""The store away: menus and outcomes go on, what needs the store says so, and nothing is lost or doubled."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import pytest
from shop import Shop, error_of, open_shop

from data.store.errors import QueueFullError
from data.store.ledger import Ledger
from data.store.writer import Stored

REFUND = {"order": "A-17", "amount": 12.5}
TABLES = ("decisions", "outcomes", "tickets", "observations")


def away(shop: Shop) -> None:
    """Make every use of the database fail, as a broken one does."""
    with shop.assembly.database.engine.begin() as connection:
        for table in TABLES:
            connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO hidden_{table}")


def back(shop: Shop) -> None:
    with shop.assembly.database.engine.begin() as connection:
        for table in TABLES:
            connection.exec_driver_sql(f"ALTER TABLE hidden_{table} RENAME TO {table}")


def test_menus_and_outcomes_go_to_the_spool_and_come_home_once(shop: Shop) -> None:
    away(shop)
    found = shop.select("list the orders")
    assert found["recorded"] is True
    for _ in range(2):
        kept = shop.report("k", found["slice_id"], "shop.orders")
        assert kept["results"] == [{"key": "k", "stored": "spool"}]
    assert shop.figure("store_degraded") == 1
    ready = shop.client.get("/readyz").json()
    assert (ready["status"], ready["store"]) == ("ok", "degraded")
    back(shop)
    shop.assembly.writer.recover()
    assert shop.figure("store_degraded") == 0
    (trace,) = Ledger(shop.assembly.database).traces()
    assert (trace.slice_id, trace.tool_id) == (found["slice_id"], "shop.orders")


def test_a_call_that_needs_no_ticket_is_still_decided_and_one_that_does_is_not(shop: Shop) -> None:
    away(shop)
    slice_id = shop.select("cancel the order")["slice_id"]
    assert shop.check(slice_id, "shop.note")["verdict"] == "allow"
    assert shop.check(slice_id, "shop.cancel", {})["verdict"] == "invalid"
    answer = shop.post("/v1/check", {"slice_id": slice_id, "tool_id": "shop.cancel", "arguments": REFUND})
    error_of(answer, 503, "store_unavailable")
    assert int(answer.headers["retry-after"]) >= 1
    for path, body, who in (
        ("/v1/confirm", {"ticket": "t", "decision": "approve"}, "carl"),
        ("/v1/observations", {"slice_id": slice_id, "tool_id": "t", "content": "c"}, "ann"),
        ("/v1/describe", {"slice_id": "of another replica", "tool_id": "shop.cancel"}, "ann"),
        ("/v1/select", {"after": {"slice_id": "older", "tool_id": "t", "error_class": "auth"}}, "ann"),
    ):
        error = error_of(shop.post(path, body, who), 503, "store_unavailable")
        assert "hidden" not in str(error), "what the driver said is not passed on"
        assert "SELECT" not in str(error)
    error_of(shop.get("/v1/slices/never", "olga"), 503, "store_unavailable")
    error_of(shop.get("/v1/observations/never"), 503, "store_unavailable")


def test_a_menu_that_cannot_be_recorded_is_given_and_says_so(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> Future[Stored]:
        raise QueueFullError("full")

    monkeypatch.setattr(shop.assembly.writer, "submit", full)
    found = shop.select("list the orders")
    assert found["recorded"] is False
    assert shop.figure("unrecorded_total") == 1
    assert shop.check(found["slice_id"], "shop.orders")["verdict"] == "allow"
    outcome = {"key": "k", "slice_id": found["slice_id"], "tool_id": "shop.orders", "outcome": "success"}
    error_of(shop.post("/v1/outcomes", {"outcomes": [outcome]}), 503, "store_unavailable")
    assert shop.figure("outcomes_total", outcome="success", error_class="none") == 0


def test_a_menu_does_not_wait_for_a_store_that_hangs(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    never: Future[Stored] = Future()
    monkeypatch.setattr(shop.assembly.writer, "submit", lambda _: never)
    monkeypatch.setattr(shop.assembly.door.service, "kept_within_s", 0.001)
    assert shop.select("list the orders")["recorded"] is False


def test_what_was_acknowledged_before_an_end_without_a_goodbye_is_there_after_it(tmp_path: Path) -> None:
    with open_shop(tmp_path) as shop:
        away(shop)
        slice_id = shop.select("list the orders")["slice_id"]
        shop.report("k", slice_id, "shop.orders")
        back(shop)
    with open_shop(tmp_path) as shop:
        shop.assembly.writer.recover()
        assert [trace.slice_id for trace in Ledger(shop.assembly.database).traces()] == [slice_id]

"""More work than there are hands: what cannot be answered in time is refused at once, and what is known is answered."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from shop import Shop, error_of, open_shop

SMALL = {"pool": {"workers": 1, "queue": 0}}


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Shop]:
    with open_shop(tmp_path, **SMALL) as opened:
        yield opened


@pytest.fixture
def busy(small: Shop) -> Iterator[Event]:
    """The only worker is held until the event is set."""
    held, began = Event(), Event()

    def hold() -> None:
        began.set()
        held.wait(30)

    work: Future[None] = small.assembly.pool.submit(hold)
    assert began.wait(30)
    yield held
    held.set()
    work.result(30)


def test_a_menu_that_would_wait_too_long_is_refused_and_told_when_to_come_back(small: Shop, busy: Event) -> None:
    answer = small.post("/v1/select", {"goal": "list the orders"})
    error_of(answer, 503, "overloaded")
    assert int(answer.headers["retry-after"]) >= 1
    assert small.figure("pool_shed") == 1
    assert small.figure("http_requests_total", route="/v1/select", status="503") == 1


def test_a_known_menu_and_the_gate_are_served_all_the_same(small: Shop) -> None:
    slice_id = small.select("list the orders")["slice_id"]
    held, began = Event(), Event()

    def hold() -> None:
        began.set()
        held.wait(30)

    work = small.assembly.pool.submit(hold)
    assert began.wait(30)
    try:
        assert small.select("list the orders")["cached"] is True
        assert small.check(slice_id, "shop.orders")["verdict"] == "allow"
        small.report("k", slice_id, "shop.orders")
        assert small.client.get("/readyz").status_code == 200
    finally:
        held.set()
        work.result(30)


def test_what_was_let_in_is_finished_while_the_service_drains(small: Shop) -> None:
    held, began = Event(), Event()
    service = small.assembly.door.service
    decide = service.decide

    def slow(ask: object) -> object:
        began.set()
        held.wait(30)
        return decide(ask)  # type: ignore[arg-type]

    service.decide = slow  # type: ignore[method-assign,assignment]
    with ThreadPoolExecutor(2) as threads:
        answer = threads.submit(small.select, "list the orders")
        assert began.wait(30)
        drained = threads.submit(small.assembly.pool.drain, 30)
        held.set()
        assert answer.result(30)["recorded"]
        assert drained.result(30)
    error_of(small.post("/v1/select", {"goal": "cancel the order"}), 503, "overloaded")

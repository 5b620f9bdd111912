"""Tickets on both databases: bound to the call, good once, for a while, and to their owner alone."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest
import sqlalchemy as sa

from data.store.database import Database, open_database
from data.store.tables import tickets as table
from serving.gate.tickets import Binding, Issued, Refusal, Ticket, Tickets

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TTL = timedelta(minutes=5)
CALL = Binding("acme", "ann", "pay.refund", "0" * 64, "slice-1")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = open_database(database_url)
    yield opened
    opened.close()


@pytest.fixture
def tickets(database: Database) -> Tickets:
    return Tickets(database, TTL)


def approved(tickets: Tickets, call: Binding = CALL) -> str:
    token = tickets.issue("confirm", call, NOW).token
    assert tickets.decide(token, approve=True, tenant="acme", by="boss", now=NOW) is not None
    return token


def test_the_database_does_not_hold_the_token(tickets: Tickets, database: Database) -> None:
    token = tickets.issue("confirm", CALL, NOW).token
    with database.engine.connect() as connection:
        (row,) = connection.execute(sa.select(table)).all()
    assert token not in map(str, row)
    assert len(token) >= 32


def test_an_approved_ticket_is_good_once(tickets: Tickets) -> None:
    token = approved(tickets)
    assert tickets.use(token, "confirm", CALL, NOW) is None
    assert tickets.use(token, "confirm", CALL, NOW) == "used"


@pytest.mark.parametrize("change", [{"tool_id": "pay.void"}, {"arguments_hash": "1" * 64}, {"slice_id": "slice-2"}])
def test_another_call_is_refused_and_does_not_burn_the_ticket(tickets: Tickets, change: dict[str, str]) -> None:
    token = approved(tickets)
    assert tickets.use(token, "confirm", CALL._replace(**change), NOW) == "mismatch"
    assert tickets.use(token, "confirm", CALL, NOW) is None


@pytest.mark.parametrize("change", [{"principal": "bob"}, {"tenant": "rival"}])
def test_somebody_elses_ticket_looks_like_none(tickets: Tickets, change: dict[str, str]) -> None:
    token = approved(tickets)
    other = CALL._replace(**change)
    assert tickets.use(token, "confirm", other, NOW) == "unknown" == tickets.use("never was", "confirm", other, NOW)
    assert tickets.find(token, other.tenant, other.principal, NOW) is None
    assert tickets.find(token, "acme", "ann", NOW) == Ticket("confirm", "approved", NOW + TTL, CALL)


def test_a_ticket_ends_and_cannot_be_decided_or_used_after(tickets: Tickets) -> None:
    token, waiting = approved(tickets), tickets.issue("confirm", CALL, NOW)
    assert waiting.expires == NOW + TTL
    end = NOW + TTL
    assert tickets.use(token, "confirm", CALL, end) == "expired"
    assert tickets.find(token, "acme", "ann", end) is None
    assert tickets.decide(waiting.token, approve=True, tenant="acme", by="boss", now=end) is None
    assert tickets.use(token, "confirm", CALL, end - timedelta(microseconds=1)) is None


def test_what_waits_or_was_refused_is_not_used(tickets: Tickets) -> None:
    token = tickets.issue("confirm", CALL, NOW).token
    assert tickets.use(token, "confirm", CALL, NOW) == "pending"
    refused = tickets.decide(token, approve=False, tenant="acme", by="boss", now=NOW, note="not today\0\ud800")
    assert refused is not None
    assert refused.state == "refused"
    assert tickets.use(token, "confirm", CALL, NOW) == "refused"


def test_a_decision_stands_and_belongs_to_the_tenant(tickets: Tickets) -> None:
    token = tickets.issue("confirm", CALL, NOW).token
    assert tickets.decide(token, approve=True, tenant="rival", by="eve", now=NOW) is None
    assert tickets.decide(token, approve=False, tenant="acme", by="boss", now=NOW) is not None
    assert tickets.decide(token, approve=True, tenant="acme", by="boss", now=NOW) is None
    assert tickets.use(token, "confirm", CALL, NOW) == "refused"


def test_a_person_cannot_decide_a_dry_run_nor_a_dry_run_a_confirmation(tickets: Tickets) -> None:
    confirm, dry = tickets.issue("confirm", CALL, NOW).token, tickets.issue("dry_run", CALL, NOW).token
    assert tickets.decide(dry, approve=True, tenant="acme", by="boss", now=NOW) is None
    assert tickets.dry_run_done(confirm, True, tenant="acme", principal="ann", now=NOW) is None
    assert tickets.dry_run_done(dry, True, tenant="acme", principal="bob", now=NOW) is None
    assert tickets.dry_run_done(dry, True, tenant="acme", principal="ann", now=NOW) is not None
    assert tickets.use(dry, "confirm", CALL, NOW) == "mismatch"


def test_a_good_dry_run_is_exchanged_once_for_a_confirmation(tickets: Tickets) -> None:
    dry = tickets.issue("dry_run", CALL, NOW).token
    assert tickets.exchange(dry, CALL, NOW) == "pending"
    tickets.dry_run_done(dry, True, tenant="acme", principal="ann", now=NOW)
    assert tickets.exchange(dry, CALL._replace(arguments_hash="1" * 64), NOW) == "mismatch"
    issued = tickets.exchange(dry, CALL, NOW)
    assert isinstance(issued, Issued)
    assert tickets.find(issued.token, "acme", "ann", NOW) == Ticket("confirm", "pending", NOW + TTL, CALL)
    assert tickets.exchange(dry, CALL, NOW) == "used"


def test_of_racing_uses_exactly_one_wins(tickets: Tickets, database_url: str) -> None:
    other = open_database(database_url)  # as a second replica has it
    replicas = [tickets, Tickets(other, TTL)] * 3
    start = Barrier(len(replicas))

    def use(replica: Tickets, token: str) -> Refusal | None:
        start.wait()
        return replica.use(token, "confirm", CALL, NOW)

    with ThreadPoolExecutor(len(replicas)) as racers:
        for _ in range(5):
            found = list(racers.map(use, replicas, [approved(tickets)] * len(replicas)))
            assert sorted(map(str, found)) == ["None"] + ["used"] * (len(replicas) - 1)
    other.close()


def test_of_racing_exchanges_exactly_one_gets_a_confirmation(tickets: Tickets) -> None:
    start = Barrier(4)

    def exchange(token: str) -> Issued | Refusal:
        start.wait()
        return tickets.exchange(token, CALL, NOW)

    token = tickets.issue("dry_run", CALL, NOW).token
    tickets.dry_run_done(token, True, tenant="acme", principal="ann", now=NOW)
    with ThreadPoolExecutor(4) as racers:
        found = list(racers.map(exchange, [token] * 4))
    assert sorted(isinstance(one, Issued) for one in found) == [False, False, False, True]
    assert [one for one in found if not isinstance(one, Issued)] == ["used"] * 3

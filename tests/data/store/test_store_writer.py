"""The writer: what it acknowledges is kept, in the database or in the spool; the spool comes home once, in order."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from store_material import decision, outcome

from data.store import spool as spool_module
from data.store.database import Database, open_database
from data.store.errors import QueueFullError, SpoolFullError, StoreError
from data.store.ledger import Ledger
from data.store.privacy import TextRules
from data.store.spool import Spool
from data.store.tables import decisions, outcomes
from data.store.writer import Backoff, TraceWriter

WAIT_S = 30
NEVER = Backoff(first=3600, last=3600)
"""So that the tests decide when the database is tried again."""

Start = Callable[..., TraceWriter]


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = open_database(database_url)
    yield opened
    opened.close()


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    opened = Spool(tmp_path / "traces.spool")
    yield opened
    opened.close()


@pytest.fixture
def start(database: Database, spool: Spool) -> Iterator[Start]:
    started: list[TraceWriter] = []

    def make(**options: object) -> TraceWriter:
        writer = TraceWriter(Ledger(database), spool, **{"backoff": NEVER, **options})  # type: ignore[arg-type]
        started.append(writer)
        return writer

    yield make
    for writer in started:
        assert writer.close(WAIT_S)


def kept(database: Database) -> list[tuple[str, str]]:
    with database.engine.connect() as connection:
        wanted = sa.select(outcomes.c.key, outcomes.c.outcome).order_by(outcomes.c.key)
        return [(key, what) for key, what in connection.execute(wanted)]


def away(database: Database) -> None:
    """Make every write fail, as a broken database does."""
    with database.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE outcomes RENAME TO hidden")


def back(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE hidden RENAME TO outcomes")


def test_what_is_acknowledged_is_in_the_database(database: Database, start: Start) -> None:
    writer = start()
    assert writer.submit(outcome("k1")).result(WAIT_S) == "database"
    assert kept(database) == [("k1", "success")]
    assert (writer.state, writer.depth, writer.counters.database) == ("ok", 0, 1)


def test_many_records_that_wait_share_a_commit(database: Database, start: Start) -> None:
    writer, commits = start(), []
    sa.event.listen(database.engine, "commit", commits.append)
    with database.writing() as connection:
        hold(connection)
        futures = [writer.submit(outcome(f"k{number}")) for number in range(200)]
    assert [future.result(WAIT_S) for future in futures] == ["database"] * 200
    assert len(commits) <= 4  # this test's own, one for what came before the lock was met, and the rest
    assert len(kept(database)) == 200


def test_a_full_queue_says_so_at_once(database: Database, start: Start) -> None:
    writer = start(capacity=3)
    with database.writing() as connection:
        hold(connection)
        with pytest.raises(QueueFullError, match="3 records wait"):
            fill(writer)
    assert writer.drain(WAIT_S)
    assert writer.counters.refused == 1
    assert writer.counters.database == len(kept(database)) >= 3


def test_a_drain_that_takes_too_long_says_so(database: Database, start: Start) -> None:
    writer = start()
    with database.writing() as connection:
        hold(connection)
        writer.submit(outcome())
        assert not writer.drain(0.01)
    assert writer.drain(WAIT_S)


def test_a_closed_writer_keeps_what_waits_and_takes_no_more(database: Database, start: Start) -> None:
    writer = start()
    futures = [writer.submit(outcome(f"k{number}")) for number in range(50)]
    assert writer.close(WAIT_S)
    assert [future.result(0) for future in futures] == ["database"] * 50
    with pytest.raises(StoreError, match="closed"):
        writer.submit(outcome("late"))


def test_while_the_database_is_away_the_spool_stands_in(database: Database, start: Start) -> None:
    writer = start()
    away(database)
    assert writer.submit(outcome("k1")).result(WAIT_S) == "spool"
    assert writer.submit(decision("s1")).result(WAIT_S) == "spool"
    assert (writer.state, writer.counters.spool) == ("degraded", 2)
    back(database)
    assert writer.recover() == 3  # the decision's mask is one
    assert (writer.state, kept(database)) == ("ok", [("k1", "success")])
    assert Ledger(database).decision("s1") is not None
    assert writer.submit(outcome("k2")).result(WAIT_S) == "database"


def test_the_replay_makes_no_duplicates_and_the_first_report_stands(
    database: Database, spool: Spool, start: Start
) -> None:
    writer = start()
    assert writer.submit(outcome("k0")).result(WAIT_S) == "database"
    away(database)
    for key in ("k0", "k1"):
        assert writer.submit(outcome(key, outcome="failure")).result(WAIT_S) == "spool"
    back(database)
    # until the spool is home, what is new goes there too: here it may not overtake the first report of k1
    assert writer.submit(outcome("k1")).result(WAIT_S) == "spool"
    writer.recover()
    assert kept(database) == [("k0", "success"), ("k1", "failure")]
    assert spool.size == 0


def test_a_database_that_is_still_away_leaves_the_spool_as_it_is(
    database: Database, spool: Spool, start: Start
) -> None:
    writer = start()
    away(database)
    writer.submit(outcome("k1")).result(WAIT_S)
    before = spool.size
    with pytest.raises(sa.exc.SQLAlchemyError):
        writer.recover()
    assert (writer.state, spool.size) == ("degraded", before)
    back(database)


def test_it_comes_back_by_itself(database: Database, start: Start) -> None:
    writer = start(backoff=Backoff(first=0.01, last=0.01))
    away(database)
    assert writer.submit(outcome("k1")).result(WAIT_S) == "spool"
    back(database)
    assert reaches_the_database(writer)
    assert ("k1", "success") in kept(database)
    assert writer.state == "ok"


def test_what_an_earlier_run_left_in_the_spool_is_replayed_at_the_start(
    database: Database, spool: Spool, start: Start
) -> None:
    spool.append([outcome("k1")])
    writer = start()
    assert reaches_the_database(writer)
    assert ("k1", "success") in kept(database)


def test_a_disk_that_is_full_as_well_fails_the_record_and_not_the_service(
    database: Database, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int, content: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer = start()
    away(database)
    monkeypatch.setattr(spool_module.os, "pwrite", full)
    with pytest.raises(SpoolFullError, match="No space left on device"):
        writer.submit(outcome("k1")).result(WAIT_S)
    assert writer.counters.failed == 1
    monkeypatch.undo()
    back(database)
    assert writer.submit(outcome("k2")).result(WAIT_S) == "spool"


def test_one_record_that_cannot_be_kept_takes_no_other_with_it(database: Database, start: Start) -> None:
    writer = start()
    with database.writing() as connection:
        hold(connection)
        good = [writer.submit(outcome(f"k{number}")) for number in range(3)]
        bad = writer.submit(decision("bad", body={"score": float("nan")}))
        good += [writer.submit(outcome(f"k{number}")) for number in range(3, 6)]
    with pytest.raises(StoreError, match="could not be stored: ValueError"):
        bad.result(WAIT_S)
    assert [future.result(WAIT_S) for future in good] == ["database"] * 6
    assert writer.state == "ok"


def test_what_the_database_refuses_on_its_way_home_does_not_stop_the_rest(
    database: Database, spool: Spool, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    with database.engine.begin() as connection:
        connection.exec_driver_sql(NO_FAILURES[database.dialect])
    spool.append([outcome("k1"), outcome("k2", outcome="failure"), outcome("k3")])
    assert reaches_the_database(start())
    assert {("k1", "success"), ("k3", "success")} <= set(kept(database))
    assert "the database refuses it" in caplog.text
    assert spool.size == 0


def test_texts_are_hashed_before_they_reach_the_database_or_the_spool(
    database: Database, spool: Spool, start: Start
) -> None:
    writer = start(text=TextRules(b"salt" * 8))
    writer.submit(decision("s1")).result(WAIT_S)
    away(database)
    writer.submit(decision("s2")).result(WAIT_S)
    assert writer.submit(outcome("k1")).result(WAIT_S) == "spool"
    back(database)
    writer.recover()
    with database.engine.connect() as connection:
        found = connection.execute(sa.select(decisions.c.goal, decisions.c.principal)).all()
    assert len(set(found)) == 1
    assert "invoice" not in found[0].goal
    assert found[0].principal == TextRules(b"salt" * 8).principal("ann")


def hold(connection: sa.Connection) -> None:
    """Let nobody write outcomes until the transaction ends."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("LOCK TABLE outcomes IN EXCLUSIVE MODE")


def fill(writer: TraceWriter) -> None:
    for number in range(2000):
        writer.submit(outcome(f"k{number}"))


def reaches_the_database(writer: TraceWriter) -> bool:
    """Whether a later record goes to the database again, as it does once the spool is home."""
    return any(writer.submit(outcome(f"later {turn}")).result(WAIT_S) == "database" for turn in range(5000))


NO_FAILURES = {
    "sqlite": "CREATE TRIGGER strict BEFORE INSERT ON outcomes WHEN new.outcome = 'failure'"
    " BEGIN SELECT RAISE(ABORT, 'no failures here'); END",
    "postgresql": "ALTER TABLE outcomes ADD CHECK (outcome <> 'failure')",
}
"""A rule that a database may have been given and that a spooled record breaks."""

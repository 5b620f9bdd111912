"""PostgreSQL stops and starts again under a service: nothing that was acknowledged is lost, and nothing comes twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import postgres_server
import pytest
import sqlalchemy as sa
from postgres_server import Server
from store_material import outcome

from data.store.database import open_database
from data.store.errors import StoreError
from data.store.ledger import Ledger
from data.store.spool import Spool
from data.store.tables import outcomes
from data.store.writer import Backoff, TraceWriter

WAIT_S = 60


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of the test's own, since it is stopped."""
    try:
        with postgres_server.private_server() as started:
            yield started
    except postgres_server.UnavailableError as error:
        pytest.skip(f"no PostgreSQL: {error}")


def test_a_server_that_stops_and_starts_loses_nothing(server: Server, tmp_path: Path) -> None:
    database, spool = open_database(server.url), Spool(tmp_path / "traces.spool")
    writer = TraceWriter(Ledger(database), spool, backoff=Backoff(first=0.05, last=0.05))
    where = [writer.submit(outcome(f"before {number}")).result(WAIT_S) for number in range(20)]
    server.stop()
    where += [writer.submit(outcome(f"while {number}")).result(WAIT_S) for number in range(20)]
    assert where == ["database"] * 20 + ["spool"] * 20
    assert writer.state == "degraded"
    with pytest.raises(StoreError, match="cannot be opened"):
        open_database(server.url)

    server.start()
    # the writer finds out by itself; records go to the database again once the spool is home
    later = (writer.submit(outcome(f"after {turn}")).result(WAIT_S) for turn in range(100_000))
    after = next(turn for turn, kept_in in enumerate(later) if kept_in == "database")
    assert (writer.state, spool.size) == ("ok", 0)
    with database.engine.connect() as connection:
        kept = list(connection.scalars(sa.select(outcomes.c.key)))
    assert len(kept) == len(set(kept)) == 40 + after + 1
    assert writer.counters.failed == 0
    assert writer.close(WAIT_S)
    spool.close()
    database.close()

"""Opening a database: a path or a URL, its tables made once whoever comes first, and refusals that say why."""

from __future__ import annotations

import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from data.errors import InputError
from data.store.database import open_database
from data.store.errors import StoreError
from data.store.tables import metadata, observations

ROOT = Path(__file__).resolve().parents[3]


def test_the_migrations_make_exactly_the_tables_that_the_code_declares(blank_database_url: str) -> None:
    database = open_database(blank_database_url)
    with database.engine.connect() as connection:
        assert set(sa.inspect(connection).get_table_names()) == {*metadata.tables, "alembic_version"}
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    database.close()


def test_opening_it_again_keeps_what_is_in_it(database_url: str) -> None:
    with_row(database_url, "h1")
    again = open_database(database_url)
    with again.engine.connect() as connection:
        assert connection.scalar(sa.select(observations.c.handle)) == "h1"
    again.close()


def test_replicas_that_start_at_the_same_time_all_find_the_tables(blank_database_url: str) -> None:
    code = "import sys; from data.store.database import open_database; sys.stdin.read(); open_database(sys.argv[1])"
    command = [sys.executable, "-c", code, blank_database_url]
    replicas = [subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    for replica in replicas:
        assert replica.stdin is not None
        replica.stdin.close()  # all of them wait for this, so that they start together
    assert [(replica.stderr.read(), replica.wait()) for replica in replicas if replica.stderr] == [(b"", 0)] * 3


def test_a_moment_comes_back_as_the_same_moment_in_utc(database_url: str) -> None:
    given = datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=5)))
    with_row(database_url, "h1", created=given)
    database = open_database(database_url)
    with database.engine.connect() as connection:
        kept = connection.scalar(sa.select(observations.c.created).where(observations.c.created <= given))
    assert kept == given
    assert kept.utcoffset() == timedelta(0)
    database.close()


def test_a_moment_without_a_zone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sa.exc.StatementError, match="without a time zone"):
        with_row(str(tmp_path / "t.db"), "h1", created=datetime(2026, 3, 1))


def test_a_plain_path_is_a_sqlite_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "traces.db"
    database = open_database(path)
    assert database.file == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with database.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 1
    database.close()


def test_durability_against_power_loss_waits_for_the_disk(tmp_path: Path) -> None:
    database = open_database(tmp_path / "t.db", durability="power")
    with database.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
    database.close()


def test_a_database_of_a_newer_version_is_left_alone(database_url: str) -> None:
    database = open_database(database_url)
    with database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    database.close()
    with pytest.raises(StoreError, match="tables of version 9999"):
        open_database(database_url)


def test_a_file_that_is_no_database_is_refused_and_unharmed(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but somebody's notes " * 50)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not a database"):
        open_database(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "url", ["mysql://root@localhost/x", "sqlite://", "sqlite:///:memory:", "postgresql://host", "x://"]
)
def test_another_kind_of_url_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="give a path, sqlite:///PATH or postgresql://"):
        open_database(url)


def test_a_password_is_never_shown() -> None:
    with pytest.raises(StoreError) as refusal:
        open_database("postgresql://me:s3cret@127.0.0.1:1/none?connect_timeout=2")
    assert "s3cret" not in str(refusal.value)
    assert "me:***@127.0.0.1:1/none" in str(refusal.value)


def with_row(url: str, handle: str, created: datetime = datetime(2026, 3, 1, tzinfo=UTC)) -> None:
    """An observation in the database at `url`."""
    database = open_database(url)
    row = {"handle": handle, "created": created, "expires": datetime(2026, 3, 2, tzinfo=UTC), "tenant": "acme"}
    rest = {"principal": "ann", "slice_id": "s", "tool_id": "t", "media_type": "text/plain", "size": 0, "body": b""}
    with database.engine.begin() as connection:
        connection.execute(sa.insert(observations).values(**row, **rest))
    database.close()

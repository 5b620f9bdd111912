"""A process killed in the middle of its work: all that it acknowledged is there afterwards, exactly once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from store_material import outcome

from data.store.database import open_database
from data.store.ledger import Ledger
from data.store.spool import Spool
from data.store.tables import decisions, outcomes

ROOT, HERE = Path(__file__).resolve().parents[3], Path(__file__).resolve().parent

CHILD = """
import os, sys, threading
sys.path.insert(0, sys.argv[3])
from store_material import decision, outcome
from data.store.database import open_database
from data.store.ledger import Ledger
from data.store.spool import Spool
from data.store.writer import TraceWriter

writer = TraceWriter(Ledger(open_database(sys.argv[1])), Spool(sys.argv[2]))

def work(name):
    for number in range(100000):
        key = f"{name}-{number}"
        record = decision(key) if number % 2 else outcome(key)
        where = writer.submit(record).result()
        os.write(1, f"{key} {where}\\n".encode())

for name in ("a", "b", "c", "d"):
    threading.Thread(target=work, args=(name,), daemon=True).start()
threading.Event().wait()
"""


@pytest.mark.parametrize("lines", [1, 150])
def test_what_went_to_the_database_is_there(database_url: str, tmp_path: Path, lines: int) -> None:
    acknowledged = killed_after(lines, database_url, tmp_path / "traces.spool")
    assert set(acknowledged.values()) == {"database"}
    assert_each_there_once(database_url, acknowledged)


def test_what_went_to_the_spool_comes_home(database_url: str, tmp_path: Path) -> None:
    rename(database_url, "outcomes", "hidden")
    acknowledged = killed_after(150, database_url, tmp_path / "traces.spool")
    rename(database_url, "hidden", "outcomes")
    assert "spool" in acknowledged.values()
    come_home(database_url, tmp_path / "traces.spool")
    assert_each_there_once(database_url, acknowledged)


def test_a_process_killed_on_the_way_home_makes_no_duplicates(database_url: str, tmp_path: Path) -> None:
    old = [f"old-{number}" for number in range(3000)]
    spool = Spool(tmp_path / "traces.spool")
    spool.append([outcome(key) for key in old])
    spool.close()
    acknowledged = killed_after(1, database_url, tmp_path / "traces.spool")
    come_home(database_url, tmp_path / "traces.spool")
    assert_each_there_once(database_url, {**acknowledged, **dict.fromkeys(old, "spool")})


def killed_after(lines: int, url: str, spool: Path) -> dict[str, str]:
    """Run the child, kill it once it has acknowledged `lines` records, and give all that it acknowledged, and where."""
    open_database(url).close()
    command = [sys.executable, "-c", CHILD, url, str(spool), str(HERE)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        said = [child.stdout.readline() for _ in range(lines)]
        child.kill()
        said += child.stdout.readlines()
    assert child.returncode == -signal.SIGKILL
    # the kernel takes a line whole; one that was not written was not acknowledged to anybody
    return dict(line.split() for line in said)


def come_home(url: str, path: Path) -> None:
    database, spool = open_database(url), Spool(path)
    spool.replay(Ledger(database).append)
    spool.close()
    database.close()


def rename(url: str, table: str, name: str) -> None:
    database = open_database(url)
    with database.engine.begin() as connection:
        connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO {name}")
    database.close()


def assert_each_there_once(url: str, acknowledged: dict[str, str]) -> None:
    database = open_database(url)
    with database.engine.connect() as connection:
        kept = [*connection.scalars(sa.select(outcomes.c.key)), *connection.scalars(sa.select(decisions.c.slice_id))]
    database.close()
    assert acknowledged.keys() <= set(kept)
    assert len(set(kept)) == len(kept)

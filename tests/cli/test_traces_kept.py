"""The commands on what a service has kept: export for training, forget a person, let the past expire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from store_material import at, decision, outcome

from data.store.database import open_database
from data.store.ledger import Ledger
from data.store.privacy import text_rules
from data.trace_store import read_traces
from toolcrib.cli import main


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    database = open_database(database_url)
    yield Ledger(database)
    database.close()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.parquet"


def test_what_is_exported_is_what_the_ledger_has(
    ledger: Ledger, database_url: str, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger.append(
        [decision("s1"), outcome("k1"), decision("s2", ts=at(1), mutation=None), outcome("k2", "s2", ts=at(2))]
    )
    ledger.append([decision("alone"), outcome("k3", "gone"), outcome("k4", "gone")])
    assert main(["traces", "export", "--database", database_url, "-o", str(out)]) == 0
    assert read_traces(out) == list(ledger.traces())
    assert capsys.readouterr().out.splitlines() == [
        f"2 traces written to {out}",
        "left out: 1 decisions without an outcome",
        "left out: 2 outcomes without a decision",
    ]


def test_an_export_of_some_days_and_one_tenant(ledger: Ledger, database_url: str, out: Path) -> None:
    for day in (1, 2, 3):
        ts = datetime(2026, 3, day, tzinfo=UTC)
        ledger.append([decision(f"s{day}", ts=ts), outcome(f"k{day}", f"s{day}", ts=ts)])
    ledger.append([decision("other", tenant="rival"), outcome("k", "other", tenant="rival")])
    span = ["--since", "2026-03-01T01:00+01:00", "--until", "2026-03-03", "--tenant", "acme"]
    assert main(["traces", "export", "-d", database_url, "-o", str(out), *span]) == 0
    assert [trace.slice_id for trace in read_traces(out)] == ["s1", "s2"]


def test_an_export_for_a_program(
    ledger: Ledger, database_url: str, out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_DATABASE", database_url)
    ledger.append([decision(hashed=True), outcome()])
    assert main(["traces", "export", "-o", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"traces": 0, "left_out": {"decisions": 0, "outcomes": 0, "hashed": 1, "spans": 0}}


def test_a_person_is_forgotten_under_the_plain_and_the_hashed_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = open_database(tmp_path / "t.db")
    rules = text_rules(False, database, {})
    Ledger(database).append([decision("s1"), rules.applied(decision("s2")), decision("s3", principal="bob")])
    command = ["traces", "forget", "-d", str(tmp_path / "t.db"), "--principal", "ann", "--tenant", "acme", "--json"]
    assert main(command) == 0
    counts = {"decisions": 2, "outcomes": 0, "tickets": 0, "observations": 0, "spans": 0}
    assert json.loads(capsys.readouterr().out) == {"removed": counts}
    assert Ledger(database).decision("s3") is not None
    database.close()


def test_what_is_older_than_an_age_expires(
    ledger: Ledger, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    now = datetime.now(UTC)
    ledger.append([decision("old", ts=now - timedelta(days=91)), decision("young", ts=now - timedelta(days=89))])
    assert main(["traces", "expire", "-d", database_url, "--older-than", "90d"]) == 0
    told = "removed: 1 decisions, 0 outcomes, 0 spans, 0 tickets, 0 observations, 0 masks"
    assert capsys.readouterr().out.strip() == told
    assert ledger.decision("old") is None
    assert ledger.decision("young") is not None


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (["expire", "--older-than", "90"], "field '--older-than': not an age: '90'"),
        (["expire", "--older-than", "-1d"], "field '--older-than': not an age: '-1d'"),
        (["export", "--since", "yesterday"], "field '--since': not a moment: 'yesterday'"),
        (["export", "--until", "2026-02-30"], "field '--until': not a moment"),
        (["forget", "--principal", "ann"], "there is no database here"),
    ],
)
def test_what_cannot_be_done_is_one_line_that_says_why(
    command: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none.db"
    assert main(["traces", command[0], "-d", str(path), *command[1:]]) == 2
    told = capsys.readouterr().err
    assert problem in told
    assert len(told.splitlines()) == 1
    assert not path.exists()

"""explain: a saved slice, stage by stage, for an operator; and what the caller's view leaves out."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from workshop import Run

from data.context import Subgoal
from serving.slice import Abstention, Degradation, MenuEntry, Slice, StageRecord


def decision() -> Slice:
    return Slice(
        request_id="r-1",
        catalog_version="c0ffee",
        bundle_version="b0b",
        policy_version="p0",
        caller_key="k",
        subgoal=Subgoal(goal="pay [bold]Alex[/bold]"),
        query="pay Alex",
        menu=(
            MenuEntry(tool_id="core.help", position=0, reason="core", verdict="allow", rule="read_only_trusted"),
            MenuEntry(tool_id="bank.pay", position=1, rank=0, relevance=0.91, verdict="confirm", rule="write"),
            MenuEntry(
                tool_id="bank.new", position=2, rank=7, relevance=0.2, propensity=0.05, explored=True, reason="explored"
            ),
        ),
        ranking=("bank.pay", "bank.new"),
        abstention=Abstention(outcome="ask", fit=0.31, threshold=0.4, advice="Ask which account."),
        degradations=(Degradation(stage="rerank", what="over the time budget; the fused order stands"),),
        record=(
            StageRecord(
                stage="mask", kept=40, dropped={f"secret.{i}": "scopes" for i in range(12)} | {"x.y": "tenant"}
            ),
            StageRecord(stage="rerank", kept=2, scores={"bank.new": 0.1, "bank.pay": 2.5}),
        ),
        timings_ms={"mask": 0.25},
    ).sealed()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "slice.json"
    path.write_text(decision().model_dump_json())
    return path


def test_each_stage_says_whom_it_dropped_by_which_rule(run: Run, saved: Path) -> None:
    ran = run("explain", saved)
    assert ran.code == 0
    assert "mask: kept 40, dropped 13, 0.25 ms" in ran.out
    assert "tenant: x.y" in ran.out
    assert "secret.7 and 4 more" in ran.out
    assert "scores: bank.pay 2.500, bank.new 0.100" in ran.out


def test_versions_verdicts_exploration_and_degradations_are_all_there(run: Run, saved: Path) -> None:
    out = run("explain", saved).out
    assert f"slice {decision().slice_id}, request r-1" in out
    assert "catalog c0ffee, bundle b0b, policy p0" in out
    assert "exploration: bank.new was explored with propensity 0.05" in out
    assert "degraded: rerank: over the time budget" in out
    assert "nothing fits well: ask (chance that a tool fits 0.310, threshold 0.400). Ask which account." in out
    row = next(line for line in out.splitlines() if "bank.pay" in line and "confirm" in line)
    assert "0.910" in row
    assert "rank 1" in row


def test_text_of_others_is_shown_and_not_followed(run: Run, saved: Path) -> None:
    assert '"pay [bold]Alex[/bold]" read as "pay Alex"' in run("explain", saved).out


def test_a_slice_comes_from_standard_input_too(run: Run, monkeypatch: pytest.MonkeyPatch, saved: Path) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(saved.read_text()))
    assert "mask: kept 40" in run("explain").out


def test_a_public_slice_says_that_it_has_no_record(run: Run, tmp_path: Path) -> None:
    (tmp_path / "public.json").write_text(decision().public().model_dump_json())
    ran = run("explain", tmp_path / "public.json")
    assert ran.code == 0
    assert "no stage record in this slice" in ran.out
    assert "secret" not in ran.out


def test_something_else_is_refused_in_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(json.dumps({"rungs": {}}))
    ran = run("explain", tmp_path / "other.json")
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1

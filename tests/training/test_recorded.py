"""Evaluations on record: a run of its own under the training's, and the pair that asked the same is found again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny
from tiny import Trained

from training import evaluation
from training.evaluation import evaluate
from training.recorded import PAGE, REPORT, record_evaluation, recorded_pair
from training.tracking import open_client, track


@pytest.fixture
def root(new_store: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return new_store()


@pytest.fixture(scope="module")
def report(trained: Trained) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "base_bundle", lambda: None)
        return evaluate(trained.bundle, trained.catalog, tiny.queries())


def of(report: dict[str, Any], bundle: str, catalog: str = "c", *, questions: int = 3) -> dict[str, Any]:
    """The report as if it were another's."""
    rows = report["per_query"][:questions]
    quick = {**report, "chain": {}, "calibration": {"ece": None, "bins": []}, "latency_ms": {}}  # nothing to draw
    return {**quick, "bundle_version": bundle, "catalog_version": catalog, "per_query": rows}


def test_an_evaluation_is_a_run_under_the_one_that_trained(root: Path, report: dict[str, Any]) -> None:
    with track(root, name="training") as training:
        pass
    run_id = record_evaluation(report, root, trained_by=training.run_id, note="on held-out queries")
    client = open_client(root)
    run = client.get_run(run_id)
    assert run.info.run_name == "evaluation"
    assert run.data.tags["mlflow.parentRunId"] == training.run_id
    assert run.data.params["note"] == "on held-out queries"
    assert run.data.metrics["rungs.selector.all.ndcg_at_10"] == report["rungs"]["selector"]["all"]["ndcg@10"]
    assert run.data.metrics["failures.outranked"] == report["failures"]["outranked"]["count"]
    kept = json.loads(Path(client.download_artifacts(run_id, REPORT)).read_text())
    assert kept["bundle_version"] == report["bundle_version"]
    assert Path(client.download_artifacts(run_id, PAGE)).read_text().startswith("<!doctype html>")
    assert {file.path for file in client.list_artifacts(run_id, "plots")} >= {"plots/rungs.png", "plots/chain.png"}


def test_where_the_training_is_not_known_the_run_stands_alone(root: Path, report: dict[str, Any]) -> None:
    run = open_client(root).get_run(record_evaluation(report, root, trained_by="f" * 32))
    assert "mlflow.parentRunId" not in run.data.tags


def test_a_server_with_a_name_that_no_metric_may_have_is_recorded_all_the_same(
    root: Path, report: dict[str, Any]
) -> None:
    slices = {"domains": {"a#{b}<c>\n": {"n": 400, "ece": 0.1}}, "warm": {"n": 300, "ece": 0.2, "bins": []}}
    odd = {**report, "calibration": {**report["calibration"], "slices": slices}}
    run = open_client(root).get_run(record_evaluation(odd, root))
    assert run.data.metrics["calibration.warm.ece"] == 0.2


def test_the_latest_pair_that_asked_the_same_is_found_behind_newer_ones(root: Path, report: dict[str, Any]) -> None:
    for one in (of(report, "ours"), of(report, "theirs"), of(report, "ours", questions=2), of(report, "theirs", "d")):
        record_evaluation(one, root)
    pair = recorded_pair(open_client(root), "ours", "theirs")
    assert pair is not None
    ours, theirs = pair
    assert (ours["bundle_version"], theirs["bundle_version"]) == ("ours", "theirs")
    assert ours["per_query"] == theirs["per_query"]
    assert ours["catalog_version"] == theirs["catalog_version"] == "c"


def test_where_none_asked_the_same_the_latest_of_each_are_given(root: Path, report: dict[str, Any]) -> None:
    record_evaluation(of(report, "ours"), root)
    record_evaluation(of(report, "theirs", "d"), root)
    pair = recorded_pair(open_client(root), "ours", "theirs")
    assert pair is not None
    assert [one["catalog_version"] for one in pair] == ["c", "d"]


def test_without_an_evaluation_of_both_there_is_no_pair(root: Path, report: dict[str, Any]) -> None:
    assert recorded_pair(open_client(root), "ours", "theirs") is None
    record_evaluation(of(report, "ours"), root)
    assert recorded_pair(open_client(root), "ours", "theirs") is None

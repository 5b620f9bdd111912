"""`toolcrib evaluate` and `promote` at the command line: the page, the record in MLflow, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny
from tiny import Trained
from workshop import Run, write_json, write_lines

from serving.bundle import load_bundle, seal
from training.recorded import EVALUATED_TAG
from training.tracking import EXPERIMENT, open_client, track


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a catalog and queries; no untrained rungs, no store."""
    from training import evaluation  # noqa: PLC0415 (torch: only for who trains)

    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(evaluation, "base_bundle", lambda: None)
    write_lines(folder / "catalog.jsonl", [card.model_dump(mode="json") for card in tiny.catalog()])
    write_lines(folder / "queries.jsonl", [query.model_dump(mode="json") for query in tiny.queries()])
    return folder


@pytest.fixture
def store(here: Path, new_store: Callable[[], Path]) -> Path:
    return Path(shutil.copytree(new_store(), here / "mlruns"))


def evaluations(store: Path) -> list[Any]:
    client = open_client(store)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    if experiment is None:
        return []
    found = client.search_runs([experiment.experiment_id], "attributes.run_name = 'evaluation'")
    return list(found)


ON_QUERIES = ("-c", "catalog.jsonl", "-q", "queries.jsonl")


def test_the_page_is_written_and_the_evaluation_recorded(run: Run, here: Path, store: Path, trained: Trained) -> None:
    ran = run("evaluate", "-b", trained.bundle, *ON_QUERIES, "--html", "out/report.html", "--json")
    assert ran.code == 0, ran.err
    assert ran.json()["learning_curve"]["queries"] == 12
    said = (here / "out" / "report.html").read_text()
    assert "Measured on queries.jsonl." in said
    assert "Would more logs help?" in said
    (recorded,) = evaluations(store)
    assert recorded.data.tags[EVALUATED_TAG] == load_bundle(trained.bundle).version
    assert f"recorded as MLflow run {recorded.info.run_id}" in ran.err


def test_what_is_not_to_be_recorded_is_not(run: Run, here: Path, store: Path, trained: Trained) -> None:
    ran = run("evaluate", "-b", trained.bundle, *ON_QUERIES, "--no-record")
    assert ran.code == 0, ran.err
    assert "selector" in ran.out
    assert evaluations(store) == []


def test_without_a_store_nothing_is_recorded_and_none_is_made(run: Run, here: Path, trained: Trained) -> None:
    before = sorted(path.name for path in here.iterdir())
    ran = run("evaluate", "-b", trained.bundle, *ON_QUERIES, "--json")
    assert ran.code == 0, ran.err
    assert ran.json()["bundle_version"] == load_bundle(trained.bundle).version
    assert "not recorded: there is no mlruns/ here" in ran.err
    assert sorted(path.name for path in here.iterdir()) == before


def test_a_store_that_cannot_be_reached_costs_the_record_alone(
    run: Run, here: Path, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{here}/catalog.jsonl/no.db")
    ran = run("evaluate", "-b", trained.bundle, *ON_QUERIES, "--json")
    assert ran.code == 0, ran.err
    assert ran.json()["rungs"]["selector"]["all"]["n"] == 12
    assert "warning: not recorded: cannot open the tracking store" in ran.err


def test_asked_as_a_caller_what_rules_withhold_is_a_failure_of_its_own(run: Run, here: Path, trained: Trained) -> None:
    anonymous = write_json(here / "caller.json", {"principal": "ann"})
    granted = write_json(here / "granted.json", {"principal": "ann", "scopes": ["accounts"]})
    withheld = []
    for caller in (anonymous, granted):
        ran = run("evaluate", "-b", trained.bundle, *ON_QUERIES, "--caller", caller, "--json")
        assert ran.code == 0, ran.err
        withheld.append(ran.json()["failures"]["withheld"])
    assert [row["count"] for row in withheld] == [1, 0]
    (example,) = withheld[0]["examples"]
    assert example["gold"] == [tiny.GUARDED]
    assert example["note"] == "by the rule 'scopes'"


def test_a_refusal_names_each_reason_and_force_records_its_own(run: Run, store: Path, trained: Trained) -> None:
    bundles = []
    for name, quality in (("old", 0.9), ("new", 0.1)):
        bundle = Path(shutil.copytree(trained.bundle, name))
        seal(bundle, load_bundle(bundle).manifest.model_copy(update={"base_model": name}))
        with track(store, name=name) as training:
            training.register(bundle, load_bundle(bundle).version, {"ndcg@10": quality, "ece": 1.0 - quality})
        bundles.append(bundle)
    assert run("promote", bundles[0]).code == 0
    refused = run("promote", bundles[1])
    assert refused.code == 1
    assert "ndcg@10 0.1 against 0.9" in refused.out
    assert "ece 0.9 against 0.1" in refused.out
    forced = run("promote", bundles[1], "--force", "the log of the other was wrong")
    assert forced.code == 0, forced.err
    assert "by force (the log of the other was wrong)" in forced.out
    back = run("promote", "--rollback")
    assert back.code == 0, back.err
    assert "version 1 is the champion again" in back.out
    wrong = run("promote", "--rollback", "--force", "hurry")
    assert wrong.code == 2
    assert "--rollback takes nothing else" in wrong.err

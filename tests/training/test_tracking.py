"""Tracking against a real MLflow store in a temporary folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from training.tracking import (
    CHALLENGER,
    EXPERIMENT,
    MODEL,
    TrackingError,
    file_digest,
    open_client,
    track,
    tracking_uri,
)


@pytest.fixture(scope="module")
def root(new_store: Callable[[], Path]) -> Path:
    return new_store()


@pytest.fixture(autouse=True)
def no_foreign_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("MLFLOW_REGISTRY_URI", raising=False)


@pytest.fixture
def client(root: Path) -> Any:
    return open_client(root)


def bundle_folder(folder: Path, content: str) -> Path:
    (folder / "usage").mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"content": content}))
    (folder / "usage" / "memory.npz").write_bytes(b"\x00\x01")
    return folder


def test_a_training_is_one_run_with_its_stages_nested(root: Path, client: Any) -> None:
    with track(root, name="training", tags={"purpose": "test"}) as run:
        run.parameters({"seed": 7, "retriever": {"epochs": 2, "lr": 2e-5}})
        run.metrics({"rungs": {"bm25": {"all": {"ndcg@10": 0.25, "n": 4}}}, "note": "not a number", "missing": None})
        with run.stage("retriever") as stage:
            stage.metrics({"loss": 0.5}, step=1)
            stage.metrics({"loss": 0.25}, step=2)

    parent, child = client.get_run(run.run_id), client.get_run(stage.run_id)
    assert parent.data.params == {"seed": "7", "retriever.epochs": "2", "retriever.lr": "2e-05"}
    assert parent.data.metrics == {"rungs.bm25.all.ndcg_at_10": 0.25, "rungs.bm25.all.n": 4.0}
    assert parent.data.tags["purpose"] == "test"
    assert parent.info.status == child.info.status == "FINISHED"
    assert child.data.tags["mlflow.parentRunId"] == run.run_id
    assert [m.value for m in client.get_metric_history(stage.run_id, "loss")] == [0.5, 0.25]


def test_the_store_and_its_artifacts_stay_under_the_root(root: Path, client: Any) -> None:
    with track(root, name="artifacts") as run:
        run.document({"a": 1}, "report.json")
        figure = Figure()
        figure.subplots().plot([0, 1])
        run.figure(figure, "plots/line.png")

    home = root / "artifacts" / run.run_id / "artifacts"
    assert json.loads((home / "report.json").read_text()) == {"a": 1}
    assert (home / "plots" / "line.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((home / "environment.json").read_text())["libraries"]["numpy"]
    assert (root / "mlflow.db").is_file()


def test_more_parameters_than_one_call_takes_are_all_logged(root: Path, client: Any) -> None:
    with track(root, name="many") as run:
        run.parameters({f"p{i}": i for i in range(230)})
    assert len(client.get_run(run.run_id).data.params) == 230


def test_a_dataset_is_recorded_by_its_digest(root: Path, client: Any, tmp_path: Path) -> None:
    source = tmp_path / "traces.parquet"
    source.write_bytes(b"abc")
    digest = file_digest(source)
    assert digest == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with track(root, name="data") as run:
        run.dataset("traces", str(source), digest)
    found = client.get_run(run.run_id)
    assert found.data.tags["dataset.traces.sha256"] == digest
    assert [(d.dataset.name, d.dataset.digest) for d in found.inputs.dataset_inputs] == [("traces", digest[:36])]


def test_a_registered_bundle_loads_back_byte_for_byte(root: Path, client: Any, tmp_path: Path) -> None:
    with track(root, name="first") as run:
        first = run.register(bundle_folder(tmp_path / "one", "one"), "aaaa", {"ndcg@10": 0.5})
    with track(root, name="second") as run:
        second = run.register(bundle_folder(tmp_path / "two", "two"), "bbbb", {"ndcg@10": 0.6})

    assert int(second) == int(first) + 1
    challenger = client.get_model_version_by_alias(MODEL, CHALLENGER)
    assert str(challenger.version) == second
    assert challenger.tags["toolcrib.bundle_version"] == "bbbb"
    (tmp_path / "back").mkdir()
    back = Path(client.download_artifacts(challenger.run_id, "bundle", str(tmp_path / "back")))
    assert {p.relative_to(back).as_posix(): p.read_bytes() for p in back.rglob("*") if p.is_file()} == {
        "manifest.json": b'{"content": "two"}',
        "usage/memory.npz": b"\x00\x01",
    }


def test_a_failed_training_says_so_in_its_run(root: Path, client: Any) -> None:
    with pytest.raises(ZeroDivisionError), track(root, name="failing") as run, run.stage("broken") as stage:
        raise ZeroDivisionError
    assert client.get_run(run.run_id).info.status == client.get_run(stage.run_id).info.status == "FAILED"


def test_an_interrupted_training_is_killed_not_failed(root: Path, client: Any) -> None:
    with pytest.raises(KeyboardInterrupt), track(root, name="interrupted") as run:
        raise KeyboardInterrupt
    assert client.get_run(run.run_id).info.status == "KILLED"


def test_a_store_that_cannot_be_written_fails_before_the_training(tmp_path: Path) -> None:
    (tmp_path / "mlruns").write_text("a file where the folder should be")
    reached = False
    with (
        pytest.raises(TrackingError, match=r"cannot open the tracking store sqlite:///.*mlruns/mlflow\.db"),
        track(tmp_path / "mlruns", name="doomed"),
    ):
        reached = True
    assert not reached


def test_an_artifact_store_that_cannot_be_written_fails_before_the_training(new_store: Callable[[], Path]) -> None:
    root = new_store()
    (root / "artifacts").write_text("in the way")
    with pytest.raises(TrackingError, match="cannot document in run"), track(root, name="doomed"):
        pytest.fail("the training must not start")


def test_an_address_in_the_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{root / 'mlflow.db'}")
    with track(tmp_path / "unused", name="elsewhere") as run:
        run.parameters({"a": 1})
    assert not (tmp_path / "unused").exists()
    experiment = open_client(tmp_path).get_experiment_by_name(EXPERIMENT)
    assert experiment.artifact_location.startswith("file://")


def test_a_password_in_the_address_is_not_repeated_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nonsense://user:secret@host/db")
    assert tracking_uri() == "nonsense://user:secret@host/db"
    with pytest.raises(TrackingError) as caught:
        open_client()
    assert "***@host/db" in str(caught.value)
    assert "secret" not in str(caught.value)

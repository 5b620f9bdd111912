"""Promotion in a real MLflow registry: the champion changes only for a bundle that is not worse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from data.errors import BundleError
from serving.bundle import CARDS, RETRIEVER, TOKENIZER, Manifest, load_bundle, seal
from training.promotion import promote
from training.tracking import CHAMPION, MODEL, TrackingError, open_client, track


@pytest.fixture
def root(new_store: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return new_store()


def sealed(folder: Path, name: str) -> Path:
    """A folder that loads as a bundle; `name` makes its content, and so its version, its own."""
    bundle = folder / name
    bundle.mkdir()
    for file in (TOKENIZER, CARDS, RETRIEVER):
        (bundle / file).write_text(name)
    seal(bundle, Manifest(base_model="test", retriever_graph=RETRIEVER, max_query_tokens=32, max_card_tokens=64))
    return bundle


def registered(folder: Path, root: Path, name: str, **figures: float | None) -> Path:
    """A sealed bundle, registered with these validation figures."""
    bundle = sealed(folder, name)
    with track(root, name=name) as run:
        validation = {key.replace("ndcg", "ndcg@10"): value for key, value in figures.items()}
        run.register(bundle, load_bundle(bundle).version, validation)
    return bundle


def champion(root: Path) -> str | None:
    aliases = open_client(root).get_registered_model(MODEL).aliases
    return str(aliases[CHAMPION]) if CHAMPION in aliases else None


def test_the_first_bundle_becomes_the_champion(root: Path, tmp_path: Path) -> None:
    decision = promote(registered(tmp_path, root, "first", ndcg=0.6), root)
    assert decision.promoted
    assert decision.reason == "version 1 is the champion: there was none before"
    assert champion(root) == decision.version == "1"


def test_a_better_bundle_takes_over(root: Path, tmp_path: Path) -> None:
    promote(registered(tmp_path, root, "old", ndcg=0.6, ece=0.05, p95_ms=30.0), root)
    decision = promote(registered(tmp_path, root, "new", ndcg=0.7, ece=0.04, p95_ms=31.0), root)
    assert decision.promoted
    assert champion(root) == "2"


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({"ndcg": 0.59, "ece": 0.01, "p95_ms": 1.0}, "ndcg@10 0.59 against 0.6"),
        ({"ndcg": 0.9, "ece": 0.07, "p95_ms": 1.0}, "ece 0.07 against 0.05"),
        ({"ndcg": 0.9, "ece": 0.01, "p95_ms": 50.0}, "p95_ms 50 against 30"),
    ],
)
def test_a_bundle_that_is_worse_in_one_figure_is_refused_with_the_reason(
    root: Path, tmp_path: Path, figures: dict[str, float], said: str
) -> None:
    promote(registered(tmp_path, root, "old", ndcg=0.6, ece=0.05, p95_ms=30.0), root)
    decision = promote(registered(tmp_path, root, "new", **figures), root)
    assert not decision.promoted
    assert said in decision.reason
    assert champion(root) == "1"


def test_a_loss_within_the_tolerance_is_not_worse(root: Path, tmp_path: Path) -> None:
    promote(registered(tmp_path, root, "old", ndcg=0.6, ece=0.05, p95_ms=30.0), root)
    assert promote(registered(tmp_path, root, "new", ndcg=0.597, ece=0.055, p95_ms=40.0), root).promoted


def test_a_figure_that_was_not_measured_is_passed_over(root: Path, tmp_path: Path) -> None:
    promote(registered(tmp_path, root, "old", ndcg=0.6, ece=0.05), root)
    assert promote(registered(tmp_path, root, "new", ndcg=0.6, ece=None), root).promoted


def test_a_bundle_without_a_quality_figure_is_refused(root: Path, tmp_path: Path) -> None:
    decision = promote(registered(tmp_path, root, "blind", ece=0.01), root)
    assert not decision.promoted
    assert "without ndcg@10" in decision.reason
    assert champion(root) is None


def test_promoting_the_champion_again_changes_nothing(root: Path, tmp_path: Path) -> None:
    bundle = registered(tmp_path, root, "only", ndcg=0.6)
    promote(bundle, root)
    again = promote(bundle, root)
    assert (again.promoted, again.version) == (True, "1")
    assert "already" in again.reason


def test_a_bundle_that_this_store_does_not_know_is_an_error(root: Path, tmp_path: Path) -> None:
    registered(tmp_path, root, "known", ndcg=0.6)
    with pytest.raises(TrackingError, match=r"bundle \w{16} in .* is not registered"):
        promote(sealed(tmp_path, "stranger"), root)


def test_a_folder_without_a_manifest_is_no_bundle(root: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"no manifest\.json here"):
        promote(tmp_path, root)


def test_a_bundle_that_was_changed_after_training_is_refused(root: Path, tmp_path: Path) -> None:
    bundle = registered(tmp_path, root, "changed", ndcg=0.6)
    (bundle / RETRIEVER).write_text("other weights")
    with pytest.raises(BundleError, match=r"'retriever\.onnx' is not the file that was trained"):
        promote(bundle, root)
    assert champion(root) is None

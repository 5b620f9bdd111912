"""Promotion in a real MLflow registry: the champion changes only for a bundle that is not worse."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny
from test_comparison import rows
from tiny import Trained

from data.catalog import Catalog
from data.errors import BundleError
from serving.bundle import CARDS, RETRIEVER, TOKENIZER, Manifest, load_bundle, seal
from training import evaluation
from training.promotion import promote, roll_back
from training.recorded import CATALOG_TAG, EVALUATED_TAG, REPORT, recorded_pair
from training.tracking import CHAMPION, EXPERIMENT, MODEL, TrackingError, open_client, track


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


# --- on the same queries ------------------------------------------------------------------------------------------


def evaluated(bundle: Path, root: Path, per_query: list[dict[str, Any]], catalog: str = "c") -> Path:
    """The bundle, with an evaluation on record."""
    version = load_bundle(bundle).version
    with track(root, name="evaluation", tags={EVALUATED_TAG: version, CATALOG_TAG: catalog}) as run:
        run.document({"catalog_version": catalog, "per_query": per_query, "per_no_tool": []}, REPORT)
    return bundle


def decisions(root: Path) -> list[dict[str, Any]]:
    """The documents of the promotion runs, oldest first."""
    client = open_client(root)
    experiment = client.get_experiment_by_name(EXPERIMENT).experiment_id
    found = client.search_runs([experiment], "attributes.run_name = 'promotion'", order_by=["start_time ASC"])
    return [json.loads(Path(client.download_artifacts(run.info.run_id, "promotion.json")).read_text()) for run in found]


def test_the_same_queries_decide_whatever_the_means_of_the_trainings_say(root: Path, tmp_path: Path) -> None:
    promote(evaluated(registered(tmp_path, root, "old", ndcg=0.6), root, rows(300)), root)
    worse = promote(evaluated(registered(tmp_path, root, "boasts", ndcg=0.9), root, rows(300, hit=0.6)), root)
    assert not worse.promoted
    assert "ndcg@10 worse: 0.6 against 0.8" in worse.reason
    modest = promote(evaluated(registered(tmp_path, root, "modest", ndcg=0.1), root, rows(300)), root)
    assert modest.promoted
    assert "on the same 300 queries" in modest.reason
    assert champion(root) == modest.version


def test_every_decision_is_on_record_with_what_it_rests_on(root: Path, tmp_path: Path) -> None:
    promote(evaluated(registered(tmp_path, root, "old", ndcg=0.6), root, rows(300)), root)
    promote(evaluated(registered(tmp_path, root, "bad", ndcg=0.6), root, rows(300, hit=0.1)), root)
    first, second = decisions(root)
    assert (first["promoted"], first["champion_before"]) == (True, None)
    assert (second["promoted"], second["version"], second["champion_before"]) == (False, "2", "1")
    assert "worse" in {one["verdict"] for one in second["compared"]}


@pytest.mark.parametrize(
    ("theirs", "catalog", "said"),
    [
        (rows(100, prefix="other"), "c", "they share no query"),
        (rows(100), "another", "they were evaluated on different catalogs"),
        ([], "c", "they share no query"),
    ],
)
def test_where_nothing_can_be_paired_the_means_decide_and_the_reason_says_so(
    root: Path, tmp_path: Path, theirs: list[dict[str, Any]], catalog: str, said: str
) -> None:
    promote(evaluated(registered(tmp_path, root, "old", ndcg=0.6), root, theirs, catalog), root)
    decision = promote(evaluated(registered(tmp_path, root, "new", ndcg=0.6), root, rows(100)), root)
    assert decision.promoted
    assert f"by the means of their trainings, as {said}" in decision.reason


def test_both_are_evaluated_on_the_queries_that_are_given(
    root: Path, tmp_path: Path, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(evaluation, "base_bundle", lambda: None)
    bundles = []
    for name in ("old", "new"):
        bundle = Path(shutil.copytree(trained.bundle, tmp_path / name))
        manifest = load_bundle(bundle).manifest.model_copy(update={"base_model": name})
        seal(bundle, manifest)
        with track(root, name=name) as run:
            run.register(bundle, load_bundle(bundle).version, {"ndcg@10": 0.5})
        bundles.append(bundle)
    promote(bundles[0], root)
    queries = [
        query.model_copy(update={"qid": f"{query.qid} {i}"}) for i in range(3) for query in tiny.queries() if query.gold
    ]
    decision = promote(bundles[1], root, catalog=trained.catalog, queries=queries)
    by_figure = {one.figure: one for one in decision.compared}
    assert by_figure["ndcg@10"].n == 36
    assert {"a poisoned card first", "poisoned cards on the menu", "median latency, side by side"} <= by_figure.keys()
    same = [one for one in decision.compared if "latency" not in one.figure and one.verdict != "not measured"]
    assert len(same) >= 8
    assert [one.difference for one in same] == [0.0] * len(same), "the same weights"
    pair = recorded_pair(open_client(root), *(load_bundle(bundle).version for bundle in bundles))
    assert pair is not None
    assert [len(report["per_query"]) for report in pair] == [36, 36]
    assert decision.notes == ()


def test_a_champion_of_another_catalog_is_carried_over_and_the_decision_says_so(
    root: Path, tmp_path: Path, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(evaluation, "base_bundle", lambda: None)
    for name in ("old", "new"):
        bundle = Path(shutil.copytree(trained.bundle, tmp_path / name))
        seal(bundle, load_bundle(bundle).manifest.model_copy(update={"base_model": name}))
        with track(root, name=name) as run:
            run.register(bundle, load_bundle(bundle).version, {"ndcg@10": 0.5})
        if name == "old":
            promote(bundle, root)
    renamed = Catalog(card.model_copy(update={"tool_id": f"other.{card.tool_id}"}) for card in trained.catalog)
    queries = [query.model_copy(update={"gold": tuple(f"other.{g}" for g in query.gold)}) for query in tiny.queries()]
    decision = promote(tmp_path / "new", root, catalog=renamed, queries=queries)
    assert [note.partition(",")[0] for note in decision.notes] == [
        "version 2 was trained on another catalog: 0 of the 11 tools in its past are here",
        "version 1 was trained on another catalog: 0 of the 11 tools in its past are here",
    ]
    assert decisions(root)[-1]["notes"] == list(decision.notes)


# --- by force -----------------------------------------------------------------------------------------------------


def test_force_promotes_in_spite_of_a_refusal_and_its_reason_is_on_record(root: Path, tmp_path: Path) -> None:
    promote(evaluated(registered(tmp_path, root, "old", ndcg=0.6), root, rows(300)), root)
    bad = evaluated(registered(tmp_path, root, "bad", ndcg=0.6), root, rows(300, hit=0.1))
    assert not promote(bad, root).promoted
    forced = promote(bad, root, force="the old one leaks")
    assert forced.promoted
    assert champion(root) == "2"
    assert forced.reason.startswith("version 2 is the champion by force (the old one leaks), although")
    refused, last = decisions(root)[-2:]
    assert (refused["promoted"], refused["forced"]) == (False, "")
    assert (last["promoted"], last["forced"]) == (True, "the old one leaks")
    assert any("ndcg@10 worse" in sentence for sentence in last["against"])
    assert roll_back(root).version == "1"


def test_force_where_nothing_speaks_against_it_leaves_no_mark(root: Path, tmp_path: Path) -> None:
    decision = promote(registered(tmp_path, root, "first", ndcg=0.6), root, force="hurry")
    assert (decision.promoted, decision.forced) == (True, "")


def test_the_figures_of_a_decision_are_metrics_of_its_run(root: Path, tmp_path: Path) -> None:
    promote(evaluated(registered(tmp_path, root, "old", ndcg=0.6), root, rows(300)), root)
    promote(evaluated(registered(tmp_path, root, "bad", ndcg=0.6), root, rows(300, hit=0.1)), root)
    client = open_client(root)
    experiment = client.get_experiment_by_name(EXPERIMENT).experiment_id
    (run,) = client.search_runs([experiment], "tags.promoted = 'false'")
    assert run.data.metrics["ndcg_at_10.theirs"] == pytest.approx(0.8)
    assert run.data.metrics["ndcg_at_10.difference"] == pytest.approx(-0.7)
    assert run.data.metrics["promoted"] == 0.0


# --- the way back -------------------------------------------------------------------------------------------------


def test_rolling_back_gives_the_alias_to_the_champion_before(root: Path, tmp_path: Path) -> None:
    for name in ("first", "second", "third"):
        promote(registered(tmp_path, root, name, ndcg=0.6), root)
    decision = roll_back(root)
    assert decision.reason == "version 2 is the champion again: version 3 is rolled back"
    assert champion(root) == "2"
    roll_back(root)
    assert champion(root) == "1"
    assert decisions(root)[-1]["champion_before"] == "2"


def test_a_refused_bundle_is_no_place_to_roll_back_to(root: Path, tmp_path: Path) -> None:
    promote(registered(tmp_path, root, "first", ndcg=0.6), root)
    promote(registered(tmp_path, root, "refused", ndcg=0.1), root)
    promote(registered(tmp_path, root, "third", ndcg=0.6), root)
    roll_back(root)
    assert champion(root) == "1"


def test_without_a_champion_before_there_is_nothing_to_roll_back_to(root: Path, tmp_path: Path) -> None:
    with pytest.raises(TrackingError, match="there is no champion"):
        roll_back(root)
    promote(registered(tmp_path, root, "only", ndcg=0.6), root)
    with pytest.raises(TrackingError, match="nothing was before version 1"):
        roll_back(root)
    assert champion(root) == "1"

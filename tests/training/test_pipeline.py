"""The pipeline: a whole training in seconds, the same one twice, and what a failing one leaves behind."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import tiny
from tiny import Trained

from data.cards import Risk, ToolCard
from data.catalog import Catalog
from data.context import Caller
from data.errors import BundleError, InputError, RecipeError
from data.traces import Trace
from serving.bundle import ABSTENTION, INTERACTION, RELEVANCE, RETRIEVER, USAGE, int8_name, load_bundle
from serving.selector import Selector
from training import pipeline
from training.pipeline import TrainResult, train
from training.promotion import promote
from training.tracking import TrackingError, open_client

CALLER = Caller(scopes=("accounts",))
NewStore = Callable[[], Path]
Train = Callable[..., TrainResult]


@pytest.fixture(autouse=True)
def own_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture
def train_on(trained: Trained, tmp_path: Path, new_store: NewStore) -> Train:
    """Train on these traces; whatever is not given is the small workshop's."""

    def run(rows: Iterable[Trace], catalog: Catalog = trained.catalog, **changes: Any) -> TrainResult:
        traces = tiny.write_traces_jsonl(tmp_path / "traces.jsonl", rows)
        recipe = tiny.recipe(trained.base, **changes)
        return train(catalog, traces, recipe, tmp_path / "out" / "bundle", tracking_root=new_store())

    return run


def without_times(metrics: dict[str, Any]) -> dict[str, Any]:
    return {
        stage: {name: value for name, value in figures.items() if not name.endswith("_ms")}
        for stage, figures in metrics.items()
    }


def left_behind(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.is_dir() else []


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made from now on."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_training_learns_and_its_bundle_is_whole(trained: Trained) -> None:
    bundle = load_bundle(trained.bundle)
    assert bundle.has(RELEVANCE)
    assert bundle.has(ABSTENTION)
    assert bundle.has(USAGE)
    assert bundle.manifest.reranker == "interaction"
    assert bundle.manifest.metrics["validation"] == pytest.approx(trained.metrics["validation"])
    validation = trained.metrics["validation"]
    assert validation["ndcg@10"] > 0.7
    assert validation["abstention_auroc"] > 0.8
    assert validation["relevance_onnx_diff"] < 1e-5
    assert validation["abstention_onnx_diff"] < 1e-5
    assert trained.metrics["retriever"]["max_difference"] < 1e-4


def test_a_trained_bundle_finds_what_its_log_found(trained: Trained) -> None:
    selector = Selector.load(trained.bundle, trained.catalog)
    asked = [(goal, tool) for tool in trained.catalog.ids if tool != tiny.NEVER_USED for goal in tiny.goals(tool)]
    right = [selector.select(goal, CALLER, request_id="r").ranking[0] == tool for goal, tool in asked]
    assert sum(right) / len(right) > 0.9
    turned = [
        selector.select(goal, CALLER, request_id="r").abstention.outcome in ("missing_capability", "ask")
        for goal in tiny.no_tool_goals()
    ]
    assert sum(turned) / len(turned) > 0.7


def test_a_training_is_one_tracked_run_and_its_bundle_a_registered_challenger(trained: Trained) -> None:
    client = open_client(trained.store)
    version = client.get_model_version_by_alias("toolcrib", "challenger")
    assert version.tags["toolcrib.bundle_version"] == load_bundle(trained.bundle).version
    assert version.run_id == load_bundle(trained.bundle).manifest.mlflow_run
    run = client.get_run(version.run_id)
    assert run.info.status == "FINISHED"
    assert run.data.params["retriever.batch_size"] == "8"
    assert run.data.metrics["ndcg_at_10"] == pytest.approx(trained.metrics["validation"]["ndcg@10"])
    stages = client.search_runs([run.info.experiment_id], f"tags.`mlflow.parentRunId` = '{run.info.run_id}'")
    names = {stage.info.run_name for stage in stages}
    assert names == {"mine", "retriever", "cross_encoder", "usage", "interaction", "heads"}
    assert promote(trained.bundle, trained.store).promoted


def test_the_same_seed_gives_the_same_bundle_and_another_folder_changes_nothing(
    trained: Trained, tmp_path: Path, new_store: NewStore
) -> None:
    again = train(
        trained.catalog, trained.traces, tiny.recipe(trained.base), tmp_path / "again", tracking_root=new_store()
    )
    assert without_times(again.metrics) == without_times(trained.metrics)
    one, other = (Selector.load(bundle, trained.catalog) for bundle in (trained.bundle, again.bundle))
    for query in tiny.queries():
        first, second = (s.select(query.text, CALLER, request_id="r") for s in (one, other))
        assert first.ranking == second.ranking
    assert load_bundle(again.bundle).version == load_bundle(trained.bundle).version


def test_unknown_tools_in_the_log_and_no_request_that_nothing_fits(train_on: Train, trained: Trained) -> None:
    strangers = [
        trace.model_copy(update={"tool_id": "gone.tool", "trace_id": f"x{i}"})
        for i, trace in enumerate(tiny.traces()[:5])
    ]
    known = [trace for trace in tiny.traces() if trace.tool_id is not None]
    int8 = {"int8": True, "max_quality_loss": 1.0}
    result = train_on([*known, *strangers], reranker="none", export=int8, head={"removed": 0.0})
    bundle = load_bundle(result.bundle)
    assert "gone.tool" not in bundle.usage.tools
    assert not bundle.has(ABSTENTION)
    assert not bundle.has(INTERACTION)
    assert bundle.manifest.retriever_graph == int8_name(RETRIEVER)
    assert not bundle.has(RETRIEVER), "the graph that does not serve is left out"
    assert 0.9 < result.metrics["retriever"]["int8_mean_cosine"] <= 1.0 + 1e-6
    found = Selector.load(result.bundle, trained.catalog).select(tiny.no_tool_goals()[0], CALLER, request_id="r")
    assert found.abstention.outcome == "menu", "nothing was learned of when to say no"
    assert found.menu


def test_a_handful_of_decisions_makes_a_bundle_whose_fused_order_serves(train_on: Train, trained: Trained) -> None:
    few = [trace for trace in tiny.traces() if trace.tool_id in ("mail.send_message", "files.read_file")][:9]
    result = train_on(few, retriever={"epochs": 0})
    bundle = load_bundle(result.bundle)
    assert not bundle.has(RELEVANCE)
    assert bundle.manifest.reranker == "none"
    assert not bundle.has(INTERACTION)
    selector = Selector.load(result.bundle, trained.catalog)
    found = selector.select(tiny.goals("mail.send_message")[0], CALLER, request_id="r")
    assert found.ranking[0] == "mail.send_message"
    assert "relevance" in [degradation.stage for degradation in found.degradations]


def test_two_tools_of_one_name_leave_nothing_to_tell_apart_and_still_serve(train_on: Train) -> None:
    twins = Catalog(
        ToolCard(tool_id=f"{server}.search", name="search", domain=server, risk=Risk.READ_ONLY) for server in "ab"
    )
    log = [
        Trace(trace_id=f"{server}{i}", goal=f"search {word} {i}", tool_id=f"{server}.search", outcome="success")
        for server, word in (("a", "email"), ("b", "weather"))
        for i in range(30)
    ]
    result = train_on(log, twins, retriever={"epochs": 0}, reranker="none")
    found = Selector.load(result.bundle, twins).select("search the email", request_id="r")
    assert {entry.tool_id for entry in found.menu} == {"a.search", "b.search"}


# --- what a training that fails leaves behind ---------------------------------------------------------------------


def fails_with(error: BaseException) -> Callable[..., None]:
    def stage(*_: object) -> None:
        raise error

    return stage


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("out of memory")], ids=["interrupted", "failed"])
def test_a_training_that_ends_early_leaves_no_bundle_and_says_where_its_work_is(
    train_on: Train,
    tmp_path: Path,
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
) -> None:
    monkeypatch.setattr(pipeline, "tune_retriever", fails_with(error))
    with pytest.raises(type(error)):
        train_on(tiny.traces())
    assert left_behind(tmp_path / "out") == [".bundle.unfinished"]
    assert f"kept in {tmp_path / 'out' / '.bundle.unfinished'}: the same command goes on" in caplog.text
    assert left_behind(scratch) == []


def test_an_interrupted_run_is_marked_as_killed(
    trained: Trained, tmp_path: Path, new_store: NewStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = new_store()
    monkeypatch.setattr(pipeline, "learn_retriever", fails_with(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        train(trained.catalog, trained.traces, tiny.recipe(trained.base), tmp_path / "b", tracking_root=store)
    client = open_client(store)
    experiment = client.get_experiment_by_name("toolcrib")
    runs = client.search_runs([experiment.experiment_id])
    assert {run.info.run_name: run.info.status for run in runs} == {
        "b": "KILLED",
        "mine": "FINISHED",
        "retriever": "KILLED",
    }
    assert client.search_registered_models() == []


def test_an_older_bundle_survives_a_training_that_fails(
    trained: Trained, own_bundle: Path, new_store: NewStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = load_bundle(own_bundle).version
    monkeypatch.setattr(pipeline, "learn_retriever", fails_with(RuntimeError("out of memory")))
    with pytest.raises(RuntimeError, match="out of memory"):
        train(trained.catalog, trained.traces, tiny.recipe(trained.base), own_bundle, tracking_root=new_store())
    assert load_bundle(own_bundle).version == before
    assert left_behind(own_bundle.parent) == [".bundle.unfinished", own_bundle.name]


@pytest.fixture
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first slow thing is a failure of the test."""
    for name in ("learn_retriever", "mine"):
        monkeypatch.setattr(pipeline, name, fails_with(AssertionError(f"{name} has started")))


@pytest.mark.usefixtures("nothing_starts")
class TestBeforeAnythingSlowStarts:
    """Each of these is refused at once."""

    def test_a_store_that_cannot_be_opened(self, trained: Trained, tmp_path: Path) -> None:
        (tmp_path / "mlflow.db").write_bytes(b"not a database" * 100)
        with pytest.raises(TrackingError, match=r"mlflow\.db"):
            train(trained.catalog, trained.traces, tiny.recipe(trained.base), tmp_path / "b", tracking_root=tmp_path)
        assert left_behind(tmp_path) == ["mlflow.db"]

    @pytest.mark.parametrize("tools", [0, 1])
    def test_a_catalog_without_a_choice(self, train_on: Train, trained: Trained, tools: int) -> None:
        with pytest.raises(InputError, match=rf"the catalog has {tools} tool\(s\)"):
            train_on(tiny.traces(), Catalog(list(trained.catalog)[:tools]))

    def test_a_recipe_that_contradicts_itself(self, train_on: Train) -> None:
        with pytest.raises(RecipeError, match=r"interaction\.epochs"):
            train_on(tiny.traces(), interaction={"epochs": 0})

    def test_a_base_model_that_is_not_there(self, train_on: Train, tmp_path: Path) -> None:
        with pytest.raises(RecipeError, match="there is no such folder"):
            train_on(tiny.traces(), base_model=str(tmp_path / "nowhere"))

    def test_a_target_that_holds_something_else(self, train_on: Train, tmp_path: Path) -> None:
        (tmp_path / "out" / "bundle").mkdir(parents=True)
        (tmp_path / "out" / "bundle" / "thesis.txt").write_text("years of work")
        with pytest.raises(BundleError, match="something other than a bundle"):
            train_on(tiny.traces())
        assert left_behind(tmp_path / "out") == ["bundle"]


@pytest.mark.parametrize(
    "rows",
    [
        [t for t in tiny.traces() if t.tool_id is None],
        [t.model_copy(update={"outcome": "failure", "error_class": "tool_error"}) for t in tiny.traces() if t.tool_id],
        [t.model_copy(update={"tool_id": "gone.tool"}) for t in tiny.traces() if t.tool_id],
    ],
    ids=["nothing called", "all failed", "all unknown"],
)
def test_a_log_without_a_positive_is_refused_and_leaves_nothing(
    train_on: Train, tmp_path: Path, rows: list[Trace]
) -> None:
    with pytest.raises(InputError, match=r"traces\.jsonl"):
        train_on(rows)
    assert left_behind(tmp_path / "out") == []


def test_a_base_that_cannot_be_loaded_is_a_recipe_error(train_on: Train, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecipeError, match="cannot be loaded"):
        train_on(tiny.traces(), base_model=str(tmp_path / "empty"))
    assert left_behind(tmp_path / "out") == []


def test_limits_above_the_bases_positions_are_a_recipe_error(train_on: Train, tmp_path: Path) -> None:
    wish = {"epochs": 1, "max_query_tokens": 129, "max_card_tokens": 128, "max_tuning_tokens": 300}
    with pytest.raises(
        RecipeError, match=r"at most 128 tokens, but '[a-z._]*query_tokens' is 129 and .*tuning.* is 300$"
    ):
        train_on(tiny.traces(), retriever=wish)
    assert left_behind(tmp_path / "out") == []


def test_a_missing_log_is_refused_by_name(trained: Trained, tmp_path: Path, new_store: NewStore) -> None:
    with pytest.raises(InputError, match=r"nowhere\.parquet"):
        train(
            trained.catalog,
            tmp_path / "nowhere.parquet",
            tiny.recipe(trained.base),
            tmp_path / "b",
            tracking_root=new_store(),
        )

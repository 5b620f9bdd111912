"""Evaluation: the contract's keys, true figures, and rungs that run what serves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
from tiny import Trained

from data.catalog import Catalog
from data.context import Caller
from data.errors import InputError
from data.queries import Query
from serving.bundle import RETRIEVER, Manifest, load_bundle, save_usage, seal
from serving.index import save_cards
from serving.memory import LOST
from serving.selector import Selector
from training import evaluation
from training.encoders import export_encoder
from training.evaluation import RUNGS, evaluate

FIGURES = {"n", "recall@1", "recall@3", "recall@5", "recall@10", "recall@40", "ndcg@10", "mrr"}
CHAIN = {"R_decompose", "R_retrieve", "R_filter", "R_menu", "R_select", "product"}


@pytest.fixture(scope="module")
def untrained(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base model as it comes, as a bundle."""
    folder = tmp_path_factory.mktemp("untrained")
    export_encoder(trained.base, folder, ["send the email"], 16, int8=False)
    save_cards(folder, Catalog([]), np.zeros((0, 32), np.float32), None)
    seal(folder, Manifest(base_model="tiny", retriever_graph=RETRIEVER, max_query_tokens=16, max_card_tokens=64))
    return folder


@pytest.fixture(autouse=True)
def base(untrained: Path) -> Iterator[None]:
    """The untrained rungs run the tiny base instead of the real one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "base_bundle", lambda: untrained)
        yield


@pytest.fixture(scope="module")
def report(trained: Trained, untrained: Path) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "base_bundle", lambda: untrained)
        return evaluate(trained.bundle, trained.catalog, tiny.queries())


def without_times(report: dict[str, Any]) -> dict[str, Any]:
    rows = [{name: value for name, value in row.items() if name != "ms"} for row in report["per_query"]]
    return {**{name: value for name, value in report.items() if name != "latency_ms"}, "per_query": rows}


def test_every_figure_of_the_contract_is_in_its_place(report: dict[str, Any]) -> None:
    assert list(report["rungs"]) == list(RUNGS)
    for rung in report["rungs"].values():
        assert set(rung) == {"all", "warm", "cold"}
        for group in rung.values():
            assert set(group) - {"ndcg@10_interval"} == FIGURES
    assert {"auroc", "precision", "recall"} <= set(report["abstention"])
    assert set(report["abstention"]["removed_gold"]) == {"n", "auroc", "precision", "recall"}
    assert "ece" in report["calibration"]
    assert {"warm", "cold", "domains"} == set(report["calibration"]["slices"])
    assert set(report["chain"]) == CHAIN
    stages = {"query", "mask", "filter", "encode", "retrieve", "rerank", "relevance", "tiebreak", "menu", "policy"}
    assert set(report["latency_ms"]) == stages | {"total"}
    assert all(set(row) == {"p50", "p95"} for row in report["latency_ms"].values())


def test_the_figures_of_each_query_average_to_those_of_all(report: dict[str, Any]) -> None:
    rows = report["per_query"]
    whole = report["rungs"]["selector"]["all"]
    assert len(rows) == whole["n"] == len({row["question"] for row in rows})
    assert np.mean([row["ndcg@10"] for row in rows]) == pytest.approx(whole["ndcg@10"])
    assert sum(not row["warm"] for row in rows) == report["queries"]["cold"]
    assert np.mean([row["retrieved"] for row in rows]) == pytest.approx(report["chain"]["R_retrieve"])
    assert np.mean([row["right"] for row in rows]) == pytest.approx(whole["recall@1"])
    assert all(0.0 <= row["stated"] <= 1.0 and row["ms"] > 0.0 for row in rows)


def test_fractions_are_fractions_and_times_are_times(report: dict[str, Any]) -> None:
    rows = [group for rung in report["rungs"].values() for group in rung.values()]
    fractions = [row[name] for row in rows for name in FIGURES - {"n"} if row["n"]]
    fractions += [report["abstention"][name] for name in ("auroc", "precision", "recall")]
    fractions += [report["calibration"]["ece"], *(v for v in report["chain"].values() if v is not None)]
    assert len(fractions) > 100
    assert all(0.0 <= value <= 1.0 for value in fractions)
    assert all(0.0 <= row["p50"] <= row["p95"] for row in report["latency_ms"].values())


def test_a_report_is_json_without_any_number_that_json_has_not(report: dict[str, Any]) -> None:
    assert json.loads(json.dumps(report, allow_nan=False))["rungs"].keys() == report["rungs"].keys()


def test_deeper_recall_is_no_lower_and_cold_and_warm_make_all(report: dict[str, Any]) -> None:
    for rung in report["rungs"].values():
        for group in rung.values():
            if group["n"]:
                recalls = [group[f"recall@{k}"] for k in (1, 3, 5, 10, 40)]
                assert recalls == sorted(recalls)
        assert rung["all"]["n"] == rung["warm"]["n"] + rung["cold"]["n"] == 12
        parts = sum(rung[name]["n"] * (rung[name]["mrr"] or 0.0) for name in ("warm", "cold"))
        assert rung["all"]["mrr"] == pytest.approx(parts / 12)


def test_what_was_learned_shows(trained: Trained, report: dict[str, Any]) -> None:
    asked = [
        Query(qid=f"{tool_id} {number}", text=goal, gold=(tool_id,))
        for tool_id in trained.catalog.ids
        if tool_id != tiny.NEVER_USED
        for number, goal in enumerate(tiny.goals(tool_id))
    ]
    logged = {
        name: rung["all"]["ndcg@10"] for name, rung in evaluate(trained.bundle, trained.catalog, asked)["rungs"].items()
    }
    assert logged["retriever"] > logged["dense"]
    rungs = {name: rung["all"]["ndcg@10"] for name, rung in report["rungs"].items()}
    assert rungs["selector"] > rungs["bm25"]
    gain = report["gains"]["bm25"]["all"]
    assert gain["gain"] == pytest.approx(rungs["selector"] - rungs["bm25"])
    assert gain["interval"][0] <= gain["gain"] <= gain["interval"][1]


def test_the_same_evaluation_twice_has_the_same_figures(trained: Trained, report: dict[str, Any]) -> None:
    again = evaluate(trained.bundle, trained.catalog, tiny.queries())
    assert without_times(again) == without_times(report)


def test_the_trained_rungs_run_the_graph_that_serves(
    trained: Trained, untrained: Path, own_bundle: Path, report: dict[str, Any]
) -> None:
    manifest = load_bundle(own_bundle).manifest
    (own_bundle / RETRIEVER).write_bytes((untrained / RETRIEVER).read_bytes())
    seal(own_bundle, manifest)
    swapped = evaluate(own_bundle, trained.catalog, tiny.queries())
    for rung in ("bm25", "dense", "rrf"):
        assert swapped["rungs"][rung] == report["rungs"][rung]
    for rung in ("retriever", "usage", "reranker", "selector"):
        assert swapped["rungs"][rung] != report["rungs"][rung], rung


def test_the_selector_rung_is_the_ranking_that_serving_gives(trained: Trained, report: dict[str, Any]) -> None:
    caller = Caller(scopes=("accounts",))
    selector = Selector.load(trained.bundle, trained.catalog)
    answered = [query for query in tiny.queries() if query.gold]
    first = [selector.select(query.text, caller, request_id="r").ranking[0] in query.gold for query in answered]
    assert report["rungs"]["selector"]["all"]["recall@1"] == pytest.approx(np.mean(first))


def test_without_a_bundle_the_untrained_rungs_and_the_selector_are_measured(trained: Trained) -> None:
    report = evaluate(None, trained.catalog, tiny.queries())
    assert list(report["rungs"]) == ["bm25", "dense", "rrf", "selector"]
    assert report["rungs"]["selector"]["all"]["n"] == report["rungs"]["selector"]["cold"]["n"] == 12
    assert report["bundle_version"] == "none"
    assert report["abstention"]["auroc"] is None
    assert report["calibration"]["ece"] is None


def test_a_group_without_queries_has_its_figures_as_null(trained: Trained) -> None:
    rung = evaluate(trained.bundle, trained.catalog, tiny.queries()[:1])["rungs"]["selector"]
    assert rung["cold"] == {"n": 0, **dict.fromkeys(FIGURES - {"n"})}


def test_where_the_base_is_not_installed_its_rungs_are_left_out(
    trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "base_bundle", lambda: None)
    report = evaluate(trained.bundle, trained.catalog, tiny.queries()[:2])
    assert list(report["rungs"]) == ["bm25", "retriever", "usage", "reranker", "selector"]


# --- warm and cold ------------------------------------------------------------------------------------------------


def counts(bundle: Path, catalog: Catalog, *queries: Query) -> tuple[int, int]:
    """How many of these queries are warm, and cold."""
    selector = evaluate(bundle, catalog, queries)["rungs"]["selector"]
    return selector["warm"]["n"], selector["cold"]["n"]


def test_cold_is_a_query_whose_gold_tools_served_nothing_in_training(trained: Trained) -> None:
    text = "keep the note"
    cold = Query(qid="1", text=text, gold=(tiny.NEVER_USED,))
    by_another = Query(qid="2", text=text, gold=(tiny.NEVER_USED,), gold_alt={tiny.NEVER_USED: ("mail.send_message",)})
    of_two = Query(qid="3", text=text, gold=(tiny.NEVER_USED, "files.read_file"))
    cold_alt = Query(qid="4", text=text, gold=(tiny.NEVER_USED,), gold_alt={tiny.NEVER_USED: ("gone.tool",)})
    assert counts(trained.bundle, trained.catalog, cold, by_another, of_two, cold_alt) == (2, 2)


def test_a_tool_that_was_only_called_is_cold(trained: Trained, own_bundle: Path) -> None:
    bundle = load_bundle(own_bundle)
    usage = bundle.usage
    never_worked = usage.tool == usage.tools.index("files.read_file")
    save_usage(own_bundle, replace(usage, kind=np.where(never_worked, LOST, usage.kind).astype(np.int8)))
    seal(own_bundle, bundle.manifest)
    query = Query(qid="1", text="open the document", gold=("files.read_file",))
    assert counts(trained.bundle, trained.catalog, query) == (1, 0)
    assert counts(own_bundle, trained.catalog, query) == (0, 1)


def test_an_equivalent_counts_as_its_gold(trained: Trained) -> None:
    text, best = tiny.goals("mail.send_message")[0], "mail.send_message"
    queries = [
        Query(qid="1", text=text, gold=("files.read_file",)),
        Query(qid="2", text=text, gold=("files.read_file",), gold_alt={"files.read_file": (best,)}),
    ]
    alone, with_it = (evaluate(trained.bundle, trained.catalog, [query])["rungs"]["selector"] for query in queries)
    assert alone["all"]["recall@1"] == 0.0
    assert with_it["all"]["recall@1"] == 1.0


# --- abstention, chain, menu --------------------------------------------------------------------------------------


def test_abstention_is_measured_on_all_queries_with_the_unanswerable_as_positives(report: dict[str, Any]) -> None:
    assert report["queries"] == {"answered": 12, "no_tool": 2, "cold": 1}
    assert report["abstention"]["auroc"] > 0.5
    assert 0.0 <= report["abstention"]["turned_away"] <= 1.0


def test_without_an_unanswerable_query_there_is_no_recall_of_abstention(trained: Trained) -> None:
    abstention = evaluate(trained.bundle, trained.catalog, [q for q in tiny.queries() if q.gold])["abstention"]
    assert abstention["auroc"] is None
    assert abstention["recall"] is None


def test_the_chain_multiplies_to_what_comes_out_at_its_end(report: dict[str, Any]) -> None:
    chain = report["chain"]
    links = [chain[name] for name in CHAIN - {"R_decompose", "product"}]
    assert chain["R_decompose"] is None, "a query of an evaluation is one step"
    assert chain["product"] == pytest.approx(np.prod(links))
    assert chain["R_retrieve"] == 1.0, "twelve tools are all candidates"


def test_the_menu_figures_are_within_the_limits(report: dict[str, Any]) -> None:
    menu = report["menu"]
    assert 0 < menu["mean_size"] <= menu["max_size"] <= 12
    assert menu["mean_tokens"] > 0


# --- input that cannot be measured --------------------------------------------------------------------------------


def test_queries_that_name_no_right_tool_are_refused(trained: Trained) -> None:
    for queries in ([], [Query(qid="1", text="sing", gold=())]):
        with pytest.raises(InputError, match="names a right tool"):
            evaluate(trained.bundle, trained.catalog, queries)


def test_gold_tools_that_the_catalog_does_not_have_are_named(trained: Trained) -> None:
    with pytest.raises(InputError, match=r"1 gold tools are not in the catalog, the first is 'gone\.tool'"):
        evaluate(trained.bundle, trained.catalog, [Query(qid="1", text="sing", gold=("gone.tool",))])


def test_a_bundle_for_another_catalog_is_refused_unless_it_is_meant_to_be_carried_over(trained: Trained) -> None:
    renamed = Catalog(card.model_copy(update={"tool_id": f"new.{card.tool_id}"}) for card in trained.catalog)
    queries = [Query(qid="1", text="send the email", gold=("new.mail.send_message",))]
    with pytest.raises(InputError, match="another catalog"):
        evaluate(trained.bundle, renamed, queries)
    carried = evaluate(trained.bundle, renamed, queries, allow_foreign_catalog=True)
    assert carried["rungs"]["selector"]["cold"]["n"] == 1

"""What the service decided and was told, exported and mined: menus, propensities and exploration as they were."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shop import Shop, open_shop

from data.jsonl import load_catalog
from data.mining.miner import Mined, mine
from data.mining.options import MiningOptions
from data.trace_store import read_traces
from data.traces import Trace
from serving.explore import Showings
from toolcrib.cli import main

EXPLORING = {"explore_rate": 0.5, "max_tools": 5}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with open_shop(tmp_path, selector=EXPLORING) as opened:
        yield opened


def explored(shop: Shop, goal: str = "list the orders of a customer") -> dict[str, Any]:
    """The whole slice of the first of many requests whose last slot is tried out."""
    for number in range(200):
        slice_id = shop.select(goal, request_id=f"r{number}", trace_id=f"run {number}")["slice_id"]
        found = shop.get(f"/v1/slices/{slice_id}", "olga").json()["slice"]
        if any(entry["explored"] for entry in found["menu"]):
            return dict(found)
    raise AssertionError("nothing was explored")


@pytest.mark.parametrize(
    ("rates", "counted"),
    [({"explore_rate": 0.0}, False), ({"explore_rate": 0.0, "explore_rates": {"acme": 0.1}}, True)],
)
def test_what_was_explored_is_counted_where_anything_still_explores(
    shop: Shop, tmp_path: Path, rates: dict[str, Any], counted: bool
) -> None:
    found = explored(shop)
    tried = next(entry["tool_id"] for entry in found["menu"] if entry["explored"])
    shop.report("k", found["slice_id"], tried)
    exploring = shop.assembly
    exploring.count_showings()
    assert exploring.watch.live.current.versions.showings
    exploring._settings = exploring._settings.model_copy(
        update={"selector": exploring._settings.selector.model_copy(update=rates)}
    )
    exploring.watch.live.set_showings(Showings())
    exploring.count_showings()
    assert bool(exploring.watch.live.current.versions.showings) == counted


def exported(shop: Shop, capsys: pytest.CaptureFixture[str]) -> tuple[list[Trace], dict[str, Any]]:
    out = shop.folder / "traces.parquet"
    words = ["traces", "export", "--database", str(shop.folder / "traces.db"), "-o", str(out), "--json"]
    assert main(words) == 0
    return read_traces(out), json.loads(capsys.readouterr().out)


def mined(shop: Shop, **options: float) -> Mined:
    catalog = load_catalog(shop.folder / "catalog.jsonl")
    return mine(shop.folder / "traces.parquet", catalog, options=MiningOptions(**options))


def test_an_exported_menu_is_the_one_that_was_shown(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    found = explored(shop)
    tried = next(entry for entry in found["menu"] if entry["explored"])
    shop.report("k", found["slice_id"], tried["tool_id"], arguments={"a": 1}, latency_ms=7.5, task_success=True)
    (trace,), figures = exported(shop, capsys)
    assert trace.menu is not None
    kept = [(one.tool_id, one.position, one.relevance, one.propensity, one.explored) for one in trace.menu]
    names = ("tool_id", "position", "relevance", "propensity", "explored")
    assert kept == [tuple(entry[name] for name in names) for entry in found["menu"]]
    assert 0.0 < tried["propensity"] < 1.0
    assert (trace.catalog_version, trace.slice_id) == (found["catalog_version"], found["slice_id"])
    assert trace.retrieved is not None
    assert {one.tool_id for one in trace.menu} - {"help.topics", "toolcrib.search_tools"} <= set(trace.retrieved)
    assert (trace.arguments, trace.latency_ms, trace.task_success) == ({"a": 1}, 7.5, True)
    assert figures["traces"] == 1


def test_a_tool_that_was_tried_out_weighs_the_inverse_of_its_chance(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    found = explored(shop)
    tried = next(entry for entry in found["menu"] if entry["explored"])
    shop.report("k", found["slice_id"], tried["tool_id"])
    exported(shop, capsys)
    rows = [row for row in mined(shop, propensity_clip=1000.0).examples.to_pylist() if row["label"] == 1.0]
    (chosen,) = [row for row in rows if row["tool_id"] == tried["tool_id"] and row["reason"].startswith("chosen")]
    assert chosen["weight"] == pytest.approx(1 / tried["propensity"])


def test_what_was_shown_and_passed_over_is_a_soft_negative_and_what_was_withheld_is_nothing(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shop.select("list the orders of a customer", trace_id="run")
    shown = [entry["tool_id"] for entry in found["menu"]]
    shop.report("k", found["slice_id"], "shop.orders")
    exported(shop, capsys)
    rows = mined(shop).examples.to_pylist()
    passed = {row["tool_id"] for row in rows if row["reason"] == "shown_not_chosen"}
    assert passed == set(shown) - {"shop.orders", "toolcrib.search_tools"}
    of_log = {row["tool_id"] for row in rows if row["reason"] != "card_text_positive"}
    assert "vault.open_safe" not in of_log


def test_nothing_called_and_nothing_reported_are_told_apart(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    called_nothing = shop.select("tell me a joke", trace_id="a")["slice_id"]
    shop.report("k", called_nothing, None, outcome="unknown")
    shop.select("refund the order", trace_id="b")
    traces, figures = exported(shop, capsys)
    assert [(trace.trace_id, trace.tool_id) for trace in traces] == [("a", None)]
    assert figures["left_out"]["decisions"] == 1


def test_an_outcome_of_each_step_counts_for_its_own_goal(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    body = {"subgoals": [{"goal": "list the orders of a customer"}, {"goal": "search the mailbox for messages"}]}
    found = shop.ok("/v1/select", {**body, "trace_id": "run"})
    shop.report("1", found["slice_id"], "shop.orders")
    shop.report("2", found["slice_id"], "mail.search")
    traces, _ = exported(shop, capsys)
    assert {(trace.goal, trace.tool_id) for trace in traces} == {
        ("list the orders of a customer", "shop.orders"),
        ("search the mailbox for messages", "mail.search"),
    }
    rows = mined(shop).examples.to_pylist()
    found_pairs = {(row["goal"], row["tool_id"]) for row in rows if row["reason"].startswith("chosen")}
    assert found_pairs == {(trace.goal, trace.tool_id) for trace in traces}

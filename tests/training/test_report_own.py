"""A training's own report: held-out requests meet a memory in which they were never logged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import tiny
from tiny import Trained

from data.mining.miner import mine
from serving.bundle import load_bundle
from training import evaluation
from training.decisions import Decision, gather_decisions
from training.report.own import own_report


@pytest.fixture(scope="module", autouse=True)
def no_base() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "base_bundle", lambda: None)
        yield


@pytest.fixture(scope="module")
def decisions(trained: Trained) -> list[Decision]:
    recipe = tiny.recipe(trained.base)
    mined = mine(trained.traces, trained.catalog, options=recipe.mining)
    split = recipe.split
    found = gather_decisions(mined, valid_share=split.valid_share, cold_share=split.cold_share, seed=recipe.seed)
    return [decision for decision in found if decision.asked and decision.side != "train"]


def test_a_tool_that_was_held_out_whole_is_cold_in_the_report(trained: Trained, decisions: list[Decision]) -> None:
    report = own_report(trained.bundle, trained.catalog, decisions, {})
    assert report is not None
    asked = {decision.group for decision in decisions}
    assert report["queries"]["answered"] + report["queries"]["no_tool"] == len(asked)
    cold = {decision.group for decision in decisions if decision.side == "cold"}
    assert report["queries"]["cold"] >= len(cold) > 0
    assert len(load_bundle(trained.bundle).usage.tool) > 0, "the bundle itself forgets nothing"


def test_one_request_asked_again_and_again_is_one_query(trained: Trained, decisions: list[Decision]) -> None:
    one = next(decision for decision in decisions if decision.tools)
    report = own_report(trained.bundle, trained.catalog, [one] * 5, {})
    assert report is not None
    assert report["queries"]["answered"] == 1


def test_an_equivalent_counts_as_its_tool(trained: Trained, decisions: list[Decision]) -> None:
    one = next(decision for decision in decisions if decision.tools)
    tool = one.tools[0][0]
    others = tuple(other for other in trained.catalog.ids if other != tool)
    report = own_report(trained.bundle, trained.catalog, [one], {tool: others})
    assert report is not None
    assert report["rungs"]["selector"]["all"]["recall@1"] == 1.0


def test_a_log_that_leaves_nothing_to_ask_has_no_report(trained: Trained, decisions: list[Decision]) -> None:
    assert own_report(trained.bundle, trained.catalog, [], {}) is None
    nothing = [decision for decision in decisions if not decision.tools]
    assert own_report(trained.bundle, trained.catalog, nothing, {}) is None

"""Later calls say which tool was right, or nothing; never a guess."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from data.cards import ToolCard
from data.catalog import Catalog
from data.errors import InputError
from data.traces import Trace
from training.held_out import queries_from_traces

CATALOG = Catalog(ToolCard(tool_id=name, name=name) for name in ("a", "b"))


def call(trace: str, tool: str | None, outcome: str = "success", goal: str = "g", **more: Any) -> Trace:
    return Trace.model_validate({"trace_id": trace, "goal": goal, "tool_id": tool, "outcome": outcome, **more})


def golds(*traces: Trace) -> list[tuple[str, ...]]:
    return [query.gold for query in queries_from_traces(traces, CATALOG, "log")]


def test_every_tool_that_succeeded_is_right() -> None:
    assert golds(call("t", "a"), call("t", "b"), call("t", "a")) == [("a", "b")]


def test_a_failure_before_the_success_is_not_gold() -> None:
    assert golds(call("t", "a", "failure"), call("t", "b")) == [("b",)]


def test_a_label_outranks_the_outcome() -> None:
    assert golds(call("t", "a", gold=("b",))) == [("b",)]
    assert golds(call("t", "a", gold=())) == [()]


def test_nothing_called_means_that_no_tool_fits() -> None:
    assert golds(call("t", None, "unknown")) == [()]


def test_decisions_that_say_nothing_are_left_out_and_counted(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("toolcrib"), "propagate", True)  # the command turns it off
    traces = [call("t1", "a", "failure"), call("t2", "a", "unknown"), call("t3", "gone"), call("t4", "a")]
    assert golds(*traces) == [("a",)]
    assert "no call that succeeded (2), a right tool that the catalog does not have (1)" in caplog.text


def test_two_goals_of_one_trace_are_two_queries_with_their_own_ids() -> None:
    queries = queries_from_traces([call("t", "a"), call("t", "b", goal="h")], CATALOG, "log")
    assert [(q.qid, q.text, q.gold) for q in queries] == [("t", "g", ("a",)), ("t#2", "h", ("b",))]


def test_a_log_that_says_nothing_at_all_is_an_error() -> None:
    with pytest.raises(InputError, match=r"log: none of the decisions says which tool is right: no call that succ"):
        queries_from_traces([call("t", "a", "failure")], CATALOG, "log")

"""A decision explained from its record: what each stage did to one tool."""

from __future__ import annotations

import pytest

from data.context import Subgoal
from serving.service.explaining import explain
from serving.slice import Abstention, MenuEntry, Slice, StageRecord

RECORD = (
    StageRecord(stage="mask", kept=4, dropped={"a.masked": "scopes"}),
    StageRecord(stage="filter", kept=3, dropped={"a.writes": "writes"}),
    StageRecord(stage="retrieve", kept=2, scores={"a.best": 0.9, "a.second": 0.5}),
    StageRecord(stage="relevance", kept=2, scores={"a.best": 0.8, "a.second": 0.1}),
    StageRecord(stage="menu", kept=2, dropped={"a.second": "max_tools"}),
)
MENU = (
    MenuEntry(tool_id="a.best", position=0, rank=0, verdict="allow", rule="reads"),
    MenuEntry(tool_id="a.core", position=1, reason="core", verdict="confirm", rule="asks"),
)


def made(**changes: object) -> Slice:
    return Slice(
        request_id="r",
        catalog_version="c7",
        bundle_version="b",
        policy_version="p",
        caller_key="k",
        subgoal=Subgoal(goal="g"),
        query="g",
        menu=MENU,
        record=RECORD,
    ).model_copy(update=changes)


@pytest.mark.parametrize(
    ("tool_id", "fates", "said"),
    [
        ("a.best", ["kept", "kept", "kept", "kept", "kept"], "was shown (rank 1), verdict allow by rule 'reads'"),
        ("a.masked", ["dropped", *["not_reached"] * 4], "dropped in stage 'mask' by 'scopes'"),
        ("a.writes", ["kept", "dropped", *["not_reached"] * 3], "dropped in stage 'filter' by 'writes'"),
        ("a.far", ["kept", "kept", "dropped", *["not_reached"] * 2], "'retrieve' by 'not_among_the_candidates'"),
        ("a.second", ["kept", "kept", "kept", "kept", "dropped"], "dropped in stage 'menu' by 'max_tools'"),
        ("a.core", ["kept", "kept", "not_reached", "not_reached", "kept"], "was shown (a core tool), verdict confirm"),
    ],
)
def test_a_tool_is_followed_through_the_stages(tool_id: str, fates: list[str], said: str) -> None:
    found = explain(made(), tool_id, known=True)
    assert [stage.fate for stage in found.stages] == fates
    assert said in found.summary


def test_scores_are_those_of_the_stage() -> None:
    found = explain(made(), "a.second", known=True)
    assert [stage.score for stage in found.stages if stage.score is not None] == [0.5, 0.1]


def test_a_tool_that_was_not_there_has_no_stages() -> None:
    found = explain(made(), "a.never", known=False)
    assert (found.stages, found.summary) == ((), "a.never was not in catalog c7.")


def test_an_abstention_is_the_reason_where_nothing_was_shown() -> None:
    nothing = made(menu=(), record=RECORD[:1], abstention=Abstention(outcome="ask"))
    assert "nothing fitted well enough (ask)" in explain(nothing, "a.best", known=True).summary

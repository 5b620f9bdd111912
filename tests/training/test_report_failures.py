"""Failures: each request that went wrong is in the class of the stage that lost its tool, and in no other."""

from __future__ import annotations

import pytest
from report_rows import answer

from training.answers import Answer
from training.report.failures import EXAMPLES, KINDS, failure_of, failures

RANKED = {"a": 0.8, "b": 0.5, "c": 0.2}


@pytest.mark.parametrize(
    ("kind", "given", "note"),
    [
        ("split", answer(["a", "c"], RANKED), "1 of 2 right tools shown"),
        ("withheld", answer(["z"], RANKED, dropped={"z": "scopes"}), "by the rule 'scopes'"),
        ("withheld", answer(["z"], RANKED, dropped={"z": "tenant"}, outcome="ask"), "by the rule 'tenant'"),
        ("withheld", answer(["a", "z"], RANKED, dropped={"z": "scopes"}), "by the rule 'scopes'"),
        (
            "turned_away",
            answer(["z"], RANKED, dropped={"z": "env"}, alternatives={"z": ("y",)}, outcome="ask", fit=0.2),
            "chance that a tool fits: 0.200",
        ),
        ("not_retrieved", answer(["z"], RANKED), "best candidate's relevance 0.800"),
        ("turned_away", answer(["a"], RANKED, outcome="missing_capability", fit=0.1), "chance that a tool fits: 0.100"),
        ("below_menu", answer(["c"], RANKED, limits={"c": "max_tools"}), "rank 3 (limit: max_tools)"),
        ("outranked", answer(["b"], RANKED), "in place 2, relevance 0.500"),
        ("not_turned_away", answer([], RANKED, fit=0.7), "chance that a tool fits: 0.700"),
    ],
)
def test_the_class_is_the_stage_that_lost_the_tool(kind: str, given: Answer, note: str) -> None:
    found = failure_of(given)
    assert found is not None
    assert (found.kind, found.note) == (kind, note)


@pytest.mark.parametrize(
    "given",
    [
        answer(["a"], RANKED),
        answer(["a", "b"], RANKED),
        answer(["b", "a"], RANKED),
        answer(["z"], RANKED, alternatives={"z": ("a",)}),
        answer([], RANKED, outcome="ask"),
        answer([], {}),
    ],
    ids=["first", "both", "both, the other first", "by an equivalent", "rightly turned away", "nothing to show"],
)
def test_a_request_that_went_right_is_in_no_class(given: Answer) -> None:
    assert failure_of(given) is None


def test_one_tool_cannot_stand_for_two_right_ones() -> None:
    both = {"y": ("a",), "z": ("a",)}
    found = failure_of(answer(["y", "z"], {"a": 0.9, "b": 0.1}, alternatives=both))
    assert found is not None
    assert found.kind == "split"


def test_a_tool_without_relevance_is_outranked_by_its_place() -> None:
    given = answer(["b"], RANKED)
    record = tuple(stage for stage in given.slice.record if stage.stage != "relevance")
    bare = Answer(given.query, given.slice.model_copy(update={"record": record}), warm=True)
    found = failure_of(bare)
    assert found is not None
    assert (found.kind, found.note) == ("outranked", "in place 2")


def test_counts_are_of_the_requests_that_could_fail_so_and_cold_ones_are_counted_apart() -> None:
    given = [
        answer(["a"], RANKED),
        answer(["z"], RANKED, warm=False),
        answer(["z"], RANKED),
        answer([], RANKED),
    ]
    table = failures(given)
    assert tuple(table) == KINDS
    assert (table["not_retrieved"]["count"], table["not_retrieved"]["of"], table["not_retrieved"]["cold"]) == (2, 3, 1)
    assert (table["not_turned_away"]["count"], table["not_turned_away"]["of"]) == (1, 1)
    assert sum(row["count"] for row in table.values()) == 3


def test_the_five_worst_are_shown_the_surest_mistake_first() -> None:
    given = [answer(["b"], {"a": 0.9 - 0.1 * i, "b": 0.05}, qid=f"q{i}") for i in (3, 0, 2, 1, 5, 4, 6)]
    examples = failures(given)["outranked"]["examples"]
    assert len(examples) == EXAMPLES
    assert [row["qid"] for row in examples] == ["q0", "q1", "q2", "q3", "q4"]
    assert examples[0]["instead"][0] == {"tool_id": "a", "relevance": 0.9}
    assert examples[0]["gold"] == ["b"]


def test_a_long_request_is_quoted_in_part() -> None:
    (row,) = failures([answer(["b"], RANKED, text="word " * 500)])["outranked"]["examples"]
    assert len(row["text"]) == 300
    assert row["text"].endswith("…")

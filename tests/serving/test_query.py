"""The query: what a goal, a bare reply and the state of the task search for."""

from __future__ import annotations

import pytest

from data.context import Recent, Subgoal
from data.errors import InputError
from serving.query import is_bare_reply, resolve_query


def resolve(goal: str, recent: Recent | None = None, **fields: object) -> str:
    return resolve_query(Subgoal.model_validate({"goal": goal, **fields}), recent or Recent())


def test_a_goal_is_its_own_query_with_white_space_folded() -> None:
    recent = Recent(plan="something else", turns=("a turn",))
    assert resolve("  list\n open   issues ", recent) == "list open issues"


@pytest.mark.parametrize("goal", ["", "   ", "\n\t"])
def test_an_empty_goal_is_refused(goal: str) -> None:
    with pytest.raises(InputError, match="goal"):
        resolve(goal)


@pytest.mark.parametrize(
    "reply",
    [
        "yes", "Yes, do it!", "ok continue", "Go ahead, please.", "👍", "y", "sounds good", "do that", "keep going",
        "ja, bitte", "Mach das", "d'accord, vas-y", "sí, adelante", "va bene", "graag", "tak", "evet, devam et",
        "đồng ý", "да, продолжай", "نعم", "ठीक है", "好的", "继续", "はい、お願いします", "네, 계속해줘", "ＯＫ",
    ],
)  # fmt: skip
def test_a_bare_reply_takes_its_meaning_from_the_plan(reply: str) -> None:
    assert resolve(reply, Recent(plan="create a calendar event on Friday")) == "create a calendar event on Friday"


@pytest.mark.parametrize(
    "goal",
    [
        "yes, delete the draft",
        "list issues",
        "no",
        "stop",
        "搜索文件",
        "continue the deployment",
        "oui, envoie le mail",
    ],
)
def test_a_reply_with_content_of_its_own_is_the_query(goal: str) -> None:
    assert not is_bare_reply(goal)
    assert resolve(goal, Recent(plan="something else")) == goal


def test_without_a_plan_the_last_turn_that_says_something_is_meant() -> None:
    recent = Recent(turns=("find my invoices", "I can export them as a table. Shall I?", "yes"))
    assert resolve("do it", recent) == "I can export them as a table. Shall I?"


def test_of_a_long_turn_the_end_is_read_from_the_start_of_a_word() -> None:
    query = resolve("yes", Recent(turns=("filler " * 400 + "Shall I archive the board?",)))
    assert query.endswith("Shall I archive the board?")
    assert len(query) <= 600
    assert query.startswith("filler ")


def test_a_bare_reply_to_nothing_stands_for_itself() -> None:
    assert resolve("yes") == "yes"


def test_operations_and_entities_are_added_when_they_add_words() -> None:
    assert resolve("close it", operations=("close",), entities=("pull request", "it")) == "close it pull request"
    assert resolve("list pull requests", entities=("pull_request", "requests")) == "list pull requests pull_request"


def test_operations_and_entities_are_added_to_what_a_bare_reply_means_too() -> None:
    assert resolve("yes", Recent(plan="export the table"), entities=("csv",)) == "export the table csv"

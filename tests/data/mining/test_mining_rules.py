"""Each mining rule on the smallest log that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mining_log import Found, Story, at, call, menu

from data.mining import rules
from data.mining.calls import Log
from data.mining.options import PROPENSITY_CLIP, MiningOptions
from data.traces import SILENT_ERRORS, Trace

OPTIONS = MiningOptions(unknown_weight=0.2)
STORY = Story()


@pytest.fixture(scope="module")
def found() -> Iterator[Found]:
    with STORY.read() as found:
        yield found


def succeeded(log: Log) -> Any:
    return rules.chosen_succeeded(log, OPTIONS)


def empty(log: Log) -> Any:
    return rules.chosen_empty(log, OPTIONS)


def validation(log: Log) -> Any:
    return rules.chosen_validation(log, OPTIONS)


def unknown(log: Log) -> Any:
    return rules.unknown_outcome(log, OPTIONS)


def gold(log: Log) -> Any:
    return rules.gold_label(log, OPTIONS)


def pairs(log: Log) -> Any:
    return rules.preference_pairs(log, OPTIONS)


def hard(log: Log) -> Any:
    return rules.failed_then_other_succeeded(pairs(log))


def alone(log: Log) -> Any:
    return rules.failed_alone(log, pairs(log))


def soft(log: Log) -> Any:
    return rules.shown_not_chosen(log, OPTIONS)


def tools(found_rows: list[dict[str, Any]]) -> list[str]:
    return [row["tool_id"] for row in found_rows]


PLAIN = STORY.tell(call("mail.send", step=3, ts=at(5), tenant="acme"))


def test_a_tool_that_was_chosen_and_succeeded_is_a_full_positive(found: Found) -> None:
    (row,) = found(succeeded, PLAIN)
    assert (row["tool_id"], row["label"], row["weight"], row["reason"]) == ("mail.send", 1.0, 1.0, "chosen_succeeded")
    assert (row["trace_id"], row["step"], row["ts"], row["tenant"]) == ("t1", 3, at(5), "acme")
    assert row["goal"] == "send the report"


TASKS = STORY.tell(
    call("mail.send", trace_id="failed", task_success=False),
    call("mail.send", trace_id="judged", task_success=True),
    call("mail.send", trace_id="unjudged"),
)


def test_a_success_in_a_failed_task_weighs_less_than_one_in_a_task_nobody_judged(found: Found) -> None:
    weights = {row["trace_id"]: row["weight"] for row in found(succeeded, TASKS)}
    assert weights == {"failed": OPTIONS.task_failed_weight, "judged": 1.0, "unjudged": 1.0}


ERRORS = ("tool_error", "wrong_tool", "validation", "auth", "timeout")
LYING = {error: STORY.tell(call("mail.send", error, outcome="success")) for error in ERRORS}


@pytest.mark.parametrize("error", ERRORS)
def test_a_success_flag_beside_an_error_is_no_success(found: Found, error: str) -> None:
    assert found(succeeded, LYING[error]) == []


EMPTY = STORY.tell(Trace(trace_id="t1", goal="g", tool_id="mail.search", outcome="success", error_class="empty_result"))


def test_a_success_that_returned_nothing_is_a_weaker_positive(found: Found) -> None:
    (row,) = found(empty, EMPTY)
    assert (row["label"], row["weight"], row["reason"]) == (1.0, OPTIONS.empty_weight, "chosen_empty")
    assert found(succeeded, EMPTY) == []


ENDS = STORY.tell(
    call("mail.send", "tool_error", step=1, ts=at(1)),
    call("sheets.append", step=2),
    call("files.search", "wrong_tool", trace_id="alone", gold=("mail.send",)),
    call("mail.search", "failure", trace_id="twice", step=1),
    call("mail.search", trace_id="twice", step=2),
    *(call("mail.send", how, trace_id=how) for how in ("validation", "unknown", *SILENT_ERRORS)),
    call("mail.send", "empty_result", trace_id="empty", outcome="success"),
)


def test_history_is_how_calls_ended_by_the_tools_own_doing_whoever_then_served(found: Found) -> None:
    assert [(row["trace_id"], row["tool_id"], row["step"], row["won"]) for row in found(rules.history, ENDS)] == [
        ("alone", "files.search", 0, False),
        ("t1", "mail.send", 1, False),
        ("t1", "sheets.append", 2, True),
        ("twice", "mail.search", 2, True),
    ], "a retry that worked is one call that worked"


WRONG_ARGUMENTS = STORY.tell(call("mail.send", "validation", step=1), call("sheets.append", step=2))


def test_wrong_arguments_are_a_weak_positive_and_no_negative_whatever_then_succeeded(found: Found) -> None:
    (row,) = found(validation, WRONG_ARGUMENTS)
    assert (row["tool_id"], row["label"], row["weight"]) == ("mail.send", 1.0, OPTIONS.validation_weight)
    assert found(hard, WRONG_ARGUMENTS) == []
    assert found(pairs, WRONG_ARGUMENTS) == []


SILENT = {
    error: STORY.tell(
        call("mail.send", error, step=1, menu=menu("mail.send", "sheets.append")), call("sheets.append", step=2)
    )
    for error in SILENT_ERRORS
}


@pytest.mark.parametrize("error", SILENT_ERRORS)
def test_an_error_that_says_nothing_is_counted_and_makes_no_example(found: Found, error: str) -> None:
    assert tools(found(rules.says_nothing, SILENT[error])) == ["mail.send"]
    assert found(hard, SILENT[error]) == []
    assert found(soft, SILENT[error]) == []
    assert tools(found(succeeded, SILENT[error])) == ["sheets.append"]


RETRY = STORY.tell(
    call("mail.send", "timeout", step=1), call("mail.send", "tool_error", step=2), call("mail.send", step=3)
)


def test_a_retry_that_works_makes_the_tool_a_positive_once_at_the_step_that_worked(found: Found) -> None:
    (row,) = found(succeeded, RETRY)
    assert row["step"] == 3
    assert found(rules.says_nothing, RETRY) == []
    assert found(alone, RETRY) == []


FALLBACK = STORY.tell(call("files.search", "tool_error", step=1), call("files.read", step=2))


def test_a_failed_tool_is_a_hard_negative_when_another_then_succeeded_at_the_same_goal(found: Found) -> None:
    (row,) = found(hard, FALLBACK)
    assert (row["tool_id"], row["label"], row["weight"], row["step"]) == ("files.search", 0.0, 1.0, 1)
    (pair,) = found(pairs, FALLBACK)
    assert (pair["better"], pair["tool_id"]) == ("files.read", "files.search")
    assert found(alone, FALLBACK) == []


SPELLED = STORY.tell(
    call("files.search", "tool_error", goal="Find \t it", step=1), call("files.read", goal=" find it\n", step=2)
)


def test_the_goal_is_the_same_if_only_case_and_white_space_differ(found: Found) -> None:
    assert tools(found(hard, SPELLED)) == ["files.search"]


NOT_THEN = {
    why: STORY.tell(call("files.search", "tool_error", step=1), call("files.read", **other))
    for why, other in {
        "another goal": {"goal": "another goal", "step": 2},
        "another trace": {"trace_id": "t2", "step": 2},
        "an earlier step": {"step": 0},
        "the same step without times": {"step": 1},
    }.items()
}


@pytest.mark.parametrize("why", NOT_THEN)
def test_a_failed_tool_is_only_counted_when_nothing_else_then_succeeded(found: Found, why: str) -> None:
    assert found(hard, NOT_THEN[why]) == []
    assert tools(found(alone, NOT_THEN[why])) == ["files.search"]


SAME_STEP = STORY.tell(
    call("files.search", "wrong_tool", trace_id="later", ts=at(1)),
    call("files.read", trace_id="later", ts=at(2)),
    call("files.search", "wrong_tool", trace_id="earlier", ts=at(1)),
    call("files.read", trace_id="earlier", ts=at(0)),
)


def test_within_a_step_the_times_decide_what_came_then(found: Found) -> None:
    assert [row["trace_id"] for row in found(hard, SAME_STEP)] == ["later"]


UNCLASSIFIED = STORY.tell(call("files.search", "failure", step=1), call("files.read", step=2))


def test_a_failure_without_a_class_is_a_weaker_negative_as_it_may_have_been_an_expired_token(found: Found) -> None:
    assert [row["weight"] for row in found(hard, UNCLASSIFIED)] == [OPTIONS.unclassified_weight]


NOTHING_FOUND = STORY.tell(call("files.search", "empty_result", step=1), call("files.read", step=2))
NOTHING_JUDGED = STORY.tell(
    Trace(trace_id="t1", step=1, goal="send the report", tool_id="files.search", error_class="empty_result"),
    call("files.read", step=2),
)


def test_an_empty_failure_is_a_negative_and_an_empty_answer_nobody_judged_is_not(found: Found) -> None:
    assert tools(found(hard, NOTHING_FOUND)) == ["files.search"]
    assert found(hard, NOTHING_JUDGED) == []


SEVERAL = STORY.tell(call("maps.route", "tool_error", step=1), call("files.read", step=2), call("mail.send", step=3))


def test_a_goal_that_took_several_tools_says_less_about_each_one_that_failed(found: Found) -> None:
    assert [row["weight"] for row in found(hard, SEVERAL)] == [0.5]
    assert [pair["better"] for pair in found(pairs, SEVERAL)] == ["files.read", "mail.send"]


PASSED_OVER = STORY.tell(call("mail.send", menu=menu("files.search", "mail.send", "maps.route", "files.read")))


def test_a_tool_that_was_shown_and_passed_over_is_a_soft_negative_less_so_further_down(found: Found) -> None:
    found_rows = found(soft, PASSED_OVER)
    weights = {row["tool_id"]: row["weight"] for row in found_rows}
    assert list(weights) == ["files.read", "files.search", "maps.route"]
    assert weights["files.search"] == OPTIONS.soft_negative_weight
    assert weights["files.read"] == OPTIONS.soft_negative_weight / 2
    assert weights["files.search"] > weights["maps.route"] > weights["files.read"]
    assert {row["label"] for row in found_rows} == {0.0}


UNDECIDED = {
    how: STORY.tell(call("mail.send", how, menu=menu("mail.send", "files.read")))
    for how in ("tool_error", "timeout", "unknown", "validation")
}


@pytest.mark.parametrize("how", UNDECIDED)
def test_what_was_passed_over_is_no_negative_unless_another_tool_succeeded(found: Found, how: str) -> None:
    assert found(soft, UNDECIDED[how]) == []


CALLED_EARLIER = STORY.tell(
    call("files.read", "unknown", step=1, menu=menu("mail.send", "files.read")),
    call("mail.send", step=2, menu=menu("mail.send", "files.read")),
)


def test_a_tool_that_was_called_at_any_step_was_not_passed_over(found: Found) -> None:
    assert found(soft, CALLED_EARLIER) == []


RARE = STORY.tell(
    call(
        "mail.send",
        menu=menu("mail.send", "files.read", "maps.route", mail_send=0.25, files_read=0.5, maps_route=0.0001),
    )
)


def test_what_was_unlikely_to_be_shown_counts_for_more_up_to_the_clip(found: Found) -> None:
    assert [row["weight"] for row in found(succeeded, RARE)] == [4.0]
    weights = {row["tool_id"]: row["weight"] for row in found(soft, RARE)}
    assert weights["files.read"] == pytest.approx(OPTIONS.soft_negative_weight / 2**0.5 * 2)
    assert weights["maps.route"] == pytest.approx(OPTIONS.soft_negative_weight / 3**0.5 * PROPENSITY_CLIP)


RETRIEVED = STORY.tell(
    call("mail.send", menu=menu("mail.send"), retrieved=("mail.send", "files.read", "maps.route")),
    call("mail.send", trace_id="without a menu", retrieved=("files.read",)),
)


def test_retrieved_but_not_shown_is_counted_where_the_menu_is_known(found: Found) -> None:
    assert [(row["trace_id"], row["tool_id"]) for row in found(rules.retrieved_not_shown, RETRIEVED)] == [
        ("t1", "files.read"),
        ("t1", "maps.route"),
    ]
    assert found(soft, RETRIEVED) == []


NOTHING_CALLED = STORY.tell(call(None, "unknown", goal="brew a coffee", step=4, ts=at(1), tenant="acme"))
GAVE_UP = STORY.tell(call("mail.send", "timeout", step=1), call(None, "unknown", step=2))


def test_a_request_for_which_nothing_was_called_is_a_no_tool_request(found: Found) -> None:
    (row,) = found(rules.no_tool, NOTHING_CALLED)
    assert (row["goal"], row["step"], row["ts"], row["tenant"]) == ("brew a coffee", 4, at(1), "acme")


def test_giving_up_after_calls_does_not_say_that_nothing_fits(found: Found) -> None:
    assert found(rules.no_tool, GAVE_UP) == []


LABELLED = STORY.tell(
    call("mail.send", step=1, gold=("files.read", "maps.route")),
    call("files.read", "tool_error", step=2, gold=("files.read", "maps.route")),
)


def test_a_human_label_outranks_what_the_calls_say(found: Found) -> None:
    assert [(row["tool_id"], row["label"], row["weight"]) for row in found(gold, LABELLED)] == [
        ("files.read", 1.0, 1.0),
        ("maps.route", 1.0, 1.0),
    ]
    assert found(succeeded, LABELLED) == []
    assert found(hard, LABELLED) == []
    assert tools(found(rules.outside_gold, LABELLED)) == ["mail.send"]


NAMED = STORY.tell(
    call("mail.send", "tool_error", gold=("files.read",), menu=menu("mail.send", "files.read", "maps.route"))
)


def test_a_tool_that_failed_is_worse_than_the_one_that_a_human_named(found: Found) -> None:
    assert [(pair["better"], pair["tool_id"]) for pair in found(pairs, NAMED)] == [("files.read", "mail.send")]
    assert tools(found(soft, NAMED)) == ["maps.route"]


NONE_NAMED = STORY.tell(call("mail.send", gold=()))
NAMED_UNCALLED = STORY.tell(call(None, "unknown", gold=("mail.send",)))


def test_a_human_who_named_no_tool_makes_a_no_tool_request_whatever_was_called(found: Found) -> None:
    assert [row["goal"] for row in found(rules.no_tool, NONE_NAMED)] == ["send the report"]
    assert found(succeeded, NONE_NAMED) == []


def test_a_human_who_named_a_tool_outranks_a_log_that_called_none(found: Found) -> None:
    assert found(rules.no_tool, NAMED_UNCALLED) == []
    assert tools(found(gold, NAMED_UNCALLED)) == ["mail.send"]


NOT_KNOWN = STORY.tell(call("mail.send", "unknown"), call("files.read", "unknown", trace_id="t2", task_success=False))


def test_an_unknown_outcome_is_a_weak_positive_of_the_weight_that_was_asked_for(found: Found) -> None:
    weights = [row["weight"] for row in found(unknown, NOT_KNOWN)]
    assert weights == [0.2, pytest.approx(0.2 * OPTIONS.task_failed_weight)]


OUTSIDE = STORY.tell(
    call("gone.tool", step=1, menu=menu("gone.tool", "mail.send"), gold=None), call("files.read", "tool_error", step=0)
)


def test_a_tool_that_the_catalog_does_not_have_appears_nowhere(found: Found) -> None:
    assert found(succeeded, OUTSIDE) == []
    assert found(hard, OUTSIDE) == []
    assert found(soft, OUTSIDE) == []

"""Recovery: after a failed call another menu, never a wider permission, and an end."""

from __future__ import annotations

import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import Trained

from data.cards import Requires, Risk, ToolCard, Trust
from data.catalog import Catalog
from data.context import Caller, Subgoal
from data.errors import InputError
from data.traces import ErrorClass
from serving.recovery import MAX_TRIES, Refused, recover
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.several import select_several
from serving.slice import Slice

STEADY = SelectorSettings(explore_rate=0.0)


def tool(tool_id: str, description: str, risk: Risk = Risk.READ_ONLY, **rules: object) -> ToolCard:
    domain, _, name = tool_id.partition(".")
    return ToolCard.model_validate(
        {"tool_id": tool_id, "name": name, "domain": domain, "description": description, "risk": risk}
        | {"trust": Trust.TRUSTED}
        | rules
    )


CATALOG = Catalog(
    [
        tool("help.topics", "List the topics of the manual", core=True),
        tool("north.forecast", "Forecast the weather of a city for the next days"),
        tool("north.rain", "Forecast the rain of a city"),
        tool("south.forecast", "Get the weather forecast of a city"),
        tool("east.report", "Read the weather report of a city"),
        tool("secret.forecast", "Weather forecast of a city, classified", requires=Requires(scopes=("cleared",))),
        tool("radar.now", "Radar nowcast of storms", requires=Requires(connections=("radar",)), advertise=True),
        tool("sonar.now", "Sonar nowcast of storms", requires=Requires(connections=("sonar",))),
        tool("mail.send", "Send an email message", Risk.WRITE),
        tool("post.send", "Send a letter message", Risk.WRITE),
    ]
)
GOAL = "weather forecast of a city"
SELECTOR = Selector(None, CATALOG, settings=STEADY)


def menu(found: Slice) -> list[str]:
    """Tool ids, best first, those that were not asked for last."""
    return [e.tool_id for e in sorted(found.menu, key=lambda e: (e.rank is None, e.rank)) if e.reason != "core"]


def failed(found: Slice, tool_id: str, error_class: ErrorClass, **how: object) -> Slice:
    return recover(SELECTOR, Refused(found, tool_id, error_class), request_id="r", **how)  # type: ignore[arg-type]


@pytest.fixture
def first() -> Slice:
    found = SELECTOR.select(GOAL, request_id="r", max_tools=3)
    assert "north.forecast" in menu(found)
    return found


@pytest.mark.parametrize("error_class", ["wrong_tool", "tool_error", "empty_result"])
def test_a_tool_that_was_wrong_is_left_out_and_the_record_says_why(first: Slice, error_class: ErrorClass) -> None:
    found = failed(first, "north.forecast", error_class)
    assert "north.forecast" not in menu(found)
    assert "'north.forecast'" in found.recovery.advice  # type: ignore[union-attr]
    assert {"south.forecast", "east.report", "north.rain"} <= set(menu(found))
    record = next(record for record in found.record if record.stage == "left_out")
    assert record.dropped == {"north.forecast": f"failed:{error_class}"}


@pytest.mark.parametrize("error_class", ["auth", "timeout", "unavailable", "rate_limited"])
def test_a_tool_that_cannot_now_comes_last_and_its_server_before_it(first: Slice, error_class: ErrorClass) -> None:
    found = failed(first, "north.forecast", error_class)
    assert set(menu(found)[:2]) == {"south.forecast", "east.report"}
    assert menu(found)[-2:] == ["north.rain", "north.forecast"]
    assert "fits, but" in found.recovery.advice  # type: ignore[union-attr]


def test_wrong_arguments_leave_the_choice_standing_once(first: Slice) -> None:
    again = failed(first, "south.forecast", "validation")
    assert menu(again)[0] == "south.forecast"
    assert "correct the arguments" in again.recovery.advice  # type: ignore[union-attr]
    last = failed(again, "south.forecast", "validation")
    assert "south.forecast" not in menu(last)
    assert "left out" in last.recovery.advice  # type: ignore[union-attr]


def test_the_menu_is_wider_than_the_one_before_and_never_over_twelve() -> None:
    many = Catalog([tool(f"s{i}.forecast", f"Weather forecast of a city, kind {i}") for i in range(40)])
    for usual, wider in ((2, 4), (12, 12)):
        selector = Selector(None, many, settings=SelectorSettings(max_tools=usual, explore_rate=0.0))
        before = selector.select(GOAL, request_id="r")
        found = recover(selector, Refused(before, "s0.forecast", "wrong_tool"), request_id="r")
        assert (len(before.menu), len(found.menu)) == (usual, wider)
        narrow = recover(selector, Refused(before, "s0.forecast", "wrong_tool"), request_id="r", max_tools=1)
        assert len(narrow.menu) == 1
        tight = recover(selector, Refused(before, "s0.forecast", "wrong_tool"), request_id="r", token_budget=0)
        assert tight.menu == ()


def test_what_failed_before_stays_left_out_and_after_some_tries_the_answer_is_to_ask(first: Slice) -> None:
    found, gone = first, []
    for attempt in range(1, MAX_TRIES):
        gone.append(menu(found)[0])
        found = failed(found, gone[-1], "wrong_tool")
        assert found.recovery is not None
        assert found.recovery.tries == attempt
        assert not found.recovery.final
        assert not set(gone) & set(menu(found))
    end = failed(found, menu(found)[0], "tool_error")
    assert end.recovery is not None
    assert end.recovery.final
    assert end.abstention.outcome == "ask"
    assert end.abstention.advice == end.recovery.advice
    assert "Do not ask for tools for it again" in end.recovery.advice
    assert menu(end) == []
    assert [entry.tool_id for entry in end.menu] == ["help.topics"]
    after_the_end = failed(end, "north.forecast", "timeout")
    assert after_the_end.recovery is not None
    assert after_the_end.recovery.final


def test_where_nothing_is_left_the_answer_names_a_connection_that_may_be_named() -> None:
    found = failed(SELECTOR.select("nowcast storms", request_id="r"), "north.rain", "wrong_tool")
    assert found.recovery is not None
    assert found.recovery.final
    assert found.recovery.missing_connections == ("radar",)
    assert "radar" in found.recovery.advice
    assert "sonar" not in found.public().model_dump_json()
    assert "radar.now" not in found.public().model_dump_json(), "the connection is named, not the tool"


def test_a_connection_is_no_way_out_of_a_tool_that_other_rules_withhold() -> None:
    closed = Catalog(
        [
            *CATALOG,
            tool(
                "far.now",
                "Far nowcast of storms",
                requires=Requires(connections=("far",), scopes=("x",)),
                advertise=True,
            ),
        ]
    )
    selector = Selector(None, closed, settings=STEADY)
    before = selector.select("nowcast storms", request_id="r")
    found = recover(selector, Refused(before, "north.rain", "wrong_tool"), request_id="r")
    assert found.recovery is not None
    assert found.recovery.missing_connections == ("radar",)


def test_the_nearest_tools_are_named_when_the_tries_are_over(first: Slice) -> None:
    found = first
    for _ in range(MAX_TRIES):
        found = failed(found, "north.rain", "timeout")
    assert found.recovery is not None
    assert found.recovery.near_misses
    assert "help.topics" not in found.recovery.near_misses


@pytest.mark.parametrize("tool_id", ["secret.forecast", "no.such_tool"])
def test_a_tool_that_is_withheld_and_one_that_does_not_exist_get_the_same_answer(first: Slice, tool_id: str) -> None:
    found = failed(first, tool_id, "wrong_tool")
    other = failed(first, "another.unknown", "wrong_tool")
    assert found.canonical() == other.canonical()
    assert tool_id not in found.public().model_dump_json()


def test_a_tool_whose_grant_is_gone_is_named_no_more() -> None:
    cleared = Caller(scopes=("cleared",))
    before = SELECTOR.select(GOAL, cleared, request_id="r")
    assert "secret.forecast" in menu(before)
    found = recover(SELECTOR, Refused(before, "secret.forecast", "auth"), Caller(), request_id="r")
    assert "secret" not in found.public().model_dump_json()
    assert found.recovery is not None
    assert found.recovery.tries == 1


def test_a_call_that_did_not_fail_has_nothing_to_recover_from(first: Slice) -> None:
    with pytest.raises(InputError, match="did not fail"):
        failed(first, "north.forecast", "none")


def test_a_reading_step_recovers_to_reading_tools_only() -> None:
    before = SELECTOR.select(Subgoal(goal="send a message", mutation=False), request_id="r")
    found = failed(before, "mail.send", "wrong_tool")
    assert all(CATALOG[tool_id].risk is Risk.READ_ONLY for tool_id in menu(found))


def test_of_several_steps_the_one_that_failed_is_asked_again() -> None:
    before = select_several(SELECTOR, [GOAL, "send a message"], request_id="r")
    found = failed(before, "mail.send", "unavailable")
    assert found.subgoal.goal == "send a message"
    assert menu(found)[0] == "post.send"


def test_a_used_tool_that_failed_does_not_come_back_as_a_used_one(first: Slice) -> None:
    caller = Caller(used_tools=("north.forecast",))
    found = recover(SELECTOR, Refused(first, "north.forecast", "wrong_tool"), caller, request_id="r")
    assert "north.forecast" not in menu(found)


def test_a_core_tool_that_failed_stays_core(first: Slice) -> None:
    found = failed(first, "help.topics", "tool_error")
    assert "help.topics" in [entry.tool_id for entry in found.menu]


def test_a_recovered_slice_survives_json_and_carries_its_past_on(first: Slice) -> None:
    found = failed(first, "north.forecast", "wrong_tool")
    again = Slice.model_validate_json(found.model_dump_json())
    assert again.sealed().slice_id == found.slice_id
    assert (
        failed(again, "south.forecast", "wrong_tool").canonical()
        == failed(found, "south.forecast", "wrong_tool").canonical()
    )
    assert '"recovery"' not in first.model_dump_json()


classes = st.sampled_from(
    ["validation", "auth", "timeout", "unavailable", "rate_limited", "tool_error", "empty_result", "wrong_tool"]
)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([*CATALOG.ids, "no.such_tool"]), classes), min_size=1, max_size=5),
    st.sampled_from([GOAL, "nowcast storms", "send a message", "zzz"]),
    st.sampled_from([None, True, False]),
    st.sampled_from([(), ("cleared",)]),
)
def test_no_chain_of_failures_ever_shows_or_names_what_the_rules_withhold(
    calls: list[tuple[str, ErrorClass]], goal: str, mutation: bool | None, scopes: tuple[str, ...]
) -> None:
    caller = Caller(scopes=scopes)
    allowed = {t for t, may in zip(CATALOG.ids, SELECTOR.index.mask.apply(caller).allowed, strict=True) if may}
    found = SELECTOR.select(Subgoal(goal=goal, mutation=mutation), caller, request_id="r")
    for number, (tool_id, error_class) in enumerate(calls, 1):
        found = recover(SELECTOR, Refused(found, tool_id, error_class), caller, request_id="r")
        text = found.public().model_dump_json()
        assert not [hidden for hidden in CATALOG.ids if hidden not in allowed and hidden in text]
        assert len(found.menu) <= 12
        assert found.recovery is not None
        assert found.recovery.tries == number
        assert found.recovery.final == (found.abstention.outcome in ("ask", "missing_capability"))
        if number >= MAX_TRIES:
            assert found.recovery.final
        if mutation is False:
            assert all(CATALOG[entry.tool_id].risk is Risk.READ_ONLY for entry in found.menu)


def test_a_trained_selector_recovers_and_abstains_by_its_own_judgement(trained: Trained) -> None:
    selector = Selector.load(trained.bundle, tiny.catalog(), settings=STEADY)
    goal = tiny.goals("mail.send_message")[0]
    before = selector.select(goal, request_id="r")
    assert before.ranking[0] == "mail.send_message"
    found = recover(selector, Refused(before, "mail.send_message", "unavailable"), request_id="r")
    assert found.ranking[-1] == "mail.send_message"
    gone = recover(selector, Refused(before, "mail.send_message", "wrong_tool"), request_id="r")
    assert "mail.send_message" not in gone.ranking
    assert [record.stage for record in gone.record][:3] == ["mask", "left_out", "filter"]

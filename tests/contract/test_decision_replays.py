"""Contracts 3 and 7: the same question has the same answer, byte for byte, and the logged chances are true."""

from __future__ import annotations

import math
import threading
from collections import Counter
from pathlib import Path

import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import Trained

from data.context import Caller, Recent, Subgoal
from serving.bundle import load_bundle
from serving.selector import Selector
from serving.settings import SelectorSettings

CALLER = Caller(scopes=("accounts",))


@pytest.fixture(scope="module")
def pair(trained: Trained) -> tuple[Selector, Selector]:
    """Two selectors, each loaded anew."""
    first, second = (Selector.load(trained.bundle, tiny.catalog()) for _ in range(2))
    return first, second


subgoals = st.builds(
    Subgoal,
    goal=st.sampled_from([*tiny.goals("mail.send_message"), *tiny.no_tool_goals()[:3], "yes", "x" * 3000]),
    mutation=st.sampled_from([None, True, False]),
    operations=st.lists(st.sampled_from(["send", "delete"]), max_size=2).map(tuple),
)
callers = st.builds(
    Caller,
    tenant=st.sampled_from(["", "acme"]),
    scopes=st.sampled_from([(), ("accounts",)]),
    used_tools=st.lists(st.sampled_from(tiny.catalog().ids), max_size=2).map(tuple),
    recent=st.builds(Recent, plan=st.sampled_from(["", "book the meeting"])),
)


@settings(max_examples=60, deadline=None)
@given(subgoals, callers, st.text(min_size=1, max_size=5).filter(str.strip))
def test_the_same_question_has_the_same_answer_from_a_selector_loaded_anew(
    pair: tuple[Selector, Selector], subgoal: Subgoal, caller: Caller, request_id: str
) -> None:
    first, again, other = (
        selector.select(subgoal, caller, request_id=request_id) for selector in (pair[0], pair[0], pair[1])
    )
    assert first.canonical().encode() == again.canonical().encode() == other.canonical().encode()
    assert first.slice_id == again.slice_id == other.slice_id != ""
    assert first.sealed().slice_id == first.slice_id


def test_a_selector_without_a_model_replays_too() -> None:
    one, other = (Selector.load(None, tiny.catalog()).select("send the email", CALLER, request_id="r") for _ in "ab")
    assert one.canonical() == other.canonical()
    assert one.bundle_version == "none"


def test_threads_that_share_a_selector_get_the_answers_of_one_alone(pair: tuple[Selector, Selector]) -> None:
    goals = tiny.goals("bank.get_balance") + tiny.goals("maps.find_route")
    alone = [pair[0].select(goal, CALLER, request_id="r").canonical() for goal in goals]
    together: dict[int, list[str]] = {}

    def ask(number: int) -> None:
        together[number] = [pair[1].select(goal, CALLER, request_id="r").canonical() for goal in goals]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[number] for number in range(4)] == [alone] * 4


@pytest.mark.parametrize(
    "other",
    [
        Caller(scopes=("accounts", "more")),
        Caller(scopes=("accounts",), tenant="acme"),
        Caller(scopes=("accounts",), roles=("admin",)),
        Caller(scopes=("accounts",), allowed_tools=()),
        Caller(scopes=("accounts",), env="prod"),
    ],
)
def test_who_asks_is_part_of_the_answer(pair: tuple[Selector, Selector], other: Caller) -> None:
    ours, theirs = (pair[0].select("send the email", who, request_id="r") for who in (CALLER, other))
    assert ours.caller_key != theirs.caller_key
    assert ours.slice_id != theirs.slice_id


def test_a_tool_that_goes_down_is_another_answer(trained: Trained) -> None:
    selector = Selector.load(trained.bundle, tiny.catalog())
    before = selector.select("send the email", CALLER, request_id="r")
    selector.set_unavailable(frozenset(["mail.send_message"]))
    assert selector.select("send the email", CALLER, request_id="r").slice_id != before.slice_id
    selector.set_unavailable(frozenset())
    assert selector.select("send the email", CALLER, request_id="r").canonical() == before.canonical()


def test_without_a_request_id_one_is_drawn_and_is_enough_to_replay(pair: tuple[Selector, Selector]) -> None:
    first = pair[0].select("send the email", CALLER)
    assert first.request_id != pair[0].select("send the email", CALLER).request_id
    assert pair[1].select("send the email", CALLER, request_id=first.request_id).canonical() == first.canonical()


@pytest.mark.parametrize("max_tools", [3, 4])
def test_every_tool_is_shown_as_often_as_its_propensity_says(trained: Trained, max_tools: int) -> None:
    how = SelectorSettings(explore_rate=0.4, explore_width=0.0, max_tools=max_tools, candidates=8)
    selector = Selector(load_bundle(trained.bundle), tiny.catalog(), settings=how)
    requests, shown = 800, Counter[str]()
    logged: dict[str, float] = {}
    for number in range(requests):
        for entry in selector.select("send the email for anna", CALLER, request_id=f"request {number}").menu:
            shown[entry.tool_id] += 1
            assert logged.setdefault(entry.tool_id, entry.propensity) == entry.propensity
    assert any(propensity < 1.0 for propensity in logged.values()), "something was explored"
    for tool_id, propensity in logged.items():
        bound = 4.5 * math.sqrt(propensity * (1.0 - propensity) / requests)  # 1 in 100,000 by chance
        assert abs(shown[tool_id] / requests - propensity) <= bound + 1e-12, tool_id


def test_the_place_of_a_bundle_is_no_part_of_the_answer(own_bundle: Path, pair: tuple[Selector, Selector]) -> None:
    moved = Selector.load(own_bundle, tiny.catalog()).select("send the email", CALLER, request_id="r")
    assert moved.canonical() == pair[0].select("send the email", CALLER, request_id="r").canonical()

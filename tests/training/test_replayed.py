"""Logged decisions through a selector: what it would have shown, what was earned, and what cannot be replayed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import tiny
from tiny import Trained

from data.errors import InputError
from data.traces import Shown, Trace
from serving.selector import Selector
from serving.settings import SelectorSettings
from training.counterfactual import UNSHOWN
from training.evaluation import unrestricted
from training.replayed import evaluate_replayed, replay

MENU = tuple(tool.tool_id for tool in tiny.catalog())


def decided(number: int, tool_id: str | None = "mail.send_message", **rest: Any) -> Trace:
    """A decision that showed every tool, the last by a chance of 0.25."""
    menu = tuple(Shown(tool_id=t, position=i, propensity=0.25 if t == MENU[-1] else 1.0) for i, t in enumerate(MENU))
    fields: dict[str, Any] = {"goal": "send the email for anna", "menu": menu, "outcome": "success", "slice_id": "s"}
    return Trace(trace_id=f"t{number}", tool_id=tool_id, **fields | rest)


@pytest.fixture(scope="module")
def selector(trained: Trained) -> Selector:
    return Selector.load(trained.bundle, unrestricted(trained.catalog), settings=SelectorSettings(explore_rate=0.0))


def test_the_called_tool_carries_the_logged_and_the_new_chance(selector: Selector) -> None:
    log, left_out = replay([decided(0), decided(1, MENU[-1], outcome="failure")], selector)
    assert left_out == {}
    assert log.reward.tolist() == [1.0, 0.0]
    assert log.logged[log.called].tolist() == [1.0, 0.25]
    menu = {entry.tool_id for entry in selector.select("send the email for anna", request_id="r").menu}
    assert log.target.tolist() == [float(tool in menu) for tool in MENU] * 2
    assert log.group.tolist() == [0, 1]
    best = MENU.index("mail.send_message")
    assert log.first.tolist() == [best, len(MENU) + best]


def test_the_new_selectors_own_exploration_is_part_of_its_chances(trained: Trained) -> None:
    settings = SelectorSettings(explore_rate=0.5, max_tools=3, explore_width=0.0)
    exploring = Selector.load(trained.bundle, unrestricted(trained.catalog), settings=settings)
    log, _ = replay([decided(0)], exploring)
    shares = dict.fromkeys(MENU, 0.0)
    for number in range(400):
        for entry in exploring.select("send the email for anna", request_id=f"r{number}").menu:
            shares[entry.tool_id] += 1 / 400
    assert log.target == pytest.approx(np.array([shares[tool] for tool in MENU]), abs=0.1)
    assert ((log.target > 0) & (log.target < 1)).any()


def test_one_success_among_the_calls_of_a_decision_is_its_success(selector: Selector) -> None:
    calls = [decided(0, "files.read_file", outcome="failure"), decided(0), decided(0, MENU[3], outcome="failure")]
    log, _ = replay(calls, selector)
    assert log.reward.tolist() == [1.0]
    assert log.called.tolist() == [MENU.index("mail.send_message")]


def test_a_first_tool_that_was_not_shown_then_is_marked(selector: Selector) -> None:
    menu = (Shown(tool_id="files.read_file", position=0),)
    log, _ = replay([decided(0, "files.read_file", menu=menu)], selector)
    assert log.first.tolist() == [UNSHOWN]


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        (decided(0, menu=None), "no menu was logged"),
        (decided(0, None), "nothing was called"),
        (decided(0, outcome="unknown"), "the outcome is not known"),
        (decided(0, goal=" "), "the goal is blank"),
        (decided(0, "gone.tool"), "the called tool was not on the menu"),
        (
            decided(0, "gone.tool", menu=(Shown(tool_id="gone.tool", position=0),)),
            "the called tool is not in the catalog",
        ),
    ],
)
def test_what_cannot_be_replayed_is_counted_by_its_reason(selector: Selector, trace: Trace, reason: str) -> None:
    _, left_out = replay([trace, decided(1)], selector)
    assert left_out == {reason: 1}
    with pytest.raises(InputError, match=reason):
        replay([trace], selector)


def test_a_log_without_menus_is_not_estimated_and_says_why(trained: Trained) -> None:
    found = evaluate_replayed(trained.bundle, trained.catalog, tiny.traces())
    assert found["estimates"] == {}
    assert not found["believe"]
    assert "no menu was logged" in found["because"][0]


def test_a_log_whose_calls_all_succeeded_is_estimated_with_a_doubt(trained: Trained) -> None:
    found = evaluate_replayed(trained.bundle, trained.catalog, [decided(i) for i in range(12)])
    assert found["estimates"]["self_normalised"]["value"] == 1.0
    assert "every logged call succeeded" in found["because"]
    json.dumps(found, allow_nan=False)


def test_the_same_log_gives_the_same_estimates(trained: Trained) -> None:
    goals = [goal for tool in MENU for goal in tiny.goals(tool)]
    log = [decided(i, goal=g, outcome="success" if i % 3 else "failure") for i, g in enumerate(goals)]
    one, other = (evaluate_replayed(trained.bundle, trained.catalog, log) for _ in range(2))
    assert one == other
    assert one["overlap"]["decisions"] == len(goals)
    assert 0.0 < one["estimates"]["doubly_robust"]["value"] < 1.0

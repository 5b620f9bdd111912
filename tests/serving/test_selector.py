"""The selector: what it is asked, what it is loaded with, and what it says of itself."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import tiny
from tiny import Trained

from data.cards import ToolCard
from data.catalog import Catalog
from data.context import MAX_GOAL_CHARACTERS, Caller, Recent, Subgoal
from data.errors import BundleError, InputError
from serving.policy import PolicyRule, RiskPolicy
from serving.selector import Selector
from serving.settings import SelectorSettings

CALLER = Caller(scopes=("accounts",))


@pytest.fixture(scope="module")
def selector(trained: Trained) -> Selector:
    return Selector.load(trained.bundle, tiny.catalog())


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ("", "the goal is empty"),
        (" \n\t ", "the goal is empty"),
        ("x" * (MAX_GOAL_CHARACTERS + 1), "is too long"),
        ("send \ud800", "no text that can be encoded"),
    ],
)
def test_a_goal_that_says_nothing_or_too_much_is_refused(selector: Selector, goal: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        selector.select(goal, CALLER)


def test_the_longest_goal_is_answered_whole(selector: Selector) -> None:
    goal = ("send the email for anna " * 2000)[:MAX_GOAL_CHARACTERS]
    found = selector.select(goal, CALLER, request_id="r")
    assert found.subgoal.goal == goal
    assert "mail.send_message" in found.ranking[:3]


def test_a_text_is_a_subgoal_of_which_nothing_more_is_known(selector: Selector) -> None:
    plain = selector.select("send the email", CALLER, request_id="r")
    assert plain.canonical() == selector.select(Subgoal(goal="send the email"), CALLER, request_id="r").canonical()


def test_a_bare_reply_means_the_open_step(selector: Selector) -> None:
    caller = CALLER.model_copy(update={"recent": Recent(plan="send the email for anna")})
    found = selector.select("yes, do it", caller, request_id="r")
    assert found.query == "send the email for anna"
    assert found.ranking[0] == "mail.send_message"
    assert found.subgoal.goal == "yes, do it"


@pytest.mark.parametrize("goal", ["🙂", "...", "日本語", "qwertz asdfgh"])
def test_a_goal_without_a_known_word_is_still_answered(selector: Selector, goal: str) -> None:
    for one in (selector, Selector.load(None, tiny.catalog())):
        found = one.select(goal, CALLER, request_id="r")
        assert tiny.CORE in {entry.tool_id for entry in found.menu}


def test_every_stage_is_timed_and_the_record_follows_the_decision(selector: Selector) -> None:
    found = selector.select("send the email", CALLER, request_id="r")
    stages = ["query", "mask", "filter", "encode", "retrieve", "rerank", "relevance", "tiebreak", "menu", "policy"]
    assert list(found.timings_ms) == stages
    assert [record.stage for record in found.record] == ["mask", "filter", "retrieve", "rerank", "relevance", "menu"]
    kept = [record.kept for record in found.record]
    assert kept[0] == kept[1] == 12
    assert kept[2] >= kept[-1] - 1, "a core tool may be on the menu without being a candidate"


def test_an_empty_catalog_is_refused_with_and_without_a_bundle(trained: Trained) -> None:
    for bundle in (trained.bundle, None):
        with pytest.raises(InputError, match="the catalog is empty"):
            Selector.load(bundle, Catalog([]))


def test_one_tool_is_chosen_from(trained: Trained) -> None:
    for bundle in (trained.bundle, None):
        alone = Catalog([tiny.catalog()["mail.send_message"]])
        found = Selector.load(bundle, alone).select("send the email", request_id="r")
        assert [entry.tool_id for entry in found.menu] == ["mail.send_message"]


def test_a_damaged_bundle_serves_nothing(own_bundle: Path) -> None:
    (own_bundle / "relevance.onnx").write_bytes(b"")
    with pytest.raises(BundleError, match=r"relevance\.onnx"):
        Selector.load(own_bundle, tiny.catalog())


def test_a_catalog_of_other_tools_is_refused_unless_the_model_is_carried_over(trained: Trained) -> None:
    foreign = Catalog([ToolCard(tool_id="x.send_email", name="send_email", description="Send an email.")])
    with pytest.raises(InputError, match="trained on another catalog: none of the 11 tools"):
        Selector.load(trained.bundle, foreign)
    carried = Selector.load(trained.bundle, foreign, settings=SelectorSettings(allow_foreign_catalog=True))
    assert carried.select("send the email", request_id="r").ranking == ("x.send_email",)


def test_a_catalog_without_any_past_turns_nobody_away(trained: Trained) -> None:
    foreign = Catalog([ToolCard(tool_id="x.send_email", name="send_email", description="Send an email.")])
    carried = Selector.load(trained.bundle, foreign, settings=SelectorSettings(allow_foreign_catalog=True))
    for goal in tiny.no_tool_goals():
        found = carried.select(goal, request_id="r")
        assert (found.abstention.outcome, found.abstention.fit) == ("menu", None)
        assert found.menu


def test_a_catalog_that_keeps_one_tool_is_the_same_catalog_grown(trained: Trained) -> None:
    new = ToolCard(tool_id="music.play_song", name="play_song", domain="music", description="Play a song by its title.")
    grown = Catalog([new, tiny.catalog()["mail.send_message"]])
    found = Selector.load(trained.bundle, grown).select("play song", request_id="r")
    assert found.ranking[0] == "music.play_song"


def test_a_tool_used_in_the_session_stays_on_the_menu(selector: Selector) -> None:
    caller = CALLER.model_copy(update={"used_tools": ("maps.find_route", "gone.tool")})
    narrow = Selector(selector.bundle, selector.catalog, settings=SelectorSettings(max_tools=3, explore_rate=0.0))
    menu = {e.tool_id: e.reason for e in narrow.select("send the email for anna", caller, request_id="r").menu}
    assert menu == {"mail.send_message": "ranked", "maps.find_route": "used", tiny.CORE: "core"}


def test_a_decision_writes_nothing_to_the_log(selector: Selector, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        selector.select("send the email", CALLER, request_id="r")
    assert caplog.messages == []


def test_a_request_may_narrow_the_limits_and_never_widen_them(trained: Trained) -> None:
    how = SelectorSettings(max_tools=3, token_budget=300, explore_rate=0.0)
    selector = Selector.load(trained.bundle, tiny.catalog(), settings=how)

    def shown(**limits: int) -> list[str]:
        return [entry.tool_id for entry in selector.select("send the email", CALLER, request_id="r", **limits).menu]

    usual = shown()
    assert len(usual) == 3
    assert shown(max_tools=12, token_budget=6000) == usual
    assert shown(max_tools=1) == [tiny.CORE]
    cheapest = selector.token_cost(tiny.CORE)
    assert shown(token_budget=cheapest) == [tiny.CORE]
    assert shown(token_budget=0) == []


@pytest.mark.parametrize("limits", [{"max_tools": 0}, {"max_tools": 13}, {"token_budget": -1}])
def test_a_limit_that_is_none_is_refused(selector: Selector, limits: dict[str, int]) -> None:
    with pytest.raises(InputError, match=next(iter(limits))):
        selector.select("send the email", CALLER, request_id="r", **limits)


def test_another_policy_gives_other_verdicts_and_leaves_the_first_selector_as_it_was(selector: Selector) -> None:
    nothing_goes = RiskPolicy(rules=(PolicyRule(name="closed", verdict="deny"),))
    closed = selector.with_policy(nothing_goes)
    ours, theirs = (one.select("send the email", CALLER, request_id="r") for one in (selector, closed))
    assert {entry.verdict for entry in theirs.menu} == {"deny"}
    assert "allow" in {entry.verdict for entry in ours.menu}
    assert [entry.tool_id for entry in ours.menu] == [entry.tool_id for entry in theirs.menu]
    assert (theirs.policy_version, ours.policy_version) == (nothing_goes.version, selector.policy.version)

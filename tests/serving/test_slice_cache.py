"""The slice cache: what is kept, what is not, and what it costs to keep."""

from __future__ import annotations

import threading

import pytest
import tiny

from data.cards import Requires, Risk, ToolCard
from data.catalog import Catalog
from data.context import MAX_GOAL_CHARACTERS, Caller, Subgoal
from data.errors import InputError
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.slice import Degradation, Slice
from serving.slice_cache import SliceCache, slice_key

GOAL = "send the email"
WHO = Caller(principal="anna")


def guarded(count: int) -> Selector:
    """As many tools again that nobody may use."""
    hidden = [
        ToolCard(tool_id=f"vault.door_{n}", name=f"door_{n}", requires=Requires(scopes=("keys",)), risk=Risk.READ_ONLY)
        for n in range(count)
    ]
    return Selector.load(None, Catalog([*tiny.catalog(), *hidden]), settings=SelectorSettings(explore_rate=0.0))


@pytest.fixture(scope="module")
def selector() -> Selector:
    return guarded(0)


def decided(selector: Selector, goal: str = GOAL, **changes: object) -> Slice:
    return selector.select(goal, WHO, request_id="first").model_copy(update=changes).sealed()


def is_kept(made: Slice, selector: Selector) -> bool:
    kept, key = SliceCache(), slice_key(selector, GOAL, WHO)
    kept.put(key, made)
    return kept.get(key, "second") is not None


def test_a_hit_is_the_request_s_own_slice(selector: Selector) -> None:
    kept = SliceCache()
    first, cached = kept.ask(selector, GOAL, WHO, request_id="first")
    second, cached_then = kept.ask(selector, Subgoal(goal=GOAL), WHO, request_id="second")
    assert (cached, cached_then) == (False, True)
    assert (second.request_id, first.request_id) == ("second", "first")
    assert second.slice_id != first.slice_id
    assert list(second.timings_ms) == ["cache"]
    assert second.menu == first.menu


def test_without_a_request_id_every_hit_draws_its_own(selector: Selector) -> None:
    kept = SliceCache()
    found = [kept.ask(selector, GOAL, WHO) for _ in range(3)]
    assert [cached for _, cached in found] == [False, True, True]
    assert len({slice_.request_id for slice_, _ in found}) == 3


@pytest.mark.parametrize(("kind", "kept"), [("failed", False), ("late", False), ("standing", True)])
def test_a_decision_that_the_next_request_may_not_meet_is_not_kept(selector: Selector, kind: str, kept: bool) -> None:
    degraded = Degradation(stage="rerank", what="something", kind=kind)  # type: ignore[arg-type]
    assert is_kept(decided(selector, degradations=(degraded,)), selector) is kept


def test_a_decision_taken_while_a_tool_went_down_is_not_kept_for_the_time_before() -> None:
    selector, kept = guarded(0), SliceCache()
    before = slice_key(selector, GOAL, WHO)
    selector.set_unavailable(["mail.send_message"])
    kept.put(before, decided(selector))
    selector.set_unavailable([])
    found = kept.ask(selector, GOAL, WHO, request_id="r")
    assert not found.cached
    assert "mail.send_message" in found.slice.ranking


def test_a_changed_grant_is_seen_by_the_next_request() -> None:
    selector, kept = guarded(3), SliceCache()
    for _ in range(2):
        assert not {"vault.door_0"} & set(kept.ask(selector, "door", WHO).slice.ranking)
    granted = WHO.model_copy(update={"scopes": ("keys",)})
    assert {"vault.door_0"} <= set(kept.ask(selector, "door", granted).slice.ranking)
    assert not {"vault.door_0"} & set(kept.ask(selector, "door", WHO).slice.ranking)


def test_what_a_caller_may_not_see_is_kept_once_for_all_their_slices() -> None:
    selector, kept = guarded(500), SliceCache()
    kept.ask(selector, "send the email", WHO)
    one = kept.figures().weight
    for goal in ("book the meeting", "find a route", "check the account"):
        kept.ask(selector, goal, WHO)
    assert one > 500
    assert kept.figures().weight < 2 * 500
    first, again = (kept.ask(selector, "find a route", WHO).slice for _ in "ab")
    assert again.record[0] is first.record[0]
    assert len(again.record[0].dropped) == 500 + 1  # and the one of the small catalog


def test_a_slice_whose_record_was_forgotten_is_decided_anew() -> None:
    selector, kept = guarded(50), SliceCache(capacity=240)  # 120 for records: those of two callers do not fit
    others = [WHO.model_copy(update={"flags": (f"flag {number}",)}) for number in range(3)]
    for who in (WHO, *others):
        kept.ask(selector, GOAL, who)
    found = kept.ask(selector, GOAL, WHO, request_id="r")
    assert not found.cached
    assert found.slice.canonical() == selector.select(GOAL, WHO, request_id="r").canonical()
    assert kept.figures().evictions > 0


def test_the_weight_stays_in_its_bound_whatever_is_asked() -> None:
    selector, kept = guarded(20), SliceCache(capacity=500)
    for number in range(60):
        kept.ask(selector, f"send the email {'x' * 50 * number}", WHO.model_copy(update={"env": str(number % 7)}))
        assert kept.figures().weight <= 500
    assert kept.figures().slices >= 1


def test_without_capacity_every_request_is_decided(selector: Selector) -> None:
    kept = SliceCache(0)
    assert [kept.ask(selector, GOAL, WHO).cached for _ in range(3)] == [False] * 3


def test_clearing_forgets_every_slice(selector: Selector) -> None:
    kept = SliceCache()
    kept.ask(selector, GOAL, WHO)
    kept.clear()
    assert not kept.ask(selector, GOAL, WHO).cached


def test_lookups_are_counted(selector: Selector) -> None:
    kept = SliceCache()
    assert kept.hit_ratio == 0.0
    for goal in (GOAL, GOAL, GOAL, "book the meeting"):
        kept.ask(selector, goal, WHO)
    figures = kept.figures()
    assert (figures.hits, figures.misses, figures.slices) == (2, 2, 2)
    assert kept.hit_ratio == 0.5


def test_a_goal_that_the_selector_refuses_is_refused_the_same_way(selector: Selector) -> None:
    kept = SliceCache()
    for goal, said in (("", "empty"), ("x" * (MAX_GOAL_CHARACTERS + 1), "too long"), ("\ud800", "no text")):
        for _ in range(2):
            with pytest.raises(InputError, match=said):
                kept.ask(selector, goal, WHO)


def test_a_blank_request_id_is_refused_with_a_full_cache_as_with_an_empty_one() -> None:
    exploring, kept = Selector.load(None, tiny.catalog()), SliceCache()
    kept.ask(exploring, GOAL, WHO, request_id="r")
    with pytest.raises(InputError, match="without a request id"):
        kept.ask(exploring, GOAL, WHO, request_id=" ")


def test_threads_that_share_a_cache_get_what_one_alone_would(selector: Selector) -> None:
    kept, wrong = SliceCache(400), list[str]()
    goals = [f"send the email {number % 9}" for number in range(90)]
    alone = {goal: selector.select(goal, WHO, request_id=goal).canonical() for goal in goals}

    def ask() -> None:
        wrong.extend(g for g in goals if kept.ask(selector, g, WHO, request_id=g).slice.canonical() != alone[g])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    figures = kept.figures()
    assert figures.hits + figures.misses == 4 * 90

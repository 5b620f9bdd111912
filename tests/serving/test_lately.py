"""Lately: a success votes from the next request of its tenant on, for nobody else, and never twice."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tiny import Trained

from data.context import Caller
from serving import lately
from serving.lately import Lately, Outcome
from serving.live import Live
from serving.memory import LOST, SERVED, WON, Link, Usage, UsageMemory, UsageScores, make_usage, unit
from serving.policy import DEFAULT_POLICY
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.slice_cache import SliceCache, slice_key

D = 6
TOOLS = ("a", "b", "c", "d")
ROW = {tool: row for row, tool in enumerate(TOOLS)}
CARDS = unit(np.random.default_rng(1).normal(size=(len(TOOLS), D)).astype(np.float32))
VECTORS = unit(np.random.default_rng(2).normal(size=(12, D)).astype(np.float32))

links = st.lists(
    st.builds(
        Link, query=st.integers(0, 7), tool=st.sampled_from([*TOOLS, None]), weight=st.just(1.0), kind=st.just(SERVED)
    )
    | st.builds(
        Link,
        query=st.integers(0, 7),
        tool=st.sampled_from(TOOLS),
        weight=st.just(1.0),
        kind=st.sampled_from([WON, LOST]),
    ),
    max_size=10,
)
fresh = st.lists(st.tuples(st.sampled_from(range(len(TOOLS))), st.booleans()), min_size=1, max_size=4)


def memory(past: list[Link], vectors: NDArray[np.float32] = VECTORS[:8]) -> UsageMemory:
    return UsageMemory(make_usage(vectors, past, range(len(vectors))), CARDS, ROW)


@given(links, fresh, st.integers(0, 11))
def test_an_extended_memory_is_the_memory_of_both_pasts(
    past: list[Link], calls: list[tuple[int, bool]], asked: int
) -> None:
    rows, won = [row for row, _ in calls], [success for _, success in calls]
    more = VECTORS[8 : 8 + len(rows)]
    extended = memory(past).extended(more, np.array(rows), np.array(won))
    both = [*past, *(Link(8 + i, TOOLS[row], 1.0) for i, (row, success) in enumerate(calls) if success)]
    both += [Link(8 + i, TOOLS[row], 1.0, kind=WON if success else LOST) for i, (row, success) in enumerate(calls)]
    whole = memory(both, VECTORS[: 8 + len(rows)])
    for allowed in (None, np.array([True, False, True, True])):
        one, other = (made.scores(VECTORS[asked], allowed) for made in (extended, whole))
        for name in UsageScores.__dataclass_fields__:
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-5, err_msg=name)
    np.testing.assert_array_equal(extended.observations, whole.observations)
    np.testing.assert_array_equal(extended.failed_calls, whole.failed_calls)


def test_extending_leaves_the_memory_as_it_was() -> None:
    before = memory([Link(0, "a", 1.0)])
    scores = before.scores(VECTORS[9]).vote.copy()
    before.extended(VECTORS[9:10], np.array([3]), np.array([True]))
    np.testing.assert_array_equal(before.scores(VECTORS[9]).vote, scores)


def test_an_empty_memory_can_be_extended() -> None:
    empty = UsageMemory(Usage.empty(D), CARDS, ROW)
    assert empty.extended(VECTORS[:1], np.array([2]), np.array([True])).scores(VECTORS[0]).vote.tolist() == [0, 0, 1, 0]


def test_what_a_tool_served_in_the_same_words_is_known_and_nothing_else() -> None:
    of = memory([Link(0, "a", 1.0), Link(1, "b", 1.0, kind=LOST)])
    assert of.knows(VECTORS[0], ROW["a"])
    assert not of.knows(VECTORS[0], ROW["b"])
    assert not of.knows(VECTORS[2], ROW["a"])
    assert not of.knows(VECTORS[1], ROW["b"]), "to have failed is not to have served"


def known(*outcomes: Outcome) -> Lately:
    made = Lately()
    for outcome in outcomes:
        made = made.with_outcome(outcome, VECTORS[0])
    return made


def test_a_success_that_is_known_changes_nothing() -> None:
    once = known(Outcome("x", "q", "a"))
    assert once.with_outcome(Outcome("x", "q", "a"), VECTORS[1]) is once


def test_versions_are_those_of_who_sees_what() -> None:
    one = known(Outcome("x", "q", "a"))
    assert one.version("x")
    assert one.version("y") == Lately().version("x") == ""
    shared = one.with_outcome(Outcome("", "q", "a"), VECTORS[0])
    assert shared.version("y")
    assert shared.version("x") != one.version("x")
    assert len(shared.of("x")) == 2
    assert len(shared.of("y")) == 1


def test_the_oldest_give_way_and_their_tenant_sees_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lately, "CAPACITY", 2)
    full = known(Outcome("x", "1", "a"), Outcome("y", "2", "a"))
    over = full.with_outcome(Outcome("y", "3", "a"), VECTORS[0])
    assert [outcome.query for outcome in over.vectors] == ["2", "3"]
    assert over.version("x") != full.version("x")


# --- as it serves -----------------------------------------------------------------------------------------------------

ANN, RITA = Caller(principal="ann", tenant="acme"), Caller(principal="rita", tenant="rival")
GOAL = "keep something about the budget"


@pytest.fixture(scope="module")
def selector(trained: Trained) -> Selector:
    return Selector.load(trained.bundle, trained.catalog, settings=SelectorSettings(explore_rate=0.0))


def learned(selector: Selector, tool_id: str = tiny.NEVER_USED) -> Live:
    live = Live(selector)
    vector = selector.embed(GOAL)
    assert vector is not None
    live.learn(selector.versions.bundle, Outcome("acme", GOAL, tool_id), vector)
    return live


def test_the_next_request_of_the_tenant_knows_and_no_other_tenants_does(selector: Selector) -> None:
    after = learned(selector).current

    def relevance(of: Selector, who: Caller) -> float:
        made = of.select(GOAL, who, request_id="r")
        return next(r.scores for r in made.record if r.stage == "relevance")[tiny.NEVER_USED]

    assert relevance(after, ANN) > relevance(selector, ANN)
    assert (
        after.select(GOAL, RITA, request_id="r").canonical() == selector.select(GOAL, RITA, request_id="r").canonical()
    )


def test_the_same_past_gives_the_same_slice_and_another_past_another_key(selector: Selector) -> None:
    after, again = learned(selector).current, learned(selector).current
    assert after.select(GOAL, ANN, request_id="r").canonical() == again.select(GOAL, ANN, request_id="r").canonical()
    assert slice_key(after, GOAL, ANN) == slice_key(again, GOAL, ANN) != slice_key(selector, GOAL, ANN)
    assert slice_key(after, GOAL, RITA) == slice_key(selector, GOAL, RITA)


def test_a_cached_menu_does_not_outlive_what_was_known_when_it_was_made(selector: Selector) -> None:
    cache = SliceCache()
    cache.ask(selector, GOAL, ANN, request_id="r")
    after = learned(selector).current
    asked = cache.ask(after, GOAL, ANN, request_id="r")
    assert not asked.cached
    assert asked.slice.canonical() == after.select(GOAL, ANN, request_id="r").canonical()
    assert cache.ask(after, GOAL, ANN, request_id="r").cached


def test_nothing_is_filtered_by_what_was_served(selector: Selector) -> None:
    before, after = (of.select(GOAL, ANN, request_id="r") for of in (selector, learned(selector).current))
    assert set(after.ranking) == set(before.ranking)


def test_it_outlasts_another_policy_and_ends_with_another_bundle(selector: Selector, trained: Trained) -> None:
    live = learned(selector)
    live.set_policy(DEFAULT_POLICY)
    assert live.current.caller_key(ANN) != selector.caller_key(ANN)
    live.swap(lambda: Selector.load(trained.bundle, tiny.catalog()))
    assert live.current.caller_key(ANN) != selector.caller_key(ANN), "the same bundle over a catalog anew"
    live.swap(lambda: Selector.load(None, tiny.catalog()))
    assert live.current.caller_key(ANN) == selector.caller_key(ANN)


def test_a_vector_of_a_bundle_that_no_longer_serves_is_not_learned(selector: Selector) -> None:
    live = Live(selector)
    live.learn("another bundle", Outcome("acme", GOAL, tiny.NEVER_USED), np.zeros(32, np.float32))
    assert live.current is selector

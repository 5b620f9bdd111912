"""Usage memory: what the past says of each tool, and what it must not say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from serving.cosine import cosines
from serving.memory import (
    HISTORY_PRIOR,
    LOST,
    NEIGHBOURS,
    SERVED,
    SHARPNESS,
    WON,
    Link,
    Usage,
    UsageMemory,
    UsageScores,
    make_usage,
    unit,
)

D = 6
TOOLS = ("a", "b", "c", "d")
ROW = {tool: row for row, tool in enumerate(TOOLS)}
CARDS = unit(np.random.default_rng(1).normal(size=(len(TOOLS), D)).astype(np.float32))

Floats = NDArray[np.float32]


def directions(count: int, seed: int = 2) -> Floats:
    return unit(np.random.default_rng(seed).normal(size=(count, D)).astype(np.float32))


def memory(
    vectors: Floats, links: Sequence[Link], groups: Sequence[int] | None = None, tenant: str = ""
) -> UsageMemory:
    usage = make_usage(vectors, links, groups if groups is not None else range(len(vectors)))
    return UsageMemory(usage, CARDS, ROW, tenant)


def assert_equal(one: UsageScores, other: UsageScores) -> None:
    for field in fields(UsageScores):
        np.testing.assert_allclose(getattr(one, field.name), getattr(other, field.name), atol=1e-5, err_msg=field.name)


parts = {
    "query": st.integers(0, 7),
    "weight": st.sampled_from([0.1, 0.5, 1.0]),
    "tenant": st.sampled_from(["", "x", "y"]),
}
links = st.builds(Link, tool=st.sampled_from([*TOOLS, None]), kind=st.just(SERVED), **parts) | st.builds(
    Link, tool=st.sampled_from(TOOLS), kind=st.sampled_from([WON, LOST]), **parts
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(links, max_size=14),
    st.lists(st.integers(0, 3), min_size=8, max_size=8),
    st.integers(0, 3),
    st.integers(0, 50),
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_forgetting_a_group_equals_never_having_logged_it(
    all_links: list[Link], groups: list[int], gone: int, seed: int, mask: list[bool]
) -> None:
    vectors, query, allowed = directions(8, seed), directions(1, seed + 100)[0], np.array(mask)
    whole = memory(vectors, all_links, groups, "x").scores(query, allowed, forget=gone)
    rest = [link for link in all_links if groups[link.query] != gone]
    assert_equal(whole, memory(vectors, rest, groups, "x").scores(query, allowed))


@settings(max_examples=100, deadline=None)
@given(st.lists(links, max_size=14), st.integers(0, 50))
def test_a_tenant_sees_its_own_past_and_the_shared_one_and_no_other(all_links: list[Link], seed: int) -> None:
    vectors, query = directions(8, seed), directions(1, seed + 100)[0]
    ours = [link for link in all_links if link.tenant in ("", "x")]
    assert_equal(memory(vectors, all_links, tenant="x").scores(query), memory(vectors, ours, tenant="x").scores(query))
    shared = [link for link in all_links if link.tenant == ""]
    assert_equal(memory(vectors, all_links).scores(query), memory(vectors, shared).scores(query))


@settings(max_examples=150, deadline=None)
@given(st.lists(links, max_size=14), st.lists(st.booleans(), min_size=4, max_size=4), st.integers(0, 50))
def test_the_past_of_withheld_tools_is_not_felt_by_the_others(
    all_links: list[Link], mask: list[bool], seed: int
) -> None:
    vectors, query, allowed = directions(8, seed), directions(1, seed + 100)[0], np.array(mask)
    theirs = [link for link in all_links if link.tool is None or allowed[ROW[link.tool]]]
    felt = memory(vectors, all_links).scores(query, allowed)
    alone = memory(vectors, theirs).scores(query, allowed)
    for name in ("centroid", "shrunk", "vote", "nearest", "count", "success_rate"):
        one, other = getattr(felt, name), getattr(alone, name)
        np.testing.assert_allclose(one[allowed], other[allowed], atol=1e-5, err_msg=name)
    assert felt.nothing == pytest.approx(alone.nothing, abs=1e-5)
    assert felt.reach == pytest.approx(alone.reach, abs=1e-5)
    assert not felt.vote[~allowed].any()


@settings(max_examples=100, deadline=None)
@given(st.lists(links, max_size=14), st.integers(0, 50))
def test_how_a_call_ended_counts_towards_the_rate_of_success_and_nothing_else(all_links: list[Link], seed: int) -> None:
    vectors, query = directions(8, seed), directions(1, seed + 100)[0]
    served = [link for link in all_links if link.kind == SERVED]
    with_them, without = (memory(vectors, some).scores(query) for some in (all_links, served))
    for name in ("centroid", "shrunk", "vote", "nearest", "count", "nothing", "reach"):
        np.testing.assert_allclose(getattr(with_them, name), getattr(without, name), atol=1e-5, err_msg=name)
    assert (without.success_rate == 1.0).all()


@settings(max_examples=150, deadline=None)
@given(st.lists(links, max_size=14), st.integers(0, 50), st.sampled_from([(0, 0, 0, 0), (0, 0, 1, 1), (2, 0, 2, 1)]))
def test_the_rate_of_success_is_shrunk_from_nearby_to_the_tool_its_domain_and_all(
    all_links: list[Link], seed: int, domain: tuple[int, ...]
) -> None:
    vectors, query = directions(8, seed), directions(1, seed + 100)[0]
    usage = make_usage(vectors, all_links, range(len(vectors)))
    found = UsageMemory(usage, CARDS, ROW, "", np.array(domain)).scores(query).success_rate
    ended = [link for link in all_links if link.kind != SERVED and link.tenant == ""]
    if not any(link.kind == LOST for link in ended):
        assert (found == 1.0).all()
        return

    def rate(calls: list[tuple[float, bool]], towards: float) -> float:
        won = sum(weight for weight, success in calls if success)
        return (won + HISTORY_PRIOR * towards) / (sum(weight for weight, _ in calls) + HISTORY_PRIOR)

    everything = rate([(link.weight, link.kind == WON) for link in ended], 1.0)
    for tool, row in ROW.items():
        siblings = {other for other, at in ROW.items() if domain[at] == domain[row]}
        of_domain = rate([(link.weight, link.kind == WON) for link in ended if link.tool in siblings], everything)
        own = [link for link in ended if link.tool == tool]
        of_tool = rate([(link.weight, link.kind == WON) for link in own], of_domain)
        near = [float(np.exp(SHARPNESS * (vectors[link.query] @ query - 1.0))) for link in own]
        weighed = [(w * link.weight, link.kind == WON) for w, link in zip(near, own, strict=True)]
        assert found[row] == pytest.approx(rate(weighed, of_tool), abs=1e-5)


def test_a_failure_alone_does_not_make_every_tool_look_useless() -> None:
    vectors = directions(1)
    rates = memory(vectors, [Link(0, "a", 1.0, kind=LOST)]).scores(vectors[0]).success_rate
    assert rates[ROW["a"]] < rates[ROW["b"]]
    assert rates[ROW["b"]] >= 0.6


def test_a_newcomer_that_succeeds_more_often_overtakes_by_its_rate_in_a_few_calls() -> None:
    vectors = np.repeat(directions(1), 220, axis=0)
    old = [Link(row, "a", 1.0, kind=WON if row % 10 < 6 else LOST) for row in range(200)]
    new = [Link(200 + row, "b", 1.0, kind=WON) for row in range(8)]
    rates = memory(vectors, [*old, *new]).scores(vectors[0]).success_rate
    assert rates[ROW["b"]] > rates[ROW["a"]] + 0.1
    assert rates[ROW["c"]] == pytest.approx(rates[ROW["a"]], abs=0.05), "what was never called is as good as the rest"


@settings(max_examples=100, deadline=None)
@given(st.lists(links, min_size=1, max_size=14), st.integers(0, 50))
def test_votes_and_the_share_of_nothing_are_shares_of_one_whole(all_links: list[Link], seed: int) -> None:
    scores = memory(directions(8, seed), all_links).scores(directions(1, seed + 100)[0])
    good = [link for link in all_links if link.kind == SERVED and link.tenant == ""]
    assert float(scores.vote.sum()) + scores.nothing == pytest.approx(1.0 if good else 0.0, abs=1e-5)
    assert (scores.vote >= 0).all()


@settings(max_examples=50, deadline=None)
@given(st.lists(links, max_size=14), st.one_of(st.none(), st.integers(0, 3)), st.integers(0, 50))
def test_cosines_that_are_known_already_change_nothing(all_links: list[Link], gone: int | None, seed: int) -> None:
    query, past = directions(1, seed + 100)[0], memory(directions(8, seed), all_links)
    known = cosines(CARDS, query)
    kept = known.copy()
    assert_equal(past.scores(query, forget=gone), past.scores(query, forget=gone, cosine=known))
    np.testing.assert_array_equal(known, kept)


def test_without_any_past_every_tool_scores_by_its_card_alone() -> None:
    query = directions(1)[0]
    scores = UsageMemory(Usage.empty(D), CARDS, ROW).scores(query, np.array([True, False, True, True]), forget=3)
    np.testing.assert_allclose(scores.shrunk, CARDS @ query, atol=1e-6)
    for name in ("centroid", "vote", "nearest", "count"):
        assert not getattr(scores, name).any()
    assert (scores.success_rate == 1.0).all()
    assert (scores.nothing, scores.reach) == (0.0, 0.0)


def test_a_tool_without_usage_keeps_the_cosine_of_its_card() -> None:
    vectors, query = directions(3), directions(1, 9)[0]
    scores = memory(vectors, [Link(0, "a", 1.0), Link(1, "a", 1.0), Link(2, "b", 1.0)]).scores(query)
    np.testing.assert_allclose(scores.shrunk[2:], (CARDS @ query)[2:], atol=1e-6)
    assert scores.count.tolist() == [2.0, 1.0, 0.0, 0.0]


def test_a_tool_moves_towards_the_requests_that_it_served() -> None:
    vector = directions(1)
    before = UsageMemory(Usage.empty(D), CARDS, ROW).scores(vector[0])
    once = memory(vector, [Link(0, "a", 1.0)]).scores(vector[0])
    often = memory(np.repeat(vector, 9, axis=0), [Link(i, "a", 1.0) for i in range(9)]).scores(vector[0])
    assert before.shrunk[0] < once.shrunk[0] < often.shrunk[0]
    assert once.centroid[0] == pytest.approx(1.0, abs=1e-5)
    assert once.nearest[0] == pytest.approx(1.0, abs=1e-5)


def test_only_the_nearest_subgoals_vote() -> None:
    query = directions(1)[0]
    away = unit(query + 0.3 * directions(NEIGHBOURS + 5))
    near_first = np.argsort(-(away @ query))
    links = [Link(int(row), "a" if place < NEIGHBOURS else "b", 1.0) for place, row in enumerate(near_first)]
    scores = memory(away, links).scores(query)
    assert scores.vote[ROW["a"]] == pytest.approx(1.0, abs=1e-5)
    assert scores.vote[ROW["b"]] == 0.0
    assert scores.nearest[ROW["b"]] > 0.0


def test_observations_count_outcomes_of_both_kinds_as_they_happened() -> None:
    past = [
        Link(0, "a", 0.1),
        Link(1, "a", 0.2, kind=LOST),
        Link(0, "a", 1.0, kind=WON),
        Link(1, "b", 1.0),
        Link(2, None, 1.0),
    ]
    assert memory(directions(3), past).observations.tolist() == [2, 1, 0, 0]
    elsewhere = [link._replace(tenant="y") for link in past]
    assert memory(directions(3), elsewhere, tenant="x").observations.tolist() == [0, 0, 0, 0]


def test_a_past_of_tools_that_left_the_catalog_is_left_out() -> None:
    vectors, query = directions(2), directions(1, 9)[0]
    past = [Link(0, "gone", 1.0), Link(1, "a", 1.0)]
    assert_equal(memory(vectors, past).scores(query), memory(vectors, past[1:]).scores(query))

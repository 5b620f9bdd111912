"""Who may be explored, how likely each is, and a draw that replays."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.cards import Risk
from data.errors import InputError
from serving.explore import (
    Exploration,
    Showings,
    draw,
    eligible_tools,
    explores,
    largest,
    new_enough,
    posterior_width,
    shares,
)

RISK = np.array([Risk.READ_ONLY, Risk.WRITE, Risk.DESTRUCTIVE], dtype=np.int8)
ALL = np.ones(3, dtype=np.bool_)
NONE = np.zeros(3, dtype=np.int64)
EVEN = np.full(4, 0.25)


def test_only_reading_tools_are_explored_unless_writes_are_let_in() -> None:
    assert eligible_tools(ALL, RISK, NONE, NONE, width=0.1).tolist() == [True, False, False]
    with_writes = eligible_tools(ALL, RISK, NONE, NONE, width=0.1, explore_writes=True)
    assert with_writes.tolist() == [True, True, False], "a destructive tool is never tried"


def test_a_tool_that_is_no_candidate_or_known_well_enough_is_not_explored() -> None:
    reads, candidates = np.zeros(4, dtype=np.int8), np.array([True, False, True, True])
    served, failed = np.array([0, 0, 30, 0]), np.array([0, 0, 5, 30])
    assert eligible_tools(candidates, reads, served, failed, width=0.1).tolist() == [True, False, False, False]


def test_what_fails_or_serves_every_time_is_known_sooner_than_what_does_both() -> None:
    always, never, both = posterior_width(np.array([8, 0, 4]), np.array([0, 8, 4])).tolist()
    assert always == never < both


@settings(deadline=None)
@given(st.integers(0, 500), st.integers(0, 500))
def test_more_of_the_same_never_widens_what_is_believed(served: int, failed: int) -> None:
    before, after = posterior_width(np.array([served, 2 * served + 1]), np.array([failed, 2 * failed + 1])).tolist()
    assert after < before <= 1 / np.sqrt(12) + 1e-12


def test_a_tool_is_new_by_the_newest_that_the_caller_may_use_and_one_of_unknown_age_is() -> None:
    seen = np.array([0.0, 95.0, 100.0, np.nan, 900.0])
    allowed = np.array([True, True, True, True, False])
    assert new_enough(seen, allowed, 10.0).tolist() == [False, True, True, True, True]
    assert new_enough(np.full(2, np.nan), np.ones(2, np.bool_), 10.0).all()


def test_the_draw_replays_for_the_same_request_and_differs_between_requests() -> None:
    drawn = [draw(f"request-{i}", 0.5, EVEN) for i in range(200)]
    assert drawn == [draw(f"request-{i}", 0.5, EVEN) for i in range(200)]
    assert set(drawn) == {None, 0, 1, 2, 3}


def test_a_request_that_tries_nothing_at_one_rate_tries_nothing_at_a_lower_one() -> None:
    for i in range(300):
        if not explores(f"r{i}", 0.3):
            assert draw(f"r{i}", 0.3, EVEN) is draw(f"r{i}", 0.2, EVEN) is None


def test_rate_zero_never_explores_and_rate_one_always_does() -> None:
    assert {draw(f"r{i}", 0.0, EVEN) for i in range(100)} == {None}
    assert {draw(f"r{i}", 1.0, EVEN) for i in range(100)} == {0, 1, 2, 3}


def test_nothing_eligible_means_nothing_drawn_and_no_share_means_never_drawn() -> None:
    assert draw("r", 1.0, np.zeros(0)) is None
    assert {draw(f"r{i}", 1.0, np.array([0.0, 1.0, 0.0])) for i in range(100)} == {1}


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=41), st.integers(0, 3000))
def test_the_chances_to_be_the_largest_are_chances(means: list[float], outcomes: int) -> None:
    found = largest(np.array(means), np.full(len(means), outcomes))
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0.0).all()
    if len(set(means)) == 1:
        assert np.allclose(found, 1 / len(means))


@pytest.mark.parametrize("outcomes", [0, 5, 50])
def test_the_chances_are_those_of_samples_from_the_beliefs(outcomes: int) -> None:
    means, counts = np.array([0.3, 0.5, 0.55]), np.array([0, outcomes, 50])
    firm = counts + 4.0
    samples = np.random.default_rng(0).beta(means * firm, (1 - means) * firm, (40_000, 3))
    won = np.bincount(samples.argmax(axis=1), minlength=3) / len(samples)
    assert np.abs(largest(means, counts) - won).max() < 0.015


def believing(relevance: list[float], outcomes: list[int], rate: float = 0.2) -> Exploration:
    eligible = np.ones(len(relevance), np.bool_)
    return Exploration("r", rate, eligible, np.array(relevance), np.array(outcomes))


def test_a_tool_that_promises_more_has_the_larger_share() -> None:
    _, share = shares(believing([0.2, 0.5, 0.4], [0, 0, 100]), np.array([0, 1]), 2)
    assert share[1] > 2 * share[0] > 0.0
    assert share.sum() == pytest.approx(1.0)


def test_the_slot_is_tried_less_than_the_rate_where_little_speaks_for_it_and_never_more() -> None:
    hopeless, _ = shares(believing([0.02, 0.9], [0, 100]), np.array([0]), 1)
    promising, _ = shares(believing([0.8, 0.3], [0, 100]), np.array([0]), 1)
    assert hopeless < 0.01 < promising == 0.2


def test_a_free_slot_costs_nobody_a_place_and_goes_at_the_rate() -> None:
    rate, share = shares(believing([0.02, 0.9], [0, 100]), np.array([0]), None)
    assert (rate, share.tolist()) == (0.2, [1.0])


def test_what_has_been_observed_often_is_not_tried_in_the_hope_that_it_is_better() -> None:
    new, _ = shares(believing([0.3, 0.5], [0, 200], rate=1.0), np.array([0]), 1)
    known, _ = shares(believing([0.3, 0.5], [200, 200], rate=1.0), np.array([0]), 1)
    assert known < 0.001 < new


@pytest.mark.parametrize("relevance", [None, np.array([np.nan, 0.5])])
def test_without_a_relevance_to_believe_in_all_have_the_same_chance(relevance: np.ndarray | None) -> None:
    exploration = Exploration("r", 0.1, np.ones(2, np.bool_), relevance, np.zeros(2, np.int64))
    rate, share = shares(exploration, np.array([0, 1]), None)
    assert (rate, share.tolist()) == (0.1, [0.5, 0.5])


def test_shares_are_drawn_as_often_as_they_say() -> None:
    share = np.array([0.6, 0.0, 0.3, 0.1])
    drawn = Counter(draw(f"request {i}", 0.5, share) for i in range(8000))
    for tool, part in enumerate(share.tolist()):
        assert abs(drawn[tool] / 8000 - 0.5 * part) <= 4.5 * np.sqrt(0.25 / 8000)
    assert drawn[1] == 0


@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan")])
def test_a_rate_that_is_no_probability_is_refused(rate: float) -> None:
    with pytest.raises(InputError, match="rate"):
        Exploration("r", rate, ALL)


def test_exploring_needs_a_request_id_and_not_exploring_does_not() -> None:
    with pytest.raises(InputError, match="request_id"):
        Exploration(" ", 0.1, ALL)
    assert Exploration("", 0.0, ALL).rate == 0.0


def test_showings_are_named_by_their_counts_in_any_order() -> None:
    assert Showings({"a": 1, "b": 2}).version == Showings({"b": 2, "a": 1, "c": 0}).version
    assert Showings({"a": 1}).version != Showings({"a": 2}).version
    assert Showings().version == Showings({"a": 0}).version == ""

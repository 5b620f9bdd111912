"""Who may be explored, and a draw that replays."""

from __future__ import annotations

import numpy as np
import pytest

from data.cards import Risk
from data.errors import InputError
from serving.explore import Exploration, draw, eligible_tools

RISK = np.array([Risk.READ_ONLY, Risk.WRITE, Risk.DESTRUCTIVE], dtype=np.int8)
ALL = np.ones(3, dtype=np.bool_)
NEVER_SEEN = np.zeros(3, dtype=np.int64)


def test_only_reading_tools_are_explored_unless_writes_are_let_in() -> None:
    assert eligible_tools(ALL, ALL, RISK, NEVER_SEEN, threshold=5).tolist() == [True, False, False]
    with_writes = eligible_tools(ALL, ALL, RISK, NEVER_SEEN, threshold=5, explore_writes=True)
    assert with_writes.tolist() == [True, True, False], "a destructive tool is never tried"


def test_a_tool_observed_often_enough_or_masked_or_not_asked_for_is_not_explored() -> None:
    reads = np.zeros(4, dtype=np.int8)
    allowed = np.array([True, False, True, True])
    asked_for = np.array([True, True, False, True])
    observations = np.array([0, 0, 0, 5])
    assert eligible_tools(allowed, asked_for, reads, observations, threshold=5).tolist() == [True, False, False, False]


def test_the_draw_replays_for_the_same_request_and_differs_between_requests() -> None:
    drawn = [draw(f"request-{i}", 0.5, 4) for i in range(200)]
    assert drawn == [draw(f"request-{i}", 0.5, 4) for i in range(200)]
    assert set(drawn) == {None, 0, 1, 2, 3}


def test_rate_zero_never_explores_and_rate_one_always_does() -> None:
    assert {draw(f"r{i}", 0.0, 3) for i in range(100)} == {None}
    assert {draw(f"r{i}", 1.0, 3) for i in range(100)} == {0, 1, 2}


def test_nothing_eligible_means_nothing_drawn() -> None:
    assert draw("r", 1.0, 0) is None


@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan")])
def test_a_rate_that_is_no_probability_is_refused(rate: float) -> None:
    with pytest.raises(InputError, match="rate"):
        Exploration("r", rate, ALL)


def test_exploring_needs_a_request_id_and_not_exploring_does_not() -> None:
    with pytest.raises(InputError, match="request_id"):
        Exploration(" ", 0.1, ALL)
    assert Exploration("", 0.0, ALL).rate == 0.0

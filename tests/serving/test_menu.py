"""The menu: who gets on it, in which order it is emitted, and what exploration may touch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from data.errors import InputError
from serving.explore import Exploration
from serving.menu import Menu, MenuLimits, build_menu


def menu(
    ranked: Sequence[int],
    *,
    core: Sequence[int] = (),
    used: Sequence[int] = (),
    tokens: Sequence[int] | None = None,
    allowed: Sequence[bool] | None = None,
    budget: int = 1000,
    max_tools: int = 12,
    explore: Exploration | None = None,
    n: int = 20,
) -> Menu:
    return build_menu(
        [f"t{row}" for row in range(n)],
        np.array(tokens if tokens is not None else [10] * n),
        np.array(allowed if allowed is not None else [True] * n),
        core=core,
        used=used,
        ranked=ranked,
        relevance=[1.0 - 0.01 * place for place in range(len(ranked))],
        limits=MenuLimits(token_budget=budget, max_tools=max_tools),
        exploration=explore,
    )


def ids(result: Menu) -> list[str]:
    return [entry.tool_id for entry in result.entries]


def trying(rows: Sequence[int], rate: float, request_id: str = "r", n: int = 20) -> Exploration:
    eligible = np.zeros(n, dtype=np.bool_)
    eligible[list(rows)] = True
    return Exploration(request_id, rate, eligible)


def test_tools_are_chosen_by_rank_and_emitted_in_registry_order() -> None:
    result = menu([9, 2, 5, 7], max_tools=3)
    assert ids(result) == ["t2", "t5", "t9"]
    assert [entry.position for entry in result.entries] == [0, 1, 2]
    assert [entry.rank for entry in result.entries] == [1, 2, 0]
    assert result.left_out == {"t7": "max_tools"}


def test_core_and_used_tools_come_before_lower_ranked_ones() -> None:
    result = menu([9, 8, 7], core=[3], used=[4], max_tools=3)
    assert {entry.tool_id: entry.reason for entry in result.entries} == {"t3": "core", "t4": "used", "t9": "ranked"}


def test_a_core_tool_that_was_ranked_keeps_its_relevance_and_an_unranked_one_has_none() -> None:
    entries = {entry.tool_id: entry for entry in menu([9, 3], core=[3, 4]).entries}
    assert (entries["t3"].reason, entries["t3"].rank, entries["t3"].relevance) == ("core", 1, 0.99)
    assert (entries["t4"].reason, entries["t4"].rank, entries["t4"].relevance) == ("core", None, None)


def test_what_does_not_fit_the_budget_is_skipped_for_a_smaller_tool() -> None:
    result = menu([0, 1, 2], tokens=[60, 50, 30], budget=100, n=3)
    assert ids(result) == ["t0", "t2"]
    assert result.tokens == 90
    assert result.left_out == {"t1": "token_budget"}


def test_a_long_session_does_not_crowd_out_what_is_asked_for_now() -> None:
    result = menu([19], used=list(range(12)))
    assert "t19" in ids(result)
    assert "t0" not in ids(result), "the least recently used tool made room"
    assert len(result.entries) == 12


def test_the_best_ranked_tool_that_was_already_used_counts_as_used() -> None:
    assert [entry.reason for entry in menu([4], used=[4]).entries] == ["used"]


def test_a_row_that_is_not_allowed_is_nowhere_on_the_menu() -> None:
    allowed = [row not in (1, 2, 3, 4) for row in range(20)]
    result = menu([1, 9], core=[2], used=[3], allowed=allowed, explore=trying([4], 1.0))
    assert ids(result) == ["t9"]
    assert result.left_out == {}


def test_a_core_tool_over_the_budget_is_reported_and_the_rest_still_served() -> None:
    result = menu([0], core=[1], tokens=[10, 500], budget=100, n=2)
    assert ids(result) == ["t0"]
    assert result.left_out == {"t1": "token_budget"}


def test_exploration_appends_where_the_menu_has_room_and_displaces_nobody() -> None:
    result = menu([5, 6], explore=trying([1, 2], 1.0))
    explored = [entry for entry in result.entries if entry.explored]
    assert {"t5", "t6"} < set(ids(result))
    assert [(entry.reason, entry.propensity) for entry in explored] == [("explored", 0.5)]
    assert all(entry.propensity == 1.0 for entry in result.entries if not entry.explored)


def test_on_a_full_menu_the_explored_tool_takes_the_last_ranked_slot() -> None:
    result = menu([5, 6, 7], core=[4], max_tools=4, explore=trying([1, 2], 1.0))
    assert {"t4", "t5", "t6"} < set(ids(result))
    assert "t7" not in ids(result)
    assert result.left_out == {"t7": "explored"}


def test_when_the_draw_says_no_the_tool_in_the_last_slot_carries_its_chance() -> None:
    requests = (f"r{i}" for i in range(100))
    results = (menu([5, 6], max_tools=2, explore=trying([1], 0.25, request)) for request in requests)
    result = next(result for result in results if not any(entry.explored for entry in result.entries))
    assert {entry.tool_id: entry.propensity for entry in result.entries} == {"t5": 1.0, "t6": 0.75}


def test_a_menu_without_tokens_left_is_full_too() -> None:
    result = menu([5, 6], budget=20, explore=trying([1], 1.0))
    assert ids(result) == ["t1", "t5"]


def test_an_explored_tool_must_fit_the_slot_it_takes() -> None:
    tokens = [10] * 20
    tokens[1] = 11
    result = menu([5, 6], budget=20, tokens=tokens, explore=trying([1], 1.0))
    assert ids(result) == ["t5", "t6"]
    assert all(entry.propensity == 1.0 for entry in result.entries)


def test_core_used_and_best_ranked_tools_never_lose_their_place() -> None:
    result = menu([5], core=[3], used=[4], max_tools=3, explore=trying([1], 1.0))
    assert ids(result) == ["t3", "t4", "t5"]
    assert all(entry.propensity == 1.0 for entry in result.entries)


def test_a_tool_already_on_the_menu_is_not_explored() -> None:
    result = menu([5, 6], explore=trying([5, 6], 1.0))
    assert not any(entry.explored for entry in result.entries)


@pytest.mark.parametrize("limits", [{"token_budget": -1}, {"token_budget": 1, "max_tools": 13}])
def test_limits_that_cannot_be_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(InputError):
        MenuLimits(**limits)


def test_the_chances_name_every_tool_that_a_request_could_show() -> None:
    requests = [f"r{i}" for i in range(2000)]
    results = [menu([5, 6], max_tools=2, explore=trying([1, 2], 0.4, request)) for request in requests]
    names = [f"t{row}" for row in range(20)]
    assert {result.entries for result in results} != {results[0].entries}
    for result in results:
        assert result.chances(names) == pytest.approx({"t5": 1.0, "t6": 0.6, "t1": 0.2, "t2": 0.2})
    seen = {tool: sum(tool in ids(result) for result in results) / len(results) for tool in ("t5", "t6", "t1", "t2")}
    assert seen == pytest.approx({"t5": 1.0, "t6": 0.6, "t1": 0.2, "t2": 0.2}, abs=0.04)


def test_without_exploration_what_is_shown_is_shown_for_certain() -> None:
    assert menu([5, 6]).chances([f"t{row}" for row in range(20)]) == {"t5": 1.0, "t6": 1.0}

"""Contract: the menu's limits hold, exploration touches the last slot only, and its propensities are true."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.explore import Exploration
from serving.menu import Menu, MenuLimits, build_menu

N = 16


@dataclass(frozen=True)
class Case:
    tokens: list[int]
    allowed: list[bool]
    eligible: list[bool]
    core: list[int]
    used: list[int]
    ranked: list[int]
    limits: MenuLimits

    def build(self, request_id: str = "r", rate: float = 0.0) -> Menu:
        return build_menu(
            [f"t{row}" for row in range(N)],
            np.array(self.tokens),
            np.array(self.allowed),
            core=self.core,
            used=self.used,
            ranked=self.ranked,
            relevance=[1.0 - place / N for place in range(len(self.ranked))],
            limits=self.limits,
            exploration=Exploration(request_id, rate, np.array(self.eligible)),
        )


rows = st.lists(st.integers(0, N - 1), unique=True, max_size=N)
mostly = st.lists(st.sampled_from([True, True, True, False]), min_size=N, max_size=N)
cases = st.builds(
    Case,
    tokens=st.lists(st.integers(0, 40), min_size=N, max_size=N),
    allowed=mostly,
    eligible=st.lists(st.booleans(), min_size=N, max_size=N),
    core=rows.map(lambda found: found[:3]),
    used=rows.map(lambda found: found[:5]),
    ranked=rows,
    limits=st.builds(MenuLimits, token_budget=st.integers(0, 250), max_tools=st.integers(1, 12)),
)


@settings(max_examples=200, deadline=None)
@given(cases, st.text(min_size=1).filter(str.strip), st.sampled_from([0.0, 0.3, 1.0]))
def test_size_and_budget_are_kept_core_tools_are_in_and_the_order_is_the_registrys(
    case: Case, request_id: str, rate: float
) -> None:
    menu = case.build(request_id, rate)
    order = [int(entry.tool_id[1:]) for entry in menu.entries]
    assert len(order) <= case.limits.max_tools <= 12
    assert menu.tokens == sum(case.tokens[row] for row in order) <= case.limits.token_budget
    assert order == sorted(set(order))
    assert all(case.allowed[row] for row in order)
    assert not {f"t{row}" for row in order} & set(menu.left_out)
    core = [row for row in case.core if case.allowed[row]]
    if len(core) <= case.limits.max_tools and sum(case.tokens[row] for row in core) <= case.limits.token_budget:
        assert set(core) <= set(order)
    assert menu == case.build(request_id, rate)


@settings(max_examples=200, deadline=None)
@given(cases, st.integers())
def test_exploration_changes_the_lowest_ranked_slot_and_nothing_else(case: Case, seed: int) -> None:
    plain = {entry.tool_id: entry for entry in case.build().entries}
    explored = {entry.tool_id: entry for entry in case.build(f"request {seed}", 1.0).entries}
    came = [entry for tool_id, entry in explored.items() if tool_id not in plain]
    went = [entry for tool_id, entry in plain.items() if tool_id not in explored]
    assert len(came) <= 1
    assert len(went) <= len(came)
    for entry in came:
        row = int(entry.tool_id[1:])
        assert entry.explored
        assert case.eligible[row]
        assert case.allowed[row]
    for entry in went:
        assert entry.reason == "ranked"
        assert entry.rank == max(e.rank for e in plain.values() if e.reason == "ranked" and e.rank is not None)
        assert any(e.rank < entry.rank for e in plain.values() if e.rank is not None and entry.rank is not None)


def assert_shares_match_propensities(case: Case, rate: float, requests: int) -> None:
    shown: Counter[str] = Counter()
    logged: dict[str, float] = {}
    for number in range(requests):
        for entry in case.build(f"request-{number}", rate).entries:
            shown[entry.tool_id] += 1
            # The logged chance of a tool is one figure, whichever way the draw went.
            assert logged.setdefault(entry.tool_id, entry.propensity) == entry.propensity
    for tool_id, propensity in logged.items():
        bound = 4.5 * math.sqrt(propensity * (1.0 - propensity) / requests)  # 1 in 100,000 by chance
        assert abs(shown[tool_id] / requests - propensity) <= bound + 1e-12, tool_id


def a_case(max_tools: int, eligible: set[int]) -> Case:
    everything = [True] * N
    return Case(
        tokens=[10] * N,
        allowed=everything,
        eligible=[row in eligible for row in range(N)],
        core=[0],
        used=[1],
        ranked=[8, 7, 6],
        limits=MenuLimits(token_budget=1000, max_tools=max_tools),
    )


def test_on_a_full_menu_every_tool_is_shown_as_often_as_its_propensity_says() -> None:
    case = a_case(max_tools=5, eligible={10, 11, 12})
    assert_shares_match_propensities(case, rate=0.3, requests=4000)


def test_on_a_menu_with_room_every_tool_is_shown_as_often_as_its_propensity_says() -> None:
    case = a_case(max_tools=12, eligible={10, 11, 12, 13})
    assert_shares_match_propensities(case, rate=0.6, requests=4000)

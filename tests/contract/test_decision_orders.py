"""Contracts 2 and 5: relevance rules up to the margin, exploration takes one last slot, the menu keeps its limits."""

from __future__ import annotations

import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import Trained

from data.catalog import Catalog
from data.context import Caller, Subgoal
from serving.bundle import Bundle, load_bundle
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.slice import Slice

CALLER = Caller(scopes=("accounts",))
IDS = tiny.catalog().ids
GOALS = [goal for tool_id in IDS for goal in tiny.goals(tool_id)[:2]] + tiny.no_tool_goals()[:4]


@pytest.fixture(scope="module")
def bundle(trained: Trained) -> Bundle:
    return load_bundle(trained.bundle)


def relevance_of(found: Slice) -> dict[str, float]:
    return next((record.scores for record in found.record if record.stage == "relevance"), {})


limits = st.builds(
    SelectorSettings,
    margin=st.sampled_from([0.0, 0.02, 0.2]),
    max_tools=st.integers(1, 12),
    token_budget=st.sampled_from([0, 40, 120, 6000]),
    explore_rate=st.sampled_from([0.0, 0.5, 1.0]),
    explore_writes=st.booleans(),
    candidates=st.sampled_from([1, 3, 40]),
)


@settings(max_examples=120, deadline=None)
@given(
    limits,
    st.sampled_from(GOALS),
    st.sampled_from([None, True, False]),
    st.lists(st.sampled_from(IDS), max_size=3, unique=True),
    st.booleans(),
    st.integers(0, 5),
)
def test_every_menu_keeps_its_limits_and_its_order(
    bundle: Bundle,
    how: SelectorSettings,
    goal: str,
    mutation: bool | None,
    used: list[str],
    with_model: bool,
    number: int,
) -> None:
    selector = Selector(bundle if with_model else None, tiny.catalog(), settings=how)
    caller = CALLER.model_copy(update={"used_tools": tuple(used)})
    found = selector.select(Subgoal(goal=goal, mutation=mutation), caller, request_id=f"r{number}")
    menu = found.menu

    assert len(menu) <= how.max_tools <= 12
    assert sum(selector.token_cost(entry.tool_id) for entry in menu) <= how.token_budget
    rows = [selector.catalog.row[entry.tool_id] for entry in menu]
    assert rows == sorted(set(rows)), "registry order, each tool once"
    assert [entry.position for entry in menu] == list(range(len(menu)))
    if selector.token_cost(tiny.CORE) <= how.token_budget:
        assert tiny.CORE in {entry.tool_id for entry in menu}
    else:
        assert any(tiny.CORE in degradation.what for degradation in found.degradations)

    explored = [entry for entry in menu if entry.explored]
    assert len(explored) <= 1
    for entry in explored:
        risk = selector.catalog[entry.tool_id].risk
        assert risk == 0 or (how.explore_writes and risk == 1)
    regular = [entry for entry in menu if entry.reason == "ranked" and entry.rank is not None]
    if explored and regular and found.ranking:
        assert regular[0].rank is not None, "the best that fits is never displaced"

    relevant = relevance_of(found)
    ordered = [relevant[tool] for tool in found.ranking if tool in relevant]
    for place, value in enumerate(ordered):
        assert max(ordered[place + 1 :], default=0.0) - value <= how.margin + 2e-6, "rounded to six digits"


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(GOALS), st.integers(1, 12), st.integers(0, 30))
def test_exploration_changes_nothing_but_the_last_slot(bundle: Bundle, goal: str, max_tools: int, number: int) -> None:
    plain, exploring = (
        Selector(bundle, tiny.catalog(), settings=SelectorSettings(max_tools=max_tools, explore_rate=rate)).select(
            goal, CALLER, request_id=f"r{number}"
        )
        for rate in (0.0, 1.0)
    )
    assert plain.ranking == exploring.ranking
    before = {entry.tool_id: entry for entry in plain.menu}
    after = {entry.tool_id: entry for entry in exploring.menu}
    came, went = after.keys() - before.keys(), before.keys() - after.keys()
    assert len(went) <= len(came) <= 1
    for tool in went:
        ranked = [e.rank for e in plain.menu if e.reason == "ranked" and e.rank is not None]
        assert before[tool].rank == max(ranked)
        assert len(ranked) > 1 or before[tool].rank != min(e.rank for e in plain.menu if e.rank is not None)


def test_cost_decides_between_tools_of_equal_relevance_and_never_between_others(bundle: Bundle) -> None:
    goal = tiny.goals("mail.send_message")[1]
    plain = Selector(bundle, tiny.catalog(), settings=SelectorSettings(margin=0.0)).select(goal, CALLER, request_id="r")
    for cost in (0.0, 1000.0):
        dearest = Catalog(card.model_copy(update={"cost_usd": cost, "p50_ms": cost}) for card in tiny.catalog())
        found = Selector(bundle, dearest, settings=SelectorSettings(margin=0.0)).select(goal, CALLER, request_id="r")
        assert found.ranking == plain.ranking
    wide = Selector(bundle, tiny.catalog(), settings=SelectorSettings(margin=0.5)).select(goal, CALLER, request_id="r")
    relevant = relevance_of(wide)
    leader = max(relevant.values())
    near = [tool for tool, value in relevant.items() if leader - value <= 0.5]
    assert wide.ranking[0] == min(near, key=lambda tool: tiny.catalog()[tool].cost_usd or 0.0)

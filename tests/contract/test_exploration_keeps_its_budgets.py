"""Contract: whom exploration tries, at which rate, and that its chances are true whatever the state of the budgets."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime

import pytest
import tiny
from tiny import Trained

from data.cards import Risk, ToolCard
from data.catalog import Catalog
from data.context import Caller
from data.traces import Shown, Trace
from serving.explore import Showings
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.slice import Slice
from serving.slice_cache import SliceCache, slice_key

GOAL = "send the email for anna"
OPEN = {"explore_width": 0.0, "explore_rate": 0.5, "max_tools": 3}


def selector(trained: Trained, catalog: Catalog | None = None, **how: object) -> Selector:
    settings = SelectorSettings.model_validate(OPEN | how)
    return Selector.load(trained.bundle, catalog or tiny.catalog(), settings=settings)


def chances(found: Slice) -> dict[str, float]:
    """The recorded chance of each tool that this decision might have tried."""
    return next((record.scores for record in found.record if record.stage == "explore"), {})


def asked(chosen: Selector, number: int, caller: Caller | None = None) -> Slice:
    return chosen.select(GOAL, caller, request_id=f"request {number}")


@pytest.fixture(scope="module")
def exploring(trained: Trained) -> Selector:
    return selector(trained)


def assert_true(chosen: Selector, requests: int) -> None:
    """Every tool is shown as often as its logged propensity, and its recorded chance, say."""
    shown: Counter[str] = Counter()
    logged: dict[str, float] = {}
    recorded = chances(asked(chosen, 0))
    for number in range(requests):
        found = asked(chosen, number)
        assert chances(found) == recorded
        for entry in found.menu:
            shown[entry.tool_id] += 1
            assert logged.setdefault(entry.tool_id, entry.propensity) == entry.propensity
            assert not entry.explored or entry.propensity == recorded[entry.tool_id]
    for tool, chance in (recorded | logged).items():
        bound = 4.5 * math.sqrt(chance * (1.0 - chance) / requests)  # 1 in 100,000 by chance
        assert abs(shown[tool] / requests - chance) <= bound + 1e-12, tool


def test_the_shares_of_an_uneven_draw_match_what_is_logged(exploring: Selector) -> None:
    found = chances(asked(exploring, 0))
    assert len(set(found.values())) > 1, "chances differ by what a tool promises"
    assert_true(exploring, 1200)


def test_the_shares_match_where_there_is_no_relevance_to_draw_by() -> None:
    settings = SelectorSettings.model_validate(OPEN)
    plain = Selector.load(None, tiny.catalog(), settings=settings)
    assert len(set(chances(asked(plain, 0)).values())) == 1
    assert_true(plain, 1200)


def test_the_shares_match_when_a_budget_is_spent(exploring: Selector) -> None:
    first = max(chances(asked(exploring, 0)).items(), key=lambda item: item[1])[0]
    spent = exploring.with_showings(Showings({first: exploring.settings.explore_showings}))
    assert first not in chances(asked(spent, 0))
    assert_true(spent, 600)


def test_only_candidates_of_the_request_are_tried(trained: Trained) -> None:
    few = selector(trained, candidates=5)
    for number in range(60):
        found = asked(few, number)
        assert {entry.tool_id for entry in found.menu if entry.explored} <= set(found.ranking)
        assert set(chances(found)) <= set(found.ranking)


def test_a_tool_below_its_budget_is_still_tried(exploring: Selector) -> None:
    tried = chances(asked(exploring, 0))
    almost = exploring.with_showings(Showings(dict.fromkeys(tried, exploring.settings.explore_showings - 1)))
    assert chances(asked(almost, 0)) == tried


def test_a_tenant_has_its_own_rate_and_the_others_keep_theirs(trained: Trained) -> None:
    chosen = selector(trained, explore_rate=0.01, explore_rates={"quiet": 0.0, "bold": 0.9})
    rates = {tenant: sum(chances(asked(chosen, 0, Caller(tenant=tenant))).values()) for tenant in ("quiet", "bold", "")}
    assert rates["quiet"] == 0.0
    assert rates[""] <= 0.01 + 1e-12 < rates["bold"] <= 0.9


def test_a_tool_that_has_been_there_for_long_is_not_tried_while_newer_ones_are_there(trained: Trained) -> None:
    def seen(card: ToolCard, year: int) -> ToolCard:
        return card.model_copy(update={"first_seen": datetime(year, 1, 1, tzinfo=UTC)})

    tried = set(chances(asked(selector(trained), 0)))
    old, *_ = sorted(tried)
    cards = [seen(card, 2020 if card.tool_id == old else 2026) for card in tiny.catalog()]
    assert set(chances(asked(selector(trained, Catalog(cards)), 0))) == tried - {old}
    patient = selector(trained, Catalog(cards), explore_days=10_000.0)
    assert set(chances(asked(patient, 0))) == tried


def test_what_the_caller_may_not_use_does_not_make_the_others_old(trained: Trained) -> None:
    cards = [card.model_copy(update={"first_seen": datetime(2020, 1, 1, tzinfo=UTC)}) for card in tiny.catalog()]
    hidden = ToolCard(
        tool_id="theirs.new",
        name="new",
        tenants=("theirs",),
        risk=Risk.READ_ONLY,
        first_seen=datetime(2026, 1, 1, tzinfo=UTC),
    )
    without, among = (selector(trained, Catalog(of)) for of in (cards, [*cards, hidden]))
    assert chances(asked(without, 0)).keys() == chances(asked(among, 0)).keys() != set()


def test_a_state_of_the_budgets_is_part_of_the_cache_key_and_within_it_a_menu_replays(exploring: Selector) -> None:
    spent = exploring.with_showings(Showings({"maps.find_route": 7}))
    kept, who = SliceCache(), Caller()
    for number in range(40):
        found = kept.ask(spent, GOAL, who, request_id=f"request {number}").slice
        assert found.canonical() == asked(spent, number).canonical()
    assert slice_key(spent, GOAL, who) != slice_key(exploring, GOAL, who)


def test_showings_are_counted_once_a_menu_and_only_where_a_tool_was_tried() -> None:
    menu = (Shown(tool_id="a", position=0), Shown(tool_id="b", position=1, propensity=0.1, explored=True))
    call = Trace(trace_id="t", goal="g", slice_id="s", tool_id="a", outcome="success", menu=menu)
    again, later = call.model_copy(update={"step": 1}), call.model_copy(update={"slice_id": "other"})
    bare = call.model_copy(update={"menu": None, "slice_id": "bare"})
    assert Showings.of([call, again, later, bare]).by_tool == {"b": 2}

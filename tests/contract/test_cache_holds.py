"""Contracts 3 and 4: a cached slice equals a recomputed one, and whatever a slice depends on is in its key."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import Trained

from data.cards import Requires, Risk, ToolCard, Trust
from data.catalog import Catalog
from data.context import Caller, Recent, Subgoal
from serving.bundle import Bundle, load_bundle
from serving.embedding_cache import EmbeddingCache
from serving.policy import DEFAULT_POLICY, PolicyRule, RiskPolicy
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.slice import Slice
from serving.slice_cache import SliceCache, slice_key

Selectors = Callable[[float, int], tuple[Selector, Selector]]


@pytest.fixture(scope="module")
def selectors(trained: Trained) -> Selectors:
    """By exploration rate and menu length: a selector whose embeddings are kept, and one that computes everything."""

    @cache
    def made(rate: float, max_tools: int) -> tuple[Selector, Selector]:
        how = SelectorSettings(explore_rate=rate, explore_width=0.0, max_tools=max_tools, candidates=4)
        bundle = load_bundle(trained.bundle)
        keeping = Selector(bundle, tiny.catalog(), settings=how, embeddings=EmbeddingCache())
        return keeping, Selector(bundle, tiny.catalog(), settings=how)

    return made


subgoals = st.builds(
    Subgoal,
    goal=st.sampled_from(["send the email for anna", "check the account", tiny.no_tool_goals()[0], "yes"]),
    mutation=st.sampled_from([None, True, False]),
    entities=st.sampled_from([(), ("folder",)]),
)
callers = st.builds(
    Caller,
    principal=st.sampled_from(["anna", "bob"]),
    tenant=st.sampled_from(["", "acme"]),
    scopes=st.sampled_from([(), ("accounts",)]),
    env=st.sampled_from(["", "prod"]),
    used_tools=st.sampled_from([(), ("maps.find_route",)]),
    recent=st.builds(Recent, plan=st.sampled_from(["", "book the meeting"])),
)
requests = st.lists(st.tuples(subgoals, callers, st.text(min_size=1, max_size=3)), min_size=1, max_size=12)


def same(cached: Slice, recomputed: Slice) -> bool:
    """Byte for byte, the times it took apart."""
    return (
        cached.canonical().encode() == recomputed.canonical().encode()
        and cached.slice_id == recomputed.slice_id
        and cached.model_dump(exclude={"timings_ms"}) == recomputed.model_dump(exclude={"timings_ms"})
        and cached.sealed().slice_id == cached.slice_id
    )


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("max_tools", [4, 12])
@settings(max_examples=25, deadline=None)
@given(
    asked=requests, capacity=st.sampled_from([0, 150, 2_000_000]), down=st.sampled_from([(), ("mail.send_message",)])
)
def test_a_slice_from_the_cache_equals_one_computed_anew(
    selectors: Selectors,
    rate: float,
    max_tools: int,
    asked: list[tuple[Subgoal, Caller, str]],
    capacity: int,
    down: tuple[str, ...],
) -> None:
    keeping, computing = selectors(rate, max_tools)
    kept = SliceCache(capacity)
    for selector in (keeping, computing):
        selector.set_unavailable(down)
    for subgoal, caller, name in [*asked, *asked]:
        request_id = f"request {name}"
        found = kept.ask(keeping, subgoal, caller, request_id=request_id).slice
        assert same(found, computing.select(subgoal, caller, request_id=request_id))


@pytest.mark.parametrize(("rate", "at_least"), [(0.0, 199), (0.02, 180), (0.5, 60)])
def test_most_requests_are_answered_from_the_cache_and_the_exploring_ones_are_not(
    selectors: Selectors, rate: float, at_least: int
) -> None:
    keeping, computing = selectors(rate, 4)
    kept, hits, explored = SliceCache(), 0, 0
    for number in range(200):
        slice_, cached = kept.ask(keeping, "send the email for anna", Caller(), request_id=f"request {number}")
        assert same(slice_, computing.select("send the email for anna", request_id=f"request {number}"))
        hits += cached
        explored += any(entry.explored for entry in slice_.menu)
        assert not (cached and any(entry.explored for entry in slice_.menu))
    assert hits >= at_least
    assert hits + explored >= 199, "only the first regular request and those that explore are computed"


def test_where_nothing_can_be_explored_even_certain_exploration_is_answered_from_the_cache(trained: Trained) -> None:
    how = SelectorSettings(explore_rate=1.0, explore_width=0.5)
    selector, kept = Selector.load(trained.bundle, tiny.catalog(), settings=how), SliceCache()
    cached = [kept.ask(selector, "send the email", Caller(), request_id=f"r{number}").cached for number in range(3)]
    assert cached == [False, True, True]


# What the key holds

CALLER = Caller(
    principal="anna",
    tenant="acme",
    scopes=("accounts",),
    connections=("crm",),
    env="prod",
    region="eu",
    flags=("beta",),
    cost_ceiling_usd=1.0,
    roles=("clerk",),
    allowed_tools=("mail.send_message",),
    used_tools=("maps.find_route",),
    recent=Recent(plan="send", turns=("hello",), tools=("maps.find_route",)),
)
SUBGOAL = Subgoal(
    goal="send the email",
    operations=("send",),
    entities=("email",),
    mutation=True,
    required_access=("mail",),
)
OTHER_CALLERS: dict[str, list[Any]] = {
    "principal": ["bob", "", "Anna"],
    "tenant": ["", "acme2"],
    "scopes": [(), ("accounts", "more"), ("Accounts",), ("accounts,more",)],
    "connections": [(), ("crm", "erp")],
    "env": ["", "dev"],
    "region": ["", "us"],
    "flags": [(), ("alpha",)],
    "cost_ceiling_usd": [None, 1.0000001, 0.0],
    "roles": [(), ("admin",), ("clerk", "admin")],
    "allowed_tools": [None, (), ("mail.send_message", "maps.find_route")],
    "used_tools": [(), ("mail.send_message",), ("maps.find_route", "maps.find_route")],
    "recent": [
        Recent(),
        Recent(plan="sent", turns=("hello",), tools=("maps.find_route",)),
        Recent(plan="send", turns=("hello", ""), tools=("maps.find_route",)),
        Recent(plan="send", turns=("hello",), tools=()),
    ],
}
OTHER_SUBGOALS: dict[str, list[Any]] = {
    "goal": ["send the email ", "Send the email"],
    "operations": [(), ("send", "send"), ("se", "nd")],
    "entities": [(), ("e", "mail")],
    "mutation": [None, False],
    "required_access": [(), ("mail", "crm")],
}
OTHER_CARDS: dict[str, list[Any]] = {
    "tool_id": ["mail.send"],
    "name": ["send"],
    "domain": ["post"],
    "server_description": ["Letters."],
    "summary": ["s"],
    "description": ["Sends."],
    "capabilities": [("c",)],
    "entities": [("e",)],
    "input_concepts": [("i",)],
    "aliases": [("a",)],
    "examples": [("x",)],
    "not_for": [("n",)],
    "prefer_over": [("p",)],
    "requires": [Requires(scopes=("s",)), Requires(connections=("s",))],
    "tenants": [("t",)],
    "envs": [("v",)],
    "regions": [("r",)],
    "flags": [("f",)],
    "risk": [Risk.READ_ONLY, Risk.DESTRUCTIVE],
    "dry_run": [True],
    "cost_usd": [None, 9.0],
    "p50_ms": [None, 9.0],
    "owner": ["o"],
    "schema_version": ["2"],
    "input_schema": [{"type": "object"}],
    "core": [True],
    "trust": [Trust.THIRD_PARTY],
    "advertise": [True],
    "first_seen": ["2024-01-01T00:00:00Z"],
}
OTHER_SETTINGS: dict[str, Any] = {
    "candidates": 39,
    "margin": 0.03,
    "rerank_budget_ms": 149.0,
    "max_tools": 11,
    "token_budget": 5999,
    "explore_rate": 0.03,
    "explore_rates": {"acme": 0.0},
    "explore_width": 0.2,
    "explore_days": 30.0,
    "explore_showings": 100,
    "explore_writes": True,
    "menu_alpha": 0.1,
    "learn_at_once": True,
    "threads": 2,
    "allow_foreign_catalog": True,
}


@pytest.fixture(scope="module")
def plain() -> Selector:
    """A selector of the small catalog; what a key holds does not need a model."""
    return Selector.load(None, tiny.catalog())


def is_a_miss(first: Selector, second: Selector, *, subgoal: Subgoal = SUBGOAL, caller: Caller = CALLER) -> bool:
    """Whether a cache that has the decision of `first` on the usual request has none of `second` on this one."""
    kept = SliceCache()
    made = first.select(SUBGOAL, CALLER, request_id="r")
    kept.put(slice_key(first, SUBGOAL, CALLER), made)
    assert kept.get(slice_key(first, SUBGOAL, CALLER), "other") is not None
    return kept.get(slice_key(second, subgoal, caller), "other") is None


def test_the_tables_below_leave_no_field_out() -> None:
    assert set(OTHER_CALLERS) == set(Caller.model_fields)
    assert set(OTHER_SUBGOALS) == set(Subgoal.model_fields)
    assert set(OTHER_CARDS) == set(ToolCard.model_fields)
    assert set(OTHER_SETTINGS) == set(SelectorSettings.model_fields)


@pytest.mark.parametrize("field", OTHER_CALLERS)
def test_another_caller_is_a_miss(plain: Selector, field: str) -> None:
    for value in OTHER_CALLERS[field]:
        assert is_a_miss(plain, plain, caller=CALLER.model_copy(update={field: value})), value


@pytest.mark.parametrize("field", OTHER_SUBGOALS)
def test_another_subgoal_is_a_miss(plain: Selector, field: str) -> None:
    for value in OTHER_SUBGOALS[field]:
        assert is_a_miss(plain, plain, subgoal=SUBGOAL.model_copy(update={field: value})), value


@pytest.mark.parametrize("field", OTHER_CARDS)
def test_another_card_is_a_miss(plain: Selector, field: str) -> None:
    first, *rest = tiny.catalog().cards
    for value in OTHER_CARDS[field]:
        changed = ToolCard.model_validate(first.model_dump() | {field: value})
        assert is_a_miss(plain, Selector.load(None, Catalog([changed, *rest]))), value


@pytest.mark.parametrize("field", OTHER_SETTINGS)
def test_other_settings_are_a_miss(plain: Selector, field: str) -> None:
    how = SelectorSettings(**{field: OTHER_SETTINGS[field]})
    assert is_a_miss(plain, Selector.load(None, tiny.catalog(), settings=how))


def test_a_tool_that_comes_goes_or_moves_is_a_miss(plain: Selector) -> None:
    first, *rest = tiny.catalog().cards
    for cards in (rest, [*rest, first]):
        assert is_a_miss(plain, Selector.load(None, Catalog(cards)))


def test_another_policy_is_a_miss(plain: Selector) -> None:
    rules = DEFAULT_POLICY.rules
    for other in ((*rules, PolicyRule(name="last", verdict="deny")), rules[1:], (rules[1], rules[0], *rules[2:])):
        assert is_a_miss(plain, plain.with_policy(RiskPolicy(rules=other)))


def test_tools_that_go_down_or_come_back_are_a_miss() -> None:
    def with_down(*tool_ids: str) -> Selector:
        selector = Selector.load(None, tiny.catalog())
        selector.set_unavailable(tool_ids)
        return selector

    sets = [with_down(), with_down("a.b"), with_down("a.b", "c.d"), with_down("a.bc.d"), with_down("mail.send_message")]
    for first in sets:
        for second in sets:
            assert is_a_miss(first, second) == (first is not second)


def test_another_bundle_is_a_miss_and_the_same_one_elsewhere_is_a_hit(trained: Trained, own_bundle: Path) -> None:
    bundle = load_bundle(trained.bundle)
    threshold = bundle.manifest.model_copy(update={"widen_below": bundle.manifest.widen_below + 0.001})
    ours, none = Selector(bundle, tiny.catalog()), Selector(None, tiny.catalog())
    assert is_a_miss(ours, none)
    assert is_a_miss(ours, Selector(Bundle(trained.bundle, threshold), tiny.catalog()))
    assert not is_a_miss(ours, Selector.load(own_bundle, tiny.catalog()))


hows = st.dictionaries(st.sampled_from(["max_tools", "token_budget"]), st.integers(1, 12), max_size=2)


@given(hows, hows)
def test_the_other_arguments_of_the_selector_are_in_the_key(
    plain: Selector, first: dict[str, int], second: dict[str, int]
) -> None:
    keys = [slice_key(plain, SUBGOAL, CALLER, **how) for how in (first, second)]
    assert (keys[0] == keys[1]) == (first == second)


def test_subgoals_together_are_another_decision_than_each_alone_and_their_order_counts(plain: Selector) -> None:
    asked: list[str | list[str]] = ["a b", ["a b"], ["a", "b"], ["b", "a"], ["a", "b", "b"], ["a", "b "], "a", "b"]
    assert len({slice_key(plain, subgoals, CALLER) for subgoals in asked}) == len(asked)


names = st.lists(st.text(max_size=3), max_size=3).map(tuple)


@settings(max_examples=200)
@given(
    st.builds(Caller, principal=st.text(max_size=3), scopes=names, flags=names, roles=names, used_tools=names),
    st.builds(Caller, principal=st.text(max_size=3), scopes=names, flags=names, roles=names, used_tools=names),
)
def test_keys_are_equal_exactly_where_the_callers_are(plain: Selector, one: Caller, other: Caller) -> None:
    keys = [slice_key(plain, "send the email", who) for who in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)


def test_objects_that_print_alike_are_not_alike(plain: Selector) -> None:
    class Opaque:
        def __repr__(self) -> str:
            return "[object]"

    with pytest.raises(TypeError, match="not JSON serializable"):
        slice_key(plain, SUBGOAL, CALLER, tried=Opaque())
    texts = [slice_key(plain, SUBGOAL, CALLER, tried=value) for value in (1, "1", 1.0, True, None, [1], "[1]")]
    assert len(set(texts)) == 7

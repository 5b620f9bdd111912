"""The static mask: what each rule keeps and drops, and that the cache never mixes two callers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from data.cards import Requires, ToolCard
from data.context import Caller
from serving.mask import StaticMask


def visible(cards: Iterable[ToolCard], caller: Caller, unavailable: frozenset[str] = frozenset()) -> set[str]:
    cards = list(cards)
    allowed = StaticMask.build(cards).apply(caller, unavailable).allowed
    return {card.tool_id for card, keep in zip(cards, allowed, strict=True) if keep}


def card(tool_id: str, **fields: object) -> ToolCard:
    return ToolCard.model_validate({"tool_id": tool_id, "name": tool_id, **fields})


def test_a_tool_without_requirements_exists_for_an_anonymous_caller() -> None:
    assert visible([card("clock.now")], Caller()) == {"clock.now"}


def test_every_scope_is_needed_and_one_of_two_is_not_enough() -> None:
    tool = card("mail.send", requires=Requires(scopes=("mail.read", "mail.send")))
    assert visible([tool], Caller(scopes=("mail.send",))) == set()
    assert visible([tool], Caller(scopes=("mail.read", "mail.send", "extra"))) == {"mail.send"}


def test_scope_names_are_compared_exactly() -> None:
    tool = card("mail.send", requires=Requires(scopes=("mail.send",)))
    for near in ("Mail.Send", "mail.*", "*", "mail", "mail.send "):
        assert visible([tool], Caller(scopes=(near,))) == set(), near


def test_a_scope_listed_twice_by_the_caller_does_not_stand_for_two() -> None:
    tool = card("mail.send", requires=Requires(scopes=("a", "b")))
    twice = Caller.model_construct(**{**dict(Caller()), "scopes": ("a", "a")})
    assert visible([tool], twice) == set()


def test_a_connection_is_not_a_scope() -> None:
    tool = card("repo.list", requires=Requires(connections=("forge",)))
    assert visible([tool], Caller(scopes=("forge",))) == set()
    assert visible([tool], Caller(connections=("forge",))) == {"repo.list"}


def test_each_tenant_sees_its_own_tool_of_the_same_name() -> None:
    cards = [card("a.search", name="search", tenants=("a",)), card("b.search", name="search", tenants=("b",))]
    assert visible(cards, Caller(tenant="a")) == {"a.search"}
    assert visible(cards, Caller(tenant="b")) == {"b.search"}
    assert visible(cards, Caller()) == set()


def test_environment_and_region_restrict_only_where_the_card_names_them() -> None:
    cards = [card("free"), card("staged", envs=("staging",)), card("local", regions=("eu", "us"))]
    assert visible(cards, Caller(env="prod", region="eu")) == {"free", "local"}
    assert visible(cards, Caller(env="staging", region="ap")) == {"free", "staged"}


def test_all_flags_of_a_tool_must_be_on() -> None:
    tool = card("beta.tool", flags=("beta", "labs"))
    assert visible([tool], Caller(flags=("beta",))) == set()
    assert visible([tool], Caller(flags=("beta", "labs"))) == {"beta.tool"}


def test_an_empty_workflow_list_allows_nothing_while_none_restricts_nothing() -> None:
    cards = [card("one"), card("two")]
    assert visible(cards, Caller(allowed_tools=None)) == {"one", "two"}
    assert visible(cards, Caller(allowed_tools=())) == set()
    assert visible(cards, Caller(allowed_tools=("two", "not in the catalog"))) == {"two"}


def test_an_undeclared_cost_is_under_no_ceiling() -> None:
    cards = [card("free", cost_usd=0.0), card("dear", cost_usd=0.5), card("unknown")]
    assert visible(cards, Caller(cost_ceiling_usd=0.0)) == {"free"}
    assert visible(cards, Caller(cost_ceiling_usd=0.5)) == {"free", "dear"}
    assert visible(cards, Caller()) == {"free", "dear", "unknown"}


def test_an_unavailable_tool_is_dropped_for_health_and_comes_back() -> None:
    mask = StaticMask.build([card("one"), card("two")])
    assert mask.apply(Caller(), frozenset({"one", "stranger"})).dropped == {"one": "health"}
    assert mask.apply(Caller()).dropped == {}


def test_a_tool_that_fails_several_rules_is_recorded_under_the_first() -> None:
    tool = card("x", tenants=("t",), requires=Requires(scopes=("s",)), envs=("e",))
    mask = StaticMask.build([tool])
    assert mask.apply(Caller()).dropped == {"x": "tenant"}
    assert mask.apply(Caller(tenant="t")).dropped == {"x": "scopes"}
    assert mask.apply(Caller(tenant="t", scopes=("s",))).dropped == {"x": "env"}


def test_the_next_request_after_a_grant_sees_the_tool() -> None:
    mask = StaticMask.build([card("x", requires=Requires(scopes=("s",)))])
    assert not mask.apply(Caller(principal="p")).allowed.any()
    assert mask.apply(Caller(principal="p", scopes=("s",))).allowed.all()
    assert not mask.apply(Caller(principal="p")).allowed.any()


def test_equal_grants_of_two_principals_share_one_result() -> None:
    mask = StaticMask.build([card("x")])
    assert mask.apply(Caller(principal="p", scopes=("s",))) is mask.apply(Caller(principal="q", scopes=("s",)))


def test_a_scope_is_never_taken_for_a_flag_or_connection_of_the_same_name() -> None:
    mask = StaticMask.build([card("x", flags=("n",)), card("y", requires=Requires(connections=("n",)))])
    assert mask.apply(Caller(scopes=("n",))).dropped == {"x": "flags", "y": "connections"}
    assert mask.apply(Caller(flags=("n",))).dropped == {"y": "connections"}
    assert mask.apply(Caller(connections=("n",))).dropped == {"x": "flags"}


def test_the_cache_stays_right_when_more_callers_come_than_it_holds() -> None:
    cards = [card(f"tool{i}", tenants=(f"t{i}",)) for i in range(300)]
    mask = StaticMask.build(cards)
    for _ in range(2):
        for i in range(300):
            assert np.flatnonzero(mask.apply(Caller(tenant=f"t{i}")).allowed).tolist() == [i]
    assert len(mask._cache) < 300


def test_results_cannot_be_changed_by_whoever_receives_them() -> None:
    mask = StaticMask.build([card("x"), card("y", tenants=("t",))])
    result = mask.apply(Caller())
    with pytest.raises(ValueError, match="read-only"):
        result.allowed[1] = True
    result.dropped.clear()
    assert mask.apply(Caller()).dropped == {"y": "tenant"}


def test_an_empty_catalog_masks_to_nothing() -> None:
    result = StaticMask.build([]).apply(Caller())
    assert result.allowed.shape == (0,)
    assert result.dropped == {}

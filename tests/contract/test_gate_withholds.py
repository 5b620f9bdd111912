"""Contracts 1 and 6 at the gate: what the caller may not see is not felt, and every call is authorised again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.cards import Requires, Risk, ToolCard, Trust
from data.catalog import Catalog
from data.context import Caller, Subgoal
from data.store.database import open_database
from serving.gate.arguments import ArgumentChecker
from serving.gate.gate import Call, CheckResult, Gate, Ground
from serving.gate.tickets import Tickets
from serving.mask import StaticMask
from serving.policy import DEFAULT_POLICY
from serving.slice import MenuEntry, Slice

NOW = datetime(2026, 3, 1, tzinfo=UTC)
IDS = tuple(f"d.tool{n}" for n in range(5))
some_names = st.sets(st.sampled_from(["one", "two"])).map(tuple)
cards = st.tuples(
    *(
        st.builds(
            ToolCard,
            tool_id=st.just(tool_id),
            name=st.just("t"),
            domain=st.just("d"),
            requires=st.builds(Requires, scopes=some_names, connections=some_names),
            tenants=st.sampled_from([(), ("acme",), ("rival",)]),
            flags=st.sampled_from([(), ("beta",)]),
            risk=st.sampled_from(Risk),
            trust=st.sampled_from(Trust),
            dry_run=st.booleans(),
            cost_usd=st.sampled_from([None, 0.5, 5.0]),
            input_schema=st.sampled_from([{}, {"required": ["a"]}, {"type": "objekt"}]),
        )
        for tool_id in IDS
    )
)
callers = st.builds(
    Caller,
    principal=st.just("ann"),
    tenant=st.just("acme"),
    scopes=some_names,
    connections=some_names,
    flags=st.sampled_from([(), ("beta",)]),
    cost_ceiling_usd=st.sampled_from([None, 1.0]),
    allowed_tools=st.one_of(st.none(), st.sets(st.sampled_from(IDS)).map(tuple)),
)
menus = st.lists(st.sampled_from(IDS), unique=True)
downs = st.sets(st.sampled_from(IDS)).map(frozenset)
arguments: st.SearchStrategy[Any] = st.sampled_from([{}, {"a": 1}, None, {"a": float("nan")}])


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(Tickets(open_database(tmp_path / "toolcrib.db")), ArgumentChecker())


def shown_with(tool_ids: list[str], mutation: bool | None) -> Slice:
    return Slice(
        slice_id="s",
        request_id="r",
        catalog_version="c",
        bundle_version="b",
        policy_version="p",
        caller_key="k",
        subgoal=Subgoal(goal="g", mutation=mutation),
        query="g",
        menu=tuple(MenuEntry(tool_id=tool_id, position=place) for place, tool_id in enumerate(tool_ids)),
    )


def check(
    gate: Gate, call: Call, shown: Slice, caller: Caller, cards: tuple[ToolCard, ...], down: frozenset[str]
) -> CheckResult:
    ground = Ground(Catalog(cards), StaticMask.build(cards), DEFAULT_POLICY, down)
    return gate.check(call, shown, ("ann", "acme"), caller, ground, NOW)


many = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@many
@given(cards, callers, menus, downs, st.sampled_from(IDS), arguments, st.sampled_from([None, True, False]))
def test_only_what_the_caller_may_see_at_this_moment_is_judged_at_all(
    gate: Gate,
    cards: tuple[ToolCard, ...],
    caller: Caller,
    menu: list[str],
    down: frozenset[str],
    tool_id: str,
    given_arguments: Any,
    mutation: bool | None,
) -> None:
    shown = shown_with(menu, mutation)
    found = check(gate, Call(tool_id, given_arguments, "s"), shown, caller, cards, down)
    allowed = StaticMask.build(cards).apply(caller, down).allowed
    visible = {one for one in menu if allowed[IDS.index(one)]}
    assert (found.rule == "not_available") == (tool_id not in visible)
    assert set(found.available) <= visible
    if mutation is False and found.verdict not in ("deny", "invalid"):
        assert cards[IDS.index(tool_id)].risk is Risk.READ_ONLY
    if found.verdict != "invalid":
        assert given_arguments in ({}, {"a": 1}) or found.verdict == "deny"


@many
@given(cards, callers, menus, downs, st.sampled_from(IDS), arguments, st.sampled_from(["", "x", None]))
def test_a_catalog_without_the_withheld_tools_gives_the_same_answers(
    gate: Gate,
    cards: tuple[ToolCard, ...],
    caller: Caller,
    menu: list[str],
    down: frozenset[str],
    tool_id: str,
    given_arguments: Any,
    ticket: str | None,
) -> None:
    allowed = StaticMask.build(cards).apply(caller, down).allowed
    seen = tuple(card for card, keep in zip(cards, allowed, strict=True) if keep)
    call, shown = Call(tool_id, given_arguments, "s", ticket), shown_with(menu, None)
    full = check(gate, call, shown, caller, cards, down)
    without = check(gate, call, shown, caller, seen, frozenset())
    assert _told(full) == _told(without)


def _told(found: CheckResult) -> tuple[object, ...]:
    """All of an answer but its random token."""
    said = (found.verdict, found.rule, found.message, found.hint, found.errors, found.available, found.expires)
    return (*said, found.ticket is None)

"""Contracts 3 and 4 over HTTP: an answer from the cache is the answer anew, and whatever counts makes another key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shop import PEOPLE, Shop, open_shop

GRANTED = {**PEOPLE, "backend": {"tenant": "acme", "may_act_for": True, "scopes": ["accounts"], "connections": ["crm"]}}
SETTINGS = {"selector": {"explore_rate": 0.3, "explore_width": 0.0, "max_tools": 5}}
QUIET = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with open_shop(tmp_path_factory.mktemp("keeping"), people=GRANTED, **SETTINGS) as opened:
        yield opened


@pytest.fixture(scope="module")
def forgetting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Another process, as it were: the same files, and nothing kept."""
    folder = tmp_path_factory.mktemp("forgetting")
    with open_shop(folder, people=GRANTED, **SETTINGS, cache={"slices": 0, "embeddings": 0}) as opened:
        yield opened


asks = st.one_of(
    st.fixed_dictionaries(
        {"goal": st.sampled_from(["list the orders", "show the balance", "cancel the order", "yes"])}
    ),
    st.fixed_dictionaries({"subgoals": st.just([{"goal": "list the orders"}, {"goal": "send an email"}])}),
)
callers = st.fixed_dictionaries(
    {},
    optional={
        "principal": st.sampled_from(["zoe", "yan"]),
        "scopes": st.sampled_from([[], ["accounts"]]),
        "connections": st.sampled_from([[], ["crm"]]),
        "allowed_tools": st.sampled_from([["shop.orders", "ledger.balance"], []]),
        "used_tools": st.sampled_from([["mail.send"], ["mail.send", "shop.note"]]),
        "cost_ceiling_usd": st.sampled_from([0.0, 1.0]),
        "recent": st.sampled_from([{"plan": "send an email"}, {"plan": "cancel the order"}]),
    },
)
rest = st.fixed_dictionaries(
    {"request_id": st.sampled_from([f"r{number}" for number in range(8)])},
    optional={"mutation": st.booleans(), "format": st.sampled_from(["openai", "mcp"])},
)
bodies = st.tuples(asks, callers, rest).map(lambda parts: {**parts[0], "caller": parts[1], **parts[2]})


def meant(caller: dict[str, Any]) -> dict[str, Any]:
    """The caller that a body stands for: what is left out is as granted."""
    granted = GRANTED["backend"]
    return {"scopes": granted["scopes"], "connections": granted["connections"], **caller}


def said(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in ("timings_ms", "cached")}


@QUIET
@given(st.lists(bodies, min_size=2, max_size=8))
def test_a_kept_answer_equals_one_that_is_computed_anew(
    keeping: Shop, forgetting: Shop, sent: list[dict[str, Any]]
) -> None:
    for body in sent:
        kept, anew = (shop.ok("/v1/select", body, "backend") for shop in (keeping, forgetting))
        assert said(kept) == said(anew)
        assert not anew["cached"]
        again = keeping.ok("/v1/select", body, "backend")
        assert said(again) == said(kept)


def test_the_answers_that_were_compared_came_from_the_cache_too(keeping: Shop) -> None:
    for _ in range(2):
        answer = keeping.ok("/v1/select", {"goal": "list the orders", "request_id": "r1"}, "backend")
    assert answer["cached"]


@QUIET
@given(bodies, callers)
def test_a_request_of_another_caller_is_never_answered_by_what_was_made_for_the_first(
    keeping: Shop, body: dict[str, Any], other: dict[str, Any]
) -> None:
    first = keeping.ok("/v1/select", body, "backend")
    second = keeping.ok("/v1/select", {**body, "caller": other}, "backend")
    if meant(body["caller"]) != meant(other):
        assert first["slice_id"] != second["slice_id"]
        refused = keeping.ok(
            "/v1/check", {"slice_id": first["slice_id"], "tool_id": "ledger.balance", "caller": other}, "backend"
        )
        if body["caller"].get("principal") != other.get("principal"):
            assert refused["rule"] == "unknown_slice"
    else:
        assert first["slice_id"] == second["slice_id"]

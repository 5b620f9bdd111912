"""Contracts 1 and 6 over HTTP: what a caller may not see is in no byte of an answer; to be shown is no permission."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shop import KEYS, Shop, open_shop, shown

from data.cards import Requires, Risk, ToolCard, Trust
from data.catalog import Catalog
from data.wire_names import wire_name
from serving.search_tool import with_search_tool
from serving.selector import Selector
from serving.settings import SelectorSettings

HOLDS = {
    "scopes": ["read", "write"],
    "connections": ["crm", "git"],
    "flags": ["beta"],
    "envs": ["test", "prod"],
    "regions": ["eu", "us"],
}
PEOPLE = {
    "ann": {"tenant": "acme", "may_act_for": True, **HOLDS},
    "rita": {"tenant": "rival", **HOLDS},
    "olga": {"tenant": "acme", "operator": True},
}
FORMS = (("text", "invocation"), ("mcp", "selection"), ("openai", "discovery"), ("anthropic", "invocation"))
GOALS = ("list the orders", "refund an order", "send a message", "delete the record")
QUIET = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with open_shop(tmp_path_factory.mktemp("shop"), people=PEOPLE) as opened:
        yield opened


def some(*names: str) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(names), unique=True, max_size=1).map(tuple)


rules = st.fixed_dictionaries(
    {
        "tenants": some("acme", "rival"),
        "scopes": some("read", "write", "admin"),
        "connections": some("crm", "git", "erp"),
        "flags": some("beta", "alpha"),
        "envs": some("test", "prod"),
        "regions": some("eu", "us"),
        "goal": st.sampled_from(GOALS),
        "risk": st.sampled_from(Risk),
        "core": st.sampled_from([False, False, False, True]),
        "advertise": st.booleans(),
    }
)
"""What a card asks of a caller, and what it is for."""

narrowings = st.fixed_dictionaries(
    {},
    optional={
        "scopes": st.sampled_from([[], ["read"], ["write"]]),
        "connections": st.sampled_from([[], ["crm"]]),
        "flags": st.just([]),
        "env": st.sampled_from(["test", "prod"]),
        "region": st.sampled_from(["eu", "us"]),
        "allowed_tools": st.sampled_from([["srv0.zq0x", "srv1.zq1x", "toolcrib.search_tools"], ["srv2.zq2x"]]),
    },
)


def card(number: int, rule: Mapping[str, Any]) -> ToolCard:
    return ToolCard(
        tool_id=f"srv{number}.zq{number}x",
        name=f"zq{number}x",
        domain=f"srv{number}",
        description=f"{rule['goal']} by way of mark{number}q".capitalize(),
        requires=Requires(scopes=rule["scopes"], connections=rule["connections"]),
        tenants=rule["tenants"],
        flags=rule["flags"],
        envs=rule["envs"],
        regions=rule["regions"],
        risk=rule["risk"],
        trust=Trust.TRUSTED,
        core=rule["core"],
        advertise=rule["advertise"],
    )


catalogs = st.lists(rules, min_size=1, max_size=6).map(lambda made: [card(*one) for one in enumerate(made)])


def may_see(who: str, body: Mapping[str, Any], found: ToolCard) -> bool:
    """The rules once more, in the plainest words."""
    held = {name: body.get(name, HOLDS[name]) for name in ("scopes", "connections", "flags")}
    return (
        (not found.tenants or PEOPLE[who]["tenant"] in found.tenants)
        and set(found.requires.scopes) <= set(held["scopes"])
        and set(found.requires.connections) <= set(held["connections"])
        and set(found.flags) <= set(held["flags"])
        and (not found.envs or body.get("env", "test") in found.envs)
        and (not found.regions or body.get("region", "eu") in found.regions)
        and ("allowed_tools" not in body or found.tool_id in body["allowed_tools"])
    )


def serve(shop: Shop, cards: list[ToolCard]) -> None:
    how = SelectorSettings(explore_rate=0.3)
    swap = shop.assembly.watch.live.swap(lambda: Selector(None, with_search_tool(Catalog(cards)), settings=how))
    assert swap.accepted, swap.problem


def everything(answer: httpx.Response) -> str:
    """All that a client gets of an answer."""
    return f"{answer.status_code} {answer.headers} {answer.text}"


def like(answer: httpx.Response) -> Any:
    """An answer without what is drawn, timed or hashed anew for every request."""
    body = answer.json()
    for name in ("slice_id", "timings_ms", "versions", "cached"):
        body.pop(name, None)
    return answer.status_code, body


def secrets_of(card: ToolCard) -> set[str]:
    """What only this card's texts have in them."""
    return {card.tool_id, card.name, f"{card.domain}.", wire_name(card.tool_id), card.description.split()[-1]}


def ask_about(shop: Shop, who: str, caller: Mapping[str, Any], menu: str, tool_id: str) -> list[httpx.Response]:
    """All the ways to ask about a tool of a menu."""
    sent = {"slice_id": menu, "tool_id": tool_id, "caller": caller}
    answers = [shop.post("/v1/describe", sent, who), shop.post("/v1/check", {**sent, "arguments": {"a": 1}}, who)]
    for failure in ("auth", "tool_error", "wrong_tool"):
        failed = {"slice_id": menu, "tool_id": tool_id, "error_class": failure}
        answers.append(shop.post("/v1/select", {"after": failed, "request_id": "r", "caller": caller}, who))
        menu = answers[-1].json()["slice_id"]
    return [*answers, shop.get("/v1/explain", who, slice=menu, tool=tool_id)]


@QUIET
@given(catalogs, narrowings, st.sampled_from(["ann", "rita"]), st.sampled_from(GOALS))
def test_no_byte_of_an_answer_tells_of_a_tool_that_is_withheld(
    shop: Shop, cards: list[ToolCard], body: dict[str, Any], who: str, goal: str
) -> None:
    hidden = [one for one in cards if not may_see(who, body, one)]
    named = [one.tool_id for one in cards]
    caller = {**body, "used_tools": named, "recent": {"tools": named}}
    serve(shop, cards)
    menus = [
        shop.post("/v1/select", {"goal": goal, "format": format, "level": level, "caller": caller}, who)
        for format, level in FORMS
    ]
    menus.append(shop.post("/v1/select", {"subgoals": [{"goal": text} for text in GOALS], "caller": caller}, who))
    menus.append(shop.post("/v1/select", {"search": {"query": goal}, "caller": caller}, who))
    last = menus[-1].json()["slice_id"]
    never = ask_about(shop, who, caller, last, "no.such_tool")
    asked = [ask_about(shop, who, caller, last, one.tool_id) for one in hidden]
    secrets = set[str]().union(*map(secrets_of, hidden))
    for answer in (*menus, *never, *(one for answers in asked for one in answers)):
        told = everything(answer)
        assert answer.status_code in (200, 403, 409), told
        assert not [word for word in secrets if word in told], told
    for answers in asked:
        assert [*map(like, answers)] == [*map(like, never)], "a withheld tool is answered as one that never was"


@QUIET
@given(catalogs, narrowings, st.sampled_from(["ann", "rita"]), st.sampled_from(GOALS))
def test_an_answer_is_the_same_where_the_withheld_tools_are_not_there_at_all(
    shop: Shop, cards: list[ToolCard], body: dict[str, Any], who: str, goal: str
) -> None:
    visible = [one for one in cards if may_see(who, body, one)]
    answers = []
    for served in (cards, visible):
        serve(shop, served)
        answers.append(like(shop.post("/v1/select", {"goal": goal, "caller": body, "request_id": "same"}, who)))
    assert answers[0] == answers[1]


@QUIET
@given(
    catalogs,
    narrowings,
    narrowings,
    st.sampled_from(GOALS),
    st.sampled_from(["", "zoe"]),
)
def test_a_tool_that_was_shown_is_asked_about_again_at_every_call(
    shop: Shop, cards: list[ToolCard], then: dict[str, Any], now: dict[str, Any], goal: str, other: str
) -> None:
    serve(shop, cards)
    menu = shop.post("/v1/select", {"goal": goal, "caller": then}, "ann").json()
    caller = {**now, **({"principal": other} if other else {})}
    for one in cards:
        sent = {"slice_id": menu["slice_id"], "tool_id": one.tool_id, "caller": caller}
        found = shop.post("/v1/check", sent, "ann").json()
        if other:
            assert found["rule"] == "unknown_slice"
        elif one.tool_id not in shown(menu) or not may_see("ann", now, one):
            assert (found["verdict"], found["rule"]) == ("deny", "not_available")
            assert all(may_see("ann", now, seen) for seen in cards if seen.tool_id in found["available"])
        else:
            assert found["rule"] != "not_available"
            assert (found["verdict"] == "allow") == (one.risk is not Risk.DESTRUCTIVE and not _asks(one, now))


def _asks(one: ToolCard, body: Mapping[str, Any]) -> bool:
    """Whether the default policy has a write in production confirmed."""
    return one.risk is Risk.WRITE and body.get("env", "test") == "prod"


def test_a_credential_is_in_no_answer_and_no_error(shop: Shop) -> None:
    for answer in (
        shop.post("/v1/select", {"goal": KEYS["ann"][:10]}, "stranger"),
        shop.send("POST", "/v1/select", "ann", content=json.dumps({KEYS["ann"][:8]: 1}).encode()),
    ):
        assert KEYS["stranger"] not in everything(answer)
        assert KEYS["ann"] not in everything(answer)

"""Narrowing, field by field: bounds combine, claims must be granted, and a refusal names the field and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from data.context import Caller, Recent
from serving.door.body import validated
from serving.door.errors import DoorError, as_json
from serving.door.granted import Identity
from serving.door.narrowing import CallerBody, RecentBody, narrow

GRANTED = Identity(
    "agent",
    Caller(
        principal="agent",
        tenant="acme",
        scopes=("mail.read", "mail.send"),
        connections=("mail",),
        env="prod",
        region="eu",
        flags=("beta",),
        roles=("clerk", "contractor"),
        cost_ceiling_usd=1.0,
        allowed_tools=("mail.send", "mail.read"),
    ),
    envs=("prod", "test"),
    regions=("eu", "us"),
)
BACKEND = Identity("backend", GRANTED.caller, may_act_for=True)


def caller(identity: Identity = GRANTED, **fields: Any) -> Caller:
    return narrow(identity, CallerBody(**fields))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("principal", "bob"),
        ("tenant", "rival"),
        ("tenant", ""),
        ("env", "staging"),
        ("env", ""),
        ("region", "cn"),
        ("region", ""),
        ("scopes", ("mail.read", "mail.delete")),
        ("scopes", ("MAIL.READ",)),
        ("connections", ("crm",)),
        ("flags", ("alpha",)),
        ("roles", ("clerk", "contractor", "admin")),
        ("roles", ("clerk",)),
        ("roles", ()),
    ],
)
def test_asking_for_more_is_refused_with_the_field_and_nothing_of_what_is_granted(field: str, value: Any) -> None:
    with pytest.raises(DoorError) as caught:
        caller(**{field: value})
    error = caught.value
    assert (error.status, error.code, error.path) == (403, "not_permitted", f"$.caller.{field}")
    said = json.dumps(as_json(error))
    granted = ("acme", "mail", "prod", "contractor", "beta", "agent")
    assert not [word for word in (*granted, "rival", "staging", "crm", "alpha", "admin") if word in said]


def test_less_of_what_opens_tools_is_less() -> None:
    found = caller(scopes=("mail.read",), connections=(), flags=())
    assert (found.scopes, found.connections, found.flags) == (("mail.read",), (), ())


def test_what_is_left_out_or_null_is_as_granted() -> None:
    body = validated(CallerBody, {"scopes": None, "roles": None, "env": None, "allowed_tools": None})
    assert narrow(GRANTED, body) == GRANTED.caller


def test_roles_may_be_repeated_back_in_any_order() -> None:
    assert caller(roles=("contractor", "clerk")).roles == ("clerk", "contractor")


def test_a_place_may_be_chosen_among_those_of_the_credential() -> None:
    found = caller(env="test", region="us")
    assert (found.env, found.region) == ("test", "us")


@pytest.mark.parametrize(("asked", "held"), [(None, 1.0), (0.5, 0.5), (5.0, 1.0), (0.0, 0.0)])
def test_the_lower_ceiling_holds(asked: float | None, held: float) -> None:
    assert caller(cost_ceiling_usd=asked).cost_ceiling_usd == held


def test_a_ceiling_of_the_body_holds_where_none_is_granted() -> None:
    assert narrow(Identity("key", Caller()), CallerBody(cost_ceiling_usd=2.0)).cost_ceiling_usd == 2.0


def test_a_workflow_allows_only_what_the_credential_allows_too() -> None:
    assert caller(allowed_tools=("mail.send", "crm.delete")).allowed_tools == ("mail.send",)
    assert caller(allowed_tools=()).allowed_tools == ()
    assert narrow(Identity("key", Caller()), CallerBody(allowed_tools=("a.b",))).allowed_tools == ("a.b",)


def test_a_backend_may_name_the_person_it_asks_for_and_nothing_more() -> None:
    assert caller(BACKEND, principal="bob").principal == "bob"
    assert caller(GRANTED, principal="agent").principal == "agent"
    with pytest.raises(DoorError):
        caller(BACKEND, principal="bob", tenant="rival")


def test_session_state_is_free() -> None:
    found = caller(used_tools=("crm.find",), recent=RecentBody(plan="p", turns=("t",), tools=("a.b",)))
    assert found.used_tools == ("crm.find",)
    assert found.recent == Recent(plan="p", turns=("t",), tools=("a.b",))


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"scope": []}, "$.scope"),
        ({"operator": True}, "$.operator"),
        ({"scopes": "mail.read"}, "$.scopes"),
        ({"scopes": ["a\u0000b"]}, "$.scopes[0]"),
        ({"scopes": [["mail.read"]]}, "$.scopes[0]"),
        ({"principal": ""}, "$.principal"),
        ({"principal": {"toString": "agent"}}, "$.principal"),
        ({"principal": "x" * 257}, "$.principal"),
        ({"cost_ceiling_usd": -1}, "$.cost_ceiling_usd"),
        ({"used_tools": ["t"] * 1025}, "$.used_tools"),
        ({"recent": {"turns": ["t"] * 65}}, "$.recent.turns"),
        ({"recent": {"plan": "x" * 20_001}}, "$.recent.plan"),
    ],
)
def test_a_caller_that_is_out_of_form_or_bounds_is_refused_by_path(body: dict[str, Any], path: str) -> None:
    with pytest.raises(DoorError) as caught:
        validated(CallerBody, body)
    assert (caught.value.status, caught.value.path) == (422, path)

"""Approvals: bound to the exact call, good once, for a while; whatever is tried, in whatever order."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.errors import InputError
from data.store.database import open_database
from serving.gate.canonical import arguments_hash, canonical_json
from serving.gate.tickets import Binding, Tickets

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TTL = timedelta(minutes=5)

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5)
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
)
objects = st.dictionaries(st.text(max_size=3), values, max_size=4)


def shuffled(value: Any, order: random.Random) -> Any:
    """The same value, its keys in another order."""
    if isinstance(value, list):
        return [shuffled(item, order) for item in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    order.shuffle(keys)
    return {key: shuffled(value[key], order) for key in keys}


def identical(one: Any, other: Any) -> bool:
    """Equal, and of one type all the way down: Python takes 1, 1.0 and True for equal."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(identical, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(identical(one[key], other[key]) for key in one)
    return repr(one) == repr(other)


@given(objects, st.randoms(use_true_random=False), st.sampled_from([None, 0, 3]))
def test_key_order_and_white_space_do_not_matter(arguments: dict[str, Any], order: random.Random, indent: int) -> None:
    sent_again = json.loads(json.dumps(shuffled(arguments, order), indent=indent, ensure_ascii=bool(indent)))
    assert canonical_json(sent_again) == canonical_json(arguments)
    assert arguments_hash(sent_again) == arguments_hash(arguments)


alike = st.sampled_from([0, 0.0, -0.0, False, None, "", "0", 1, 1.0, True, [], [0], {}, {"a": 0}])


@given(st.one_of(objects, alike), st.one_of(objects, alike))
def test_values_do(one: Any, other: Any) -> None:
    assert (canonical_json(one) == canonical_json(other)) == identical(one, other)


def test_what_python_takes_for_equal_is_told_apart() -> None:
    alike: list[Any] = [1, 1.0, True, "1", [1], {"1": 1}, "true", None, "null", 0, False, 0.0, "", [], {}]
    alike += ["\u00e9", "e\u0301", "K", "\u212a"]
    assert len({canonical_json({"a": value}) for value in alike}) == len(alike)
    assert canonical_json({"a": json.loads("1.00")}) == canonical_json({"a": json.loads("1e0")})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {1: 2}, (1,), b"x", 2**1024])
def test_what_is_no_json_has_no_canonical_text(value: Any) -> None:
    with pytest.raises(InputError, match=r"\$\.a"):
        canonical_json({"a": [value]})


CALL = Binding("acme", "ann", "pay.refund", arguments_hash({"amount": 1}), "s1")
others = st.sampled_from(
    [
        CALL._replace(tenant="rival"),
        CALL._replace(principal="bob"),
        CALL._replace(tool_id="pay.void"),
        CALL._replace(arguments_hash=arguments_hash({"amount": 1.0})),
        CALL._replace(slice_id="s2"),
    ]
)
moments = st.sampled_from([NOW, NOW + TTL - timedelta(microseconds=1), NOW + TTL, NOW + 2 * TTL])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("decide"), st.booleans(), moments),
        st.tuples(st.just("use"), st.one_of(st.just(CALL), others), moments),
    ),
    max_size=8,
)


@pytest.fixture
def tickets(database_url: str) -> Iterator[Tickets]:
    database = open_database(database_url)
    yield Tickets(database, TTL)
    database.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_a_ticket_is_used_at_most_once_by_its_call_alone_while_it_lives(
    tickets: Tickets, steps: list[tuple[str, Any, datetime]]
) -> None:
    token, state = tickets.issue("confirm", CALL, NOW).token, "pending"
    for what, how, now in steps:
        if what == "decide":
            decided = tickets.decide(token, approve=how, tenant="acme", by="boss", now=now)
            waits = state == "pending" and now < NOW + TTL
            assert (decided is not None) == waits
            state = ("approved" if how else "refused") if waits else state
        else:
            refusal = tickets.use(token, "confirm", how, now)
            good = state == "approved" and how == CALL and now < NOW + TTL
            assert (refusal is None) == good
            state = "used" if good else state

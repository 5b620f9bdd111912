"""Wire names: accepted by the APIs, one to one, and independent of the rest of the catalog."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.wire_names import wire_name, wire_names

ACCEPTED = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@pytest.mark.parametrize(
    ("tool_id", "name"),
    [
        ("echo", "echo"),
        ("forge.list_issues", "forge__list_issues"),
        ("a-b.c.d_e", "a-b__c__d_e"),
    ],
)
def test_ordinary_ids_stay_readable(tool_id: str, name: str) -> None:
    assert wire_name(tool_id) == name


@pytest.mark.parametrize("tool_id", ["a b", "поиск.файлов", "x" * 65, "a__b", "a_.b", "a._b", "..", "a/b.c", "\u200b"])
def test_other_ids_get_a_hash_and_are_accepted(tool_id: str) -> None:
    assert ACCEPTED.fullmatch(wire_name(tool_id))
    assert re.search(r"--[0-9a-f]{16}$", wire_name(tool_id))


def test_an_id_cannot_take_the_wire_name_of_another() -> None:
    for victim in ("a b", "a.b", "a__b", "a_.b"):
        assert wire_name(wire_name(victim)) != wire_name(victim), victim


ids = st.one_of(st.text(alphabet="ab_.-", min_size=1, max_size=8), st.text(min_size=1, max_size=80))


@settings(max_examples=200, deadline=None)
@given(st.sets(ids, max_size=40))
def test_every_id_gets_its_own_accepted_name_whatever_else_is_in_the_catalog(tool_ids: set[str]) -> None:
    tool_ids |= {wire_name(tool_id) for tool_id in tool_ids}
    names = wire_names(sorted(tool_ids))
    assert len(set(names.values())) == len(tool_ids)
    for tool_id, name in names.items():
        assert ACCEPTED.fullmatch(name)
        assert wire_names([tool_id]) == {tool_id: name}

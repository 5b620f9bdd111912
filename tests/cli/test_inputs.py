"""What a person types or points at is read whole, or refused with the file and the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from workshop import write_json

from data.context import Caller
from data.errors import InputError
from serving.bundle import load_bundle
from toolcrib.inputs import read_bundle, read_caller, read_slice, read_subgoal


def test_without_a_file_the_caller_holds_nothing() -> None:
    assert read_caller(None) == Caller()


def test_a_caller_file_gives_the_caller(tmp_path: Path) -> None:
    path = write_json(tmp_path / "caller.json", {"principal": "ann", "scopes": ["b", "a"], "recent": {"plan": "pay"}})
    caller = read_caller(path)
    assert (caller.principal, caller.scopes, caller.recent.plan) == ("ann", ("a", "b"), "pay")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"scopes": "payments"}, "scopes"),
        ({"scopes": ["payments", 3]}, "scopes.1"),
        ({"cost_ceiling_usd": -1}, "cost_ceiling_usd"),
        ({"cost_ceiling_usd": "3"}, "cost_ceiling_usd"),
        ({"recent": {"turns": "hello"}}, "recent.turns"),
        ({"allowed_tool": ["a"]}, "allowed_tool"),
    ],
)
def test_a_wrong_field_of_the_caller_is_named(tmp_path: Path, fields: dict[str, Any], field: str) -> None:
    path = write_json(tmp_path / "caller.json", fields)
    with pytest.raises(InputError) as caught:
        read_caller(path)
    assert f"{path}, field '{field}'" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{\n"principal": ann}', "line 2: broken JSON"),
        (b'["ann"]', "expected a JSON object, found list"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_caller_file_that_is_no_object_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "caller.json").write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_caller(tmp_path / "caller.json")


def test_a_missing_caller_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nobody\.json: cannot be read: No such file"):
        read_caller(tmp_path / "nobody.json")


def test_the_word_none_is_the_untrained_base_model_and_anything_else_a_folder(tmp_path: Path) -> None:
    base = read_bundle("none")
    assert base is not None, "the base weights are part of the training extra, which the tests run with"
    assert not load_bundle(base).usage.tools, "it has no past"
    assert read_bundle(str(tmp_path)) == tmp_path
    with pytest.raises(InputError, match="no bundle folder"):
        read_bundle(str(tmp_path / "missing"))


@pytest.mark.parametrize(("read", "mutation"), [(True, False), (False, True), (None, None)])
def test_a_request_that_reads_does_not_mutate(read: bool | None, mutation: bool | None) -> None:
    assert read_subgoal("find it", read, "").mutation is mutation


def test_operations_are_split_at_commas() -> None:
    assert read_subgoal("find it", None, "search, list,,").operations == ("search", "list")


@pytest.mark.parametrize(("goal", "said"), [("  ", "is blank"), ("x" * 20_001, "20000"), ("\udcff", "goal|UTF-8|JSON")])
def test_a_goal_that_cannot_be_one_is_refused(goal: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_subgoal(goal, None, "")


def test_a_file_that_is_no_slice_names_the_missing_field(tmp_path: Path) -> None:
    path = write_json(tmp_path / "slice.json", {"request_id": "r"})
    with pytest.raises(InputError, match=r"slice\.json, field 'catalog_version': is not a slice"):
        read_slice(path)

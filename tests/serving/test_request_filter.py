"""The request filter: the effect of a tool against what is known of the request."""

from __future__ import annotations

import numpy as np
import pytest

from data.cards import Risk
from data.context import Subgoal
from serving.request_filter import asks_for_destruction, request_filter

IDS = ("look", "put", "raze")
RISK = np.array([Risk.READ_ONLY, Risk.WRITE, Risk.DESTRUCTIVE], dtype=np.int8)


def dropped(mutation: bool | None, operations: tuple[str, ...] = ()) -> dict[str, str]:
    result = request_filter(RISK, Subgoal(goal="g", mutation=mutation, operations=operations))
    assert result.keep.tolist() == [tool_id not in result.dropped(IDS) for tool_id in IDS]
    return result.dropped(IDS)


def test_a_read_request_leaves_reading_tools_only() -> None:
    assert dropped(False) == {"put": "read_only_request", "raze": "read_only_request"}


def test_a_read_request_stays_one_whatever_its_operations_say() -> None:
    assert dropped(False, ("delete",)) == dropped(False)


def test_a_write_request_drops_reading_tools_and_keeps_every_writer_when_operations_are_unknown() -> None:
    assert dropped(True) == {"look": "write_request"}


def test_a_write_that_only_adds_does_not_get_destructive_tools() -> None:
    assert dropped(True, ("create", "send")) == {"look": "write_request", "raze": "risk_above_need"}


def test_one_destructive_operation_is_enough_to_keep_destructive_tools() -> None:
    assert dropped(True, ("create", "delete")) == {"look": "write_request"}


def test_an_unknown_mutation_drops_nothing_even_with_operations() -> None:
    assert dropped(None, ("create",)) == {}


@pytest.mark.parametrize(
    "operation",
    ["delete", "DELETE", "file.remove", "deleteRows", "Deleting old rows", "dropped", "overwrites", "update", "删除"],
)
def test_changing_or_removing_is_recognised_in_every_form(operation: str) -> None:
    assert asks_for_destruction(operation)


@pytest.mark.parametrize("operation", ["create", "send_message", "adds", "list", "undeleted?", "settings", ""])
def test_adding_and_reading_are_not_taken_for_destruction(operation: str) -> None:
    assert not asks_for_destruction(operation)

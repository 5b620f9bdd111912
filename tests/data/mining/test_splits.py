"""Splits: no request and no trace on both sides, and cold tools nowhere in training."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mining_log import START, at, call, menu, mined

from data.errors import InputError
from data.mining.goals import normal_goal
from data.mining.splits import COMMON_TRACES, Request, Splits, assign_splits, requests_of, select_rows

TIMED: list[Request] = [(f"t{n:03}", at(n), f"goal {n}") for n in range(100)]
UNTIMED: list[Request] = [(trace_id, None, goal) for trace_id, _, goal in TIMED]


def held_out(splits: Splits) -> set[str]:
    return {trace_id for trace_id, side in splits.side.items() if side == "valid"}


def test_with_times_the_latest_traces_are_held_out() -> None:
    assert held_out(assign_splits(TIMED, [])) == {f"t{n:03}" for n in range(80, 100)}


def test_a_trace_is_as_old_as_its_first_step_and_never_cut_in_two() -> None:
    splits = assign_splits([*TIMED, ("t000", at(500), "a late step")], [])
    assert splits.side["t000"] == "train"


def test_without_times_a_hash_holds_out_the_share_and_the_seed_changes_which() -> None:
    one, same, other = (held_out(assign_splits(UNTIMED, [], seed=seed)) for seed in (1, 1, 2))
    assert len(one) == len(other) == 20
    assert one == same != other


def test_one_trace_without_a_time_makes_the_split_go_by_hash() -> None:
    assert held_out(assign_splits([*TIMED, ("t100", None, "x")], [])) != {f"t{n:03}" for n in range(81, 101)}


def test_traces_that_ask_the_same_stay_together() -> None:
    again: Request = ("t099", at(99), " GOAL  3")
    splits = assign_splits([*TIMED, again], [])
    assert splits.side["t003"] == splits.side["t099"] == "train"
    assert len(held_out(splits)) == 20


def test_a_phrase_that_very_many_traces_share_ties_nothing_together() -> None:
    phrase: list[Request] = [(f"t{n:03}", at(n), "continue") for n in range(0, 100, 100 // COMMON_TRACES)]
    splits = assign_splits([*TIMED, *phrase], [])
    assert held_out(splits) == {f"t{n:03}" for n in range(80, 100)}
    asked = pa.table({"trace_id": ["t099", "t099", "t001"], "goal": ["continue", "goal 99", "continue"]})
    assert select_rows(asked, splits, "valid", tool_columns=())["goal"].to_pylist() == ["goal 99"]
    assert select_rows(asked, splits, "train", tool_columns=())["trace_id"].to_pylist() == ["t001"]


def test_the_order_of_the_requests_does_not_matter() -> None:
    assert assign_splits(reversed(TIMED), ["b", "a"]) == assign_splits(TIMED, ["a", "b", "a"])


def test_times_with_and_without_a_zone_can_be_compared() -> None:
    mixed = [("a", START.replace(tzinfo=None), "x"), ("b", START + timedelta(days=1), "y")]
    assert held_out(assign_splits(mixed, [], valid_share=0.5)) == {"b"}


def test_cold_is_the_share_of_the_tools_that_was_asked_for() -> None:
    tools = [f"tool.{n}" for n in range(50)]
    one, same, other = (assign_splits([], tools, cold_share=0.2, seed=seed).cold for seed in (1, 1, 2))
    assert len(one) == len(other) == 10
    assert one == same != other
    assert assign_splits([], tools, cold_share=0.0).cold == frozenset()


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="valid_share"):
        assign_splits([], [], valid_share=share)
    with pytest.raises(InputError, match="cold_share"):
        assign_splits([], [], cold_share=share)


def test_training_sees_no_cold_tool_on_either_side_of_an_example() -> None:
    splits = Splits({"t": "train", "v": "valid"}, frozenset({"cold"}), frozenset({"a", "b"}), frozenset({"c"}))
    table = pa.table(
        {
            "trace_id": ["t", "t", "t", "v", "v", "card:cold", "card:warm", "card:warm"],
            "goal": ["a", "b", "b", "c", "a", "z", "y", "c"],
            "tool_id": ["warm", "warm", "cold", "cold", "warm", "cold", "warm", "warm"],
        }
    )
    train = select_rows(table, splits, "train").to_pylist()
    assert [(row["goal"], row["tool_id"]) for row in train] == [("a", "warm"), ("b", "warm"), ("y", "warm")]
    valid = select_rows(table, splits, "valid").to_pylist()
    assert [(row["goal"], row["tool_id"]) for row in valid] == [("c", "cold")]
    cold = select_rows(table, splits, "cold").to_pylist()
    assert [(row["goal"], row["tool_id"]) for row in cold] == [("c", "cold"), ("z", "cold")]


def test_preferences_with_a_cold_tool_are_not_for_training() -> None:
    splits = Splits({"t": "train"}, frozenset({"cold"}), frozenset({"a"}), frozenset())
    table = pa.table(
        {"trace_id": ["t"] * 3, "goal": ["a"] * 3, "better": ["x", "cold", "x"], "worse": ["y", "y", "cold"]}
    )
    kept = select_rows(table, splits, "train", tool_columns=("better", "worse"))
    assert kept.to_pylist() == [{"trace_id": "t", "goal": "a", "better": "x", "worse": "y"}]


def test_mined_tables_split_without_a_request_on_both_sides() -> None:
    log = [
        call(
            "mail.send",
            trace_id=f"t{n:02}",
            goal=f"ask {n % 13}",
            ts=at(n),
            tenant=f"{n % 3}",
            menu=menu("mail.send", "maps.route"),
        )
        for n in range(39)
    ]
    mining = mined([*log, call(None, "unknown", trace_id="none", goal="brew", ts=at(50))])
    splits = assign_splits(requests_of(mining.examples, mining.no_tool), ["mail.send"], cold_share=0.0)
    train, valid = (select_rows(mining.examples, splits, side) for side in ("train", "valid"))
    assert train.num_rows > 0
    assert splits.side["none"] == "valid"
    assert not {normal_goal(g) for g in train["goal"].to_pylist()} & {normal_goal(g) for g in valid["goal"].to_pylist()}


moments = st.none() | st.integers(0, 20).map(at)
requests = st.tuples(st.integers(0, 30).map(str), moments, st.integers(0, 40).map(lambda n: f"Goal  {n}"))


@given(st.lists(requests, max_size=60), st.floats(0, 0.9), st.integers(0, 3))
@settings(deadline=None)
def test_whatever_the_log_no_request_is_on_both_sides(
    asked: list[tuple[str, datetime | None, str]], share: float, seed: int
) -> None:
    splits = assign_splits(asked, [], valid_share=share, seed=seed)
    assert set(splits.side) == {trace_id for trace_id, _, _ in asked}
    assert len(held_out(splits)) <= share * len(splits.side) + 1e-6
    assert not splits.train_goals & splits.valid_goals
    assert splits.train_goals | splits.valid_goals == {normal_goal(goal) for _, _, goal in asked}

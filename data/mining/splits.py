"""Splits: which traces are held out to measure on, which tools are held out of training altogether."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from data.errors import InputError
from data.mining.goals import normal_goal

Side = Literal["train", "valid"]
Request = tuple[str, datetime | None, str]
"""(trace_id, ts, goal) of one example or one no-tool request."""

COMMON_SHARE = 0.05
COMMON_TRACES = 20
"""A goal asked by more than this share of the traces, and by this many, is a phrase and not a request."""


@dataclass(frozen=True)
class Splits:
    """`side` of every trace, the `cold` tools, and the normalised goals that are asked on each side."""

    side: dict[str, Side]
    cold: frozenset[str]
    train_goals: frozenset[str]
    valid_goals: frozenset[str]


def requests_of(*tables: pa.Table) -> list[Request]:
    """The requests of mined tables (examples, no_tool), without those made from card text: nobody asked them."""
    requests: list[Request] = []
    for table in tables:
        asked = table
        if "reason" in table.column_names:
            asked = table.filter(pc.field("reason") != "card_text_positive")
        distinct = asked.select(["trace_id", "ts", "goal"]).group_by(["trace_id", "ts", "goal"]).aggregate([])
        requests += zip(*(distinct[name].to_pylist() for name in ("trace_id", "ts", "goal")), strict=True)
    return requests


def assign_splits(
    requests: Iterable[Request],
    tools: Iterable[str],
    *,
    valid_share: float = 0.2,
    cold_share: float = 0.1,
    seed: int = 0,
) -> Splits:
    """Put every trace on one side, and choose the cold tools.

    By time if every trace has one: the latest traces are valid. Otherwise by a hash of the trace id with `seed`.
    Traces that ask the same normalised goal stay together, by the earliest of them, so that no request is on both
    sides; `valid_share` of the traces is therefore an upper bound. A phrase that very many traces share, like a bare
    "continue", ties nothing together (COMMON_SHARE); `select_rows` keeps it out of the valid side instead.

    Cold are `cold_share` of the distinct `tools` (usually those with a positive), rounded, by a hash of the tool id
    with `seed`. A pure function of the sets given: order and repeats do not matter.

    Raises InputError for a share outside [0, 1).
    """
    for name, share in (("valid_share", valid_share), ("cold_share", cold_share)):
        if not 0.0 <= share < 1.0:
            raise InputError(f"{share} is not such a share", field=name, hint="give a number from 0 to below 1")
    times: dict[str, datetime | None] = {}
    asked: dict[str, set[str]] = defaultdict(set)
    for trace_id, ts, goal in requests:
        known = times.get(trace_id)
        times[trace_id] = min((t for t in (known, ts) if t is not None), key=_instant, default=None)
        asked[normal_goal(goal)].add(trace_id)
    side = _sides(times, asked, int(valid_share * len(times) + 1e-9), seed)
    return Splits(
        side=side,
        cold=_cold(set(tools), cold_share, seed),
        train_goals=frozenset(goal for goal, traces in asked.items() if any(side[t] == "train" for t in traces)),
        valid_goals=frozenset(goal for goal, traces in asked.items() if any(side[t] == "valid" for t in traces)),
    )


def select_rows(
    table: pa.Table,
    splits: Splits,
    side: Literal["train", "valid", "cold"],
    *,
    tool_columns: Sequence[str] = ("tool_id",),
) -> pa.Table:
    """The rows of a mined table that belong to one side, in their order.

    train  rows of train traces, and card text, unless they name a cold tool in a `tool_columns` or ask what only
           valid traces ask
    valid  rows of valid traces, cold tools too, unless a train trace asks the same
    cold   rows of any trace that name a cold tool and ask what training is not asked: what a model knows of tools
           that it has never seen. `train` has no row of them

    `tool_columns` is ("better", "worse") for preferences, and () for no-tool requests.
    """
    trained: set[str] = set()
    if side == "cold":
        train = select_rows(table, splits, "train", tool_columns=tool_columns)
        trained = {normal_goal(goal) for goal in train["goal"].to_pylist()}
    keep = []
    for row in table.select(["trace_id", "goal", *tool_columns]).to_pylist():
        goal = normal_goal(row["goal"])
        cold = any(row[column] in splits.cold for column in tool_columns)
        of = splits.side.get(row["trace_id"], "train")
        if side == "train":
            keep.append(of == "train" and not cold and (goal in splits.train_goals or goal not in splits.valid_goals))
        elif side == "valid":
            keep.append(of == "valid" and goal not in splits.train_goals)
        else:
            keep.append(cold and goal not in trained)
    return table.filter(pa.array(keep, type=pa.bool_()))


def _sides(
    times: Mapping[str, datetime | None], asked: Mapping[str, set[str]], room: int, seed: int
) -> dict[str, Side]:
    groups = _tied(times, asked)
    by_time = all(ts is not None for ts in times.values())
    if by_time:
        groups.sort(key=lambda group: min((_instant(times[t]), t) for t in group), reverse=True)
    else:
        groups.sort(key=lambda group: _digest(seed, "trace", group[0]))
    side: dict[str, Side] = dict.fromkeys(sorted(times), "train")
    held = 0
    for group in groups:
        if held + len(group) <= room:
            held += len(group)
            side.update(dict.fromkeys(group, "valid"))
        elif by_time and held:
            break  # going on would hold out traces that are older than what training sees
    return side


def _tied(times: Mapping[str, datetime | None], asked: Mapping[str, set[str]]) -> list[list[str]]:
    """The traces in groups that share requests, each sorted, in the order of their first ids."""
    leader = {trace_id: trace_id for trace_id in times}

    def find(trace_id: str) -> str:
        while leader[trace_id] != trace_id:
            leader[trace_id] = leader[leader[trace_id]]
            trace_id = leader[trace_id]
        return trace_id

    for traces in asked.values():
        if len(traces) >= COMMON_TRACES and len(traces) > COMMON_SHARE * len(times):
            continue
        first, *others = sorted(traces)
        for other in others:
            a, b = sorted((find(first), find(other)))
            leader[b] = a
    groups: dict[str, list[str]] = defaultdict(list)
    for trace_id in sorted(times):
        groups[find(trace_id)].append(trace_id)
    return list(groups.values())


def _cold(tools: set[str], share: float, seed: int) -> frozenset[str]:
    ranked = sorted(tools, key=lambda tool_id: (_digest(seed, "tool", tool_id), tool_id))
    return frozenset(ranked[: round(share * len(ranked))])


def _digest(seed: int, what: str, name: str) -> str:
    return hashlib.sha256(f"{seed} {what} {name}".encode("utf-8", "surrogatepass")).hexdigest()


def _instant(ts: datetime | None) -> datetime:
    """A time that can be compared: one without a zone is UTC."""
    if ts is None:
        return datetime.max.replace(tzinfo=UTC)
    return ts if ts.tzinfo is not None else ts.replace(tzinfo=UTC)

"""Decisions: mined rows gathered by request, as the models learn from them."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from data.catalog import Catalog
from data.mining.goals import normal_goal
from data.mining.miner import Mined
from data.mining.splits import assign_splits, requests_of

Side = Literal["train", "valid", "cold"]

_PASSED = "shown_not_chosen"
_CARD_TEXT = "card_text_positive"


@dataclass(frozen=True)
class Decision:
    """One request: which tools served it, which did not, with what weight; `tools` empty = nothing fitted.

    `group` is shared by all decisions that ask the same. `side`: "train" teaches the encoders, "valid" and "cold" (a
    tool that no fine-tuning has seen) the heads. `asked` False: made from card text, nobody asked it. `menu_known`: the
    log says what was on the menu, so that what is neither in `tools` nor in `wrong` was not there.
    """

    goal: str
    group: int
    tenant: str
    ts: datetime | None
    tools: tuple[tuple[str, float], ...]
    wrong: tuple[tuple[str, float], ...]
    previous: str | None
    side: Side
    asked: bool
    menu_known: bool = False


def gather_decisions(mined: Mined, *, valid_share: float, cold_share: float, seed: int) -> list[Decision]:
    """All decisions, in the order of the mined rows; no-tool requests last."""
    rows = mined.examples.to_pylist()
    nothing = mined.no_tool.to_pylist()
    splits = assign_splits(
        requests_of(mined.examples, mined.no_tool),
        {row["tool_id"] for row in rows if row["label"] > 0},
        valid_share=valid_share,
        cold_share=cold_share,
        seed=seed,
    )
    together: dict[tuple[str, str], list[dict[str, object]]] = defaultdict(list)
    for row in rows:
        together[row["trace_id"], row["goal"]].append(row)
    groups: dict[tuple[str, str], int] = {}
    previous = _previous_tools(rows)
    made = []
    for (trace_id, goal), of in together.items():
        first = of[0]
        tools = tuple((str(r["tool_id"]), float(str(r["weight"]))) for r in of if r["label"] == 1.0)
        if not tools:
            continue
        asked = any(r["reason"] != _CARD_TEXT for r in of)
        normal = normal_goal(goal)
        side: Side = splits.side.get(trace_id, "train") if asked else "train"
        if side == "valid" and normal in splits.train_goals:
            side = "train"
        if any(tool in splits.cold for tool, _ in tools):
            if not asked:
                continue
            side = "cold"
        made.append(
            Decision(
                goal=goal,
                group=groups.setdefault((str(first["tenant"]), normal), len(groups)),
                tenant=str(first["tenant"]),
                ts=first["ts"] if isinstance(first["ts"], datetime) else None,
                tools=tools,
                wrong=tuple(
                    (str(r["tool_id"]), float(str(r["weight"])))
                    for r in of
                    if r["label"] == 0.0 and str(r["tool_id"]) not in splits.cold
                ),
                previous=previous.get((trace_id, goal)),
                side=side,
                asked=asked,
                menu_known=any(r["reason"] == _PASSED for r in of),
            )
        )
    for row in nothing:
        group = groups.setdefault((row["tenant"], normal_goal(row["goal"])), len(groups))
        side = splits.side.get(row["trace_id"], "train")
        made.append(Decision(row["goal"], group, row["tenant"], row["ts"], (), (), None, side, True))
    return made


@dataclass(frozen=True)
class Ended:
    """How a call of `tool` for `goal` ended; `group` is that of the decisions that ask the same."""

    goal: str
    group: int
    tenant: str
    ts: datetime | None
    tool: str
    won: bool


def gather_history(mined: Mined, decisions: Sequence[Decision]) -> list[Ended]:
    """The ends of calls, in the order of the mined rows; none where no call failed, since then they tell nothing."""
    rows = mined.history.to_pylist()
    if all(row["won"] for row in rows):
        return []
    groups = {(decision.tenant, normal_goal(decision.goal)): decision.group for decision in decisions}
    start = 1 + max(groups.values(), default=-1)
    new: dict[tuple[str, str], int] = {}
    ended = []
    for row in rows:
        asked = (row["tenant"], normal_goal(row["goal"]))
        group = groups[asked] if asked in groups else new.setdefault(asked, start + len(new))
        ended.append(Ended(row["goal"], group, row["tenant"], row["ts"], row["tool_id"], row["won"]))
    return ended


def times(weight: float, draw: random.Random) -> int:
    """How often an example of this weight is taken: its whole part, and once more with the chance of the rest.

    So a sampler that knows no weights follows them in expectation, the inverse propensities within them too.
    """
    return int(weight) + (draw.random() < weight % 1.0)


def _previous_tools(rows: list[dict[str, object]]) -> Mapping[tuple[str, str], str]:
    """(trace, goal) -> the tool that served the step before it in the same trace."""
    steps: dict[str, list[tuple[int, str, str]]] = defaultdict(list)
    for row in rows:
        if row["label"] == 1.0 and row["reason"] != _CARD_TEXT:
            steps[str(row["trace_id"])].append((int(str(row["step"])), str(row["goal"]), str(row["tool_id"])))
    before: dict[tuple[str, str], str] = {}
    for trace_id, of in steps.items():
        of.sort()
        for place, (_, goal, _) in enumerate(of):
            earlier = [tool for _, other, tool in of[:place] if other != goal]
            if earlier:
                before.setdefault((trace_id, goal), earlier[-1])
    return before


def same_names(catalog: Catalog) -> dict[str, frozenset[str]]:
    """Tool id -> all tools of the catalog with its name: likely to do the same, so never each other's negatives."""
    by_name: dict[str, set[str]] = defaultdict(set)
    for card in catalog:
        by_name[card.name].add(card.tool_id)
    return {card.tool_id: frozenset(by_name[card.name]) for card in catalog}

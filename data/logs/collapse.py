"""Collapsing: the same call made again, as a retry or in a loop, is one line with the best that came of it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from data.mining.goals import normal_goal
from data.traces import Trace

_BEST_FIRST = {
    ("success", "none"): 0,
    ("success", "empty_result"): 1,
    ("failure", "validation"): 2,
    ("failure", "tool_error"): 3,
    ("failure", "wrong_tool"): 3,
}
_OTHER_FAILURE, _UNKNOWN = 4, 5


def collapsed(rows: Sequence[Trace]) -> list[Trace]:
    """The lines of one trace, in order, without repeats: a tool called again with the same arguments.

    Right after one another such calls are a retry, whatever was said in between; further apart, or where the log has no
    arguments, they are a loop if the goal is the same too. The first line keeps its place, its words and its time;
    outcome, error class, latency and cost are those of the call that went best. Lines without a call are never folded.
    """
    kept: list[Trace] = []
    place: dict[tuple[str, str, str], int] = {}
    before: tuple[str, str] | None = None
    at = -1
    for row in rows:
        if row.tool_id is None:
            kept.append(row)
            before = None
            continue
        call = (row.tool_id, json.dumps(row.arguments, sort_keys=True, default=str))
        key = (*call, normal_goal(row.goal))
        if call != before or row.arguments is None:
            at = place.get(key, -1)
        if at < 0:
            at = len(kept)
            kept.append(row)
        elif _standing(row) < _standing(kept[at]):
            better = {name: getattr(row, name) for name in ("outcome", "error_class", "latency_ms", "cost_usd")}
            kept[at] = kept[at].model_copy(update=better)
        place.setdefault(key, at)
        before = call
    return kept


def _standing(row: Trace) -> int:
    if row.outcome == "unknown":
        return _UNKNOWN
    return _BEST_FIRST.get((row.outcome, row.error_class), _OTHER_FAILURE)

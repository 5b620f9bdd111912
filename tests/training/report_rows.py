"""Answers made by hand for the tests of the report: a query, what was retrieved, ranked and shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from data.context import Subgoal
from data.queries import Query
from serving.slice import Abstention, MenuEntry, Outcome, Slice, StageRecord
from training.answers import Answer


def answer(
    gold: Sequence[str] = (),
    ranking: Mapping[str, float] | None = None,
    *,
    shown: int = 2,
    text: str = "do it",
    outcome: Outcome = "menu",
    fit: float | None = 0.9,
    dropped: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    alternatives: Mapping[str, tuple[str, ...]] | None = None,
    warm: bool = True,
    qid: str = "q",
) -> Answer:
    """`ranking`: candidates with their relevance, best first; the first `shown` are on the menu unless turned away."""
    ranked = dict(ranking or {})
    turned = outcome in ("ask", "missing_capability")
    menu = () if turned else tuple(list(ranked)[:shown])
    record = (
        StageRecord(stage="mask", kept=9, dropped=dict(dropped or {})),
        StageRecord(stage="retrieve", kept=len(ranked), scores=ranked),
        StageRecord(stage="relevance", kept=len(ranked), scores=ranked),
        StageRecord(stage="menu", kept=len(menu), dropped=dict(limits or {})),
    )
    slice_ = Slice(
        request_id="r",
        catalog_version="c",
        bundle_version="b",
        policy_version="p",
        caller_key="k",
        subgoal=Subgoal(goal=text),
        query=text,
        menu=tuple(
            MenuEntry(tool_id=tool, position=at, rank=at, relevance=ranked[tool]) for at, tool in enumerate(menu)
        ),
        ranking=tuple(ranked),
        abstention=Abstention(outcome=outcome, fit=fit),
        record=record,
        timings_ms={"query": 1.0, "menu": 2.0},
    )
    query = Query(qid=qid, text=text, gold=tuple(gold), gold_alt=dict(alternatives or {}))
    return Answer(query, slice_, warm)

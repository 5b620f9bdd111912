"""Several subgoals in one request: each is retrieved and judged by itself, and one merged menu answers them all.

The menu keeps the limits that any menu keeps (tools, tokens, core tools, registry order). Each subgoal gives its best
tool first, so that no step crowds out another; the rest follows by the chance to serve any of the steps. A tool that
serves several steps is shown once. Where nothing fits one step, that step gives nothing, and the others stand.

The text that steps were split from is judged beside them: a step alone often no longer says what it is about.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import numpy as np

from data.context import MAX_GOAL_CHARACTERS, MAX_SUBGOALS, Caller, Subgoal
from data.errors import InputError
from serving.judged import Judged, Run
from serving.missing import told_what_is_missing
from serving.retrieval import serving_any
from serving.selector import Selector
from serving.slice import Abstention, MenuEntry, Part, Slice, StageRecord, Verdict

_STRICTER: tuple[Verdict, ...] = ("allow", "dry_run", "confirm", "deny")
_GOAL_CHARACTERS = 80


def select_several(
    selector: Selector,
    subgoals: Sequence[Subgoal | str],
    caller: Caller | None = None,
    *,
    whole: Subgoal | None = None,
    request_id: str = "",
    max_tools: int | None = None,
    token_budget: int | None = None,
) -> Slice:
    """Decide which tools to show for several subgoals of one caller; for a single one, what `selector.select` decides.

    `whole`: the request that the subgoals were split from. Its candidates take part as a step's do, but it is no part
    of the slice, and what it lacks is nobody's advice; the slice's own goal is its.

    `parts` of the slice has each subgoal's own ranking, relevance and abstention. The verdict on a tool is the
    strictest of those for the subgoals that it is shown for. The slice's own subgoal reads, or writes, where all of
    them do, and is open otherwise.

    Raises InputError for no subgoal, more than `MAX_SUBGOALS`, texts that are together longer than one goal may be, and
    whatever `select` refuses.
    """
    if len(subgoals) == 1:
        return selector.select(
            subgoals[0], caller, request_id=request_id, max_tools=max_tools, token_budget=token_budget
        )
    _check(subgoals)
    limits, request_id, run = selector.limits(max_tools, token_budget), request_id or uuid.uuid4().hex, Run()
    down = selector.down  # one moment for all
    known: dict[Subgoal | str, Judged] = {}
    for subgoal in [*subgoals, *([] if whole is None else [whole])]:
        if subgoal not in known:
            known[subgoal] = told_what_is_missing(selector, selector.judge(subgoal, caller, down=down), down)
    judged = [known[subgoal] for subgoal in subgoals]
    distinct = list(known.values())
    _gather_runs(run, distinct)
    with run.stage("menu"):
        menu = selector.menu(distinct, limits, request_id, run)
    with run.stage("policy"):
        entries = tuple(_strictest(selector, entry, distinct) for entry in menu.entries)
    shown = {entry.tool_id for entry in entries}
    ids = selector.catalog.ids
    ranking = serving_any([one.rows for one in distinct], [one.relevant for one in distinct], len(ids))
    parts = tuple(_part(one, ids, shown) for one in judged)
    return Slice(
        request_id=request_id,
        catalog_version=selector.versions.catalog,
        bundle_version=selector.versions.bundle,
        policy_version=selector.versions.policy,
        caller_key=judged[0].caller_key,
        subgoal=_together([one.goal for one in distinct], whole),
        query=known[whole].query if whole is not None else "\n".join(one.query for one in distinct),
        menu=entries,
        ranking=tuple(ids[row] for row in ranking.tolist()),
        abstention=_abstention(judged, distinct),
        degradations=tuple(dict.fromkeys(run.degradations)),
        record=tuple(run.record),
        parts=parts,
        timings_ms=run.timings,
    ).sealed()


def subgoals_of(steps: Sequence[str], request: Subgoal) -> tuple[Subgoal, ...]:
    """Steps as subgoals of the request that they were split from; a single one is the request itself.

    A request that only reads has steps that only read. One that writes has steps of which some may read: not known.
    """
    if len(steps) == 1:
        return (request,)
    mutation = False if request.mutation is False else None
    return tuple(Subgoal(goal=step, mutation=mutation, required_access=request.required_access) for step in steps)


def _check(subgoals: Sequence[Subgoal | str]) -> None:
    if not subgoals:
        raise InputError("there is no subgoal", field="subgoals", hint="give at least one step")
    if len(subgoals) > MAX_SUBGOALS:
        raise InputError(
            f"there are {len(subgoals)} subgoals", field="subgoals", hint=f"give at most {MAX_SUBGOALS} a request"
        )
    said = sum(len(one if isinstance(one, str) else one.goal) + 1 for one in subgoals)
    if said > MAX_GOAL_CHARACTERS:
        raise InputError(
            f"the subgoals have {said} characters together",
            field="subgoals",
            hint=f"at most {MAX_GOAL_CHARACTERS}: give steps, not transcripts",
        )


def _together(goals: Sequence[Subgoal], whole: Subgoal | None) -> Subgoal:
    """All subgoals as one. Only where every one of them reads (or writes) is that known of the whole."""
    mutations = {goal.mutation for goal in goals}
    return Subgoal(
        goal=whole.goal if whole is not None else "\n".join(goal.goal for goal in goals),
        operations=tuple(dict.fromkeys(word for goal in goals for word in goal.operations)),
        entities=tuple(dict.fromkeys(word for goal in goals for word in goal.entities)),
        mutation=mutations.pop() if len(mutations) == 1 else None,
        required_access=tuple(dict.fromkeys(name for goal in goals for name in goal.required_access)),
    )


def _strictest(selector: Selector, entry: MenuEntry, judged: Sequence[Judged]) -> MenuEntry:
    """The entry with the strictest verdict over the subgoals that it may serve; over all, if it was not asked for."""
    row = selector.catalog.row[entry.tool_id]
    serves = [one for one in judged if one.stands and (row in one.rows or (entry.explored and one.permitted[row]))]
    verdicts = [selector.with_verdict(entry, one) for one in serves or judged]
    return max(verdicts, key=lambda made: _STRICTER.index(made.verdict))


def _part(one: Judged, ids: Sequence[str], shown: set[str]) -> Part:
    ranking = [ids[row] for row in one.rows.tolist()]
    relevance = zip(ranking, one.relevant.tolist(), strict=True)
    return Part(
        subgoal=one.goal,
        query=one.query,
        menu=tuple(tool for tool in ranking if tool in shown) if one.stands else (),
        relevance={tool: value for tool, value in relevance if tool in shown and not np.isnan(value)},
        ranking=tuple(ranking),
        abstention=one.stance,
    )


def _abstention(judged: Sequence[Judged], everything: Sequence[Judged]) -> Abstention:
    """What becomes of it all: it stands where anything does; the advice names the steps that nothing fits."""
    outcomes = [one.stance.outcome for one in everything]
    outcome = next(name for name in ("menu", "widen", "ask", "missing_capability") if name in outcomes)
    advice = [
        f'For "{_short(one.goal.goal)}": {one.stance.advice}'
        for one in dict.fromkeys(judged)
        if one.stance.outcome != "menu" and one.stance.advice
    ]
    missing = dict.fromkeys(name for one in judged for name in one.stance.missing_connections)
    return Abstention(outcome=outcome, advice=" ".join(advice), missing_connections=tuple(missing))


def _short(goal: str) -> str:
    folded = " ".join(goal.split())
    return folded if len(folded) <= _GOAL_CHARACTERS else folded[: _GOAL_CHARACTERS - 1] + "…"


def _gather_runs(run: Run, judged: Sequence[Judged]) -> None:
    """The records of several judgements as those of one: what any subgoal kept is kept, scores are the best."""
    for one in judged:
        run.degradations.extend(one.run.degradations)
        for stage, took in one.run.timings.items():
            run.timings[stage] = run.timings.get(stage, 0.0) + took
    stages = list(dict.fromkeys(record.stage for one in judged for record in one.run.record))
    for stage in stages:
        records = [record for one in judged for record in one.run.record if record.stage == stage]
        run.record.append(records[0] if stage == "mask" else _merged(stage, records, judged))


def _merged(stage: str, records: Sequence[StageRecord], judged: Sequence[Judged]) -> StageRecord:
    dropped_by_all = set.intersection(*(set(record.dropped) for record in records))
    scores: dict[str, float] = {}
    for record in records:
        for tool, score in record.scores.items():
            scores[tool] = max(score, scores.get(tool, score))
    permitted = np.logical_or.reduce([one.permitted for one in judged])
    kept = int(permitted.sum()) if stage == "filter" else len(scores)
    dropped = {tool: rule for tool, rule in records[0].dropped.items() if tool in dropped_by_all}
    return StageRecord(stage=stage, kept=kept, dropped=dropped, scores=scores)

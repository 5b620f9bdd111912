"""Replayed: logged decisions through a selector, as the arrays from which its success is estimated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from data.catalog import Catalog
from data.context import Caller, Subgoal
from data.errors import InputError
from data.traces import Trace
from serving.judged import Judged
from serving.selector import Selector
from serving.settings import SelectorSettings
from training.counterfactual import NOTHING, UNSHOWN, LoggedDecisions, counterfactual_report
from training.evaluation import unrestricted

FOLDS = 5

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Case:
    """One decision that can be replayed: its calls share a menu; `call` decided it."""

    call: Trace
    shown: dict[str, float]

    @property
    def succeeded(self) -> bool:
        return self.call.outcome == "success"


@dataclass
class _Rows:
    """The arrays while they are being filled; `features` (., 3) tell the reward model of a tool on a request."""

    of: list[int] = field(default_factory=list)
    chance: list[float] = field(default_factory=list)
    features: list[tuple[float, float, float]] = field(default_factory=list)

    def add(self, of: int, chance: float, features: tuple[float, float, float]) -> None:
        self.of.append(of)
        self.chance.append(chance)
        self.features.append(features)


def evaluate_replayed(bundle: Path | None, catalog: Catalog, traces: Iterable[Trace]) -> dict[str, Any]:
    """The section `counterfactual` of an evaluation: the success that a bundle would have had on logged decisions.

    The bundle is replayed with the exploration that it serves with, over a catalog without its permissions, as a log
    does not say who asked. Where no decision can be replayed the section says why and holds no estimate; `left_out`
    counts, by reason, the decisions that could not. Raises what loading a selector raises.
    """
    cases, left_out = _cases(traces, catalog)
    if not cases:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in left_out.items()) or "the log holds no decision"
        because = [f"no decision can be replayed: {reasons}"]
        return {"estimates": {}, "believe": False, "because": because, "left_out": dict(left_out)}
    selector = Selector.load(bundle, unrestricted(catalog), settings=SelectorSettings())
    return {**counterfactual_report(_replay(cases, selector)), "left_out": dict(left_out)}


def replay(traces: Iterable[Trace], selector: Selector) -> tuple[LoggedDecisions, dict[str, int]]:
    """The decisions of a log as arrays, and how many were left out for which reason.

    A decision is the calls of one trace with one goal and one menu. It succeeded where one of its calls of a shown tool
    did; else the last such call stands for it. Raises InputError when no decision is left.
    """
    cases, left_out = _cases(traces, selector.catalog)
    if not cases:
        raise InputError(f"no decision can be replayed: {dict(left_out)}", field="menu", hint="log menus and outcomes")
    return _replay(cases, selector), dict(left_out)


def _cases(traces: Iterable[Trace], catalog: Catalog) -> tuple[list[_Case], Counter[str]]:
    decisions: dict[tuple[str, str, str], list[Trace]] = {}
    for trace in traces:
        decisions.setdefault((trace.trace_id, trace.goal, trace.slice_id), []).append(trace)
    cases: list[_Case] = []
    left_out: Counter[str] = Counter()
    for calls in decisions.values():
        case = _case(calls, catalog)
        if isinstance(case, str):
            left_out[case] += 1
        else:
            cases.append(case)
    return cases, left_out


def _case(calls: Sequence[Trace], catalog: Catalog) -> _Case | str:
    """The decision, or why it cannot be replayed."""
    menu = next((call.menu for call in calls if call.menu is not None), None)
    if menu is None:
        return "no menu was logged"
    if not calls[0].goal.strip():
        return "the goal is blank"
    shown = {entry.tool_id: entry.propensity for entry in menu}
    found = list(calls)
    for reason, holds in (
        ("nothing was called", lambda call: call.tool_id is not None),
        ("the called tool was not on the menu", lambda call: call.tool_id in shown),
        ("the called tool is not in the catalog", lambda call: call.tool_id in catalog),
        ("the outcome is not known", lambda call: call.outcome != "unknown"),
    ):
        found = [call for call in found if holds(call)]
        if not found:
            return reason
    return _Case(next((call for call in found if call.outcome == "success"), found[-1]), shown)


def _replay(cases: Sequence[_Case], selector: Selector) -> LoggedDecisions:
    then, now = _Rows(), _Rows()
    logged: list[float] = []
    called: list[int] = []
    first: list[int] = []
    names: dict[str, int] = {}
    limits, ids = selector.limits(), selector.catalog.ids
    for number, case in enumerate(cases):
        call = case.call
        judged = selector.judge(Subgoal(goal=call.goal, mutation=call.mutation), Caller(tenant=call.tenant))
        menu = selector.menu([judged], limits, f"replay-{number}", judged.run)
        chances, rank = menu.chances(ids), {ids[row]: place for place, row in enumerate(judged.rows.tolist())}
        start = len(logged)
        for tool, propensity in case.shown.items():
            if tool == call.tool_id:
                called.append(len(logged))
            logged.append(propensity)
            then.add(number, chances.get(tool, 0.0), _features(judged, rank.get(tool)))
        beyond = 0.0  # tools that are no candidates are all the same to the reward model
        for tool, chance in chances.items():
            if tool in rank:
                now.add(number, chance, _features(judged, rank[tool]))
            else:
                beyond += chance
        now.add(number, beyond, _features(judged, None))
        best = selector.ranking(judged)[:1] if judged.stands else ()
        places = {tool: place for place, tool in enumerate(case.shown, start)}
        first.append(places.get(best[0], UNSHOWN) if best else NOTHING)
        names.setdefault(call.trace_id, len(names))

    group = np.array([names[case.call.trace_id] for case in cases], np.int64)
    reward = np.array([case.succeeded for case in cases], np.float64)
    at = np.array(called, np.int64)
    earned = np.zeros(len(logged))
    earned[at] = reward
    predicted, predicted_now = _predict(then, now, earned, group)
    return LoggedDecisions(
        group=group,
        called=at,
        reward=reward,
        direct=np.bincount(now.of, np.array(now.chance) * predicted_now, minlength=len(cases)).astype(np.float64),
        first=np.array(first, np.int64),
        decision=np.array(then.of, np.int64),
        logged=np.array(logged),
        target=np.array(then.chance),
        predicted=predicted,
    )


def _features(judged: Judged, rank: int | None) -> tuple[float, float, float]:
    """Log odds of the relevance (0 without a head), log of the rank, and 1.0 for a tool that is no candidate."""
    if rank is None:
        return 0.0, float(np.log1p(len(judged.rows))), 1.0
    relevant = float(judged.relevant[rank])
    bounded = 0.5 if np.isnan(relevant) else min(max(relevant, 1e-3), 1 - 1e-3)
    return float(np.log(bounded / (1 - bounded))), float(np.log1p(rank)), 0.0


def _predict(then: _Rows, now: _Rows, earned: Floats, group: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """P(called and succeeds | shown) of the logged and of the new items, by models that have not seen their trace."""
    seen, new = np.array(then.features), np.array(now.features)
    fold_then, fold_now = group[then.of] % FOLDS, group[now.of] % FOLDS
    predicted, predicted_now = np.zeros(len(seen)), np.zeros(len(new))
    for fold in range(FOLDS):
        train = fold_then != fold
        inside, inside_now = ~train, fold_now == fold
        if not train.any():  # fewer traces than folds: nothing else to learn from
            train = inside
        if not inside.any():
            continue
        classes = np.unique(earned[train])
        if len(classes) == 1:  # nothing to tell apart: the prediction is what always happened
            predicted[inside] = predicted_now[inside_now] = classes[0]
            continue
        model = LogisticRegression(C=1.0).fit(seen[train], earned[train])
        predicted[inside] = model.predict_proba(seen[inside])[:, 1]
        predicted_now[inside_now] = model.predict_proba(new[inside_now])[:, 1]
    return predicted, predicted_now

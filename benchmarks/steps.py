"""Whole tasks in steps: each step of a task is asked by itself, with and without the whole, and the answers merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from data.catalog import Catalog
from data.context import MAX_SUBGOALS, Subgoal
from data.queries import Query
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.several import select_several
from serving.splitting import split
from training.base import base_bundle
from training.evaluation import rankings_of
from training.metrics import bootstrap_interval, paired_difference_interval, ranking_metrics

FIGURES = ("recall@5", "recall@10", "ndcg@10")
BASELINES = ("bm25", "dense", "rrf", "selector")

Rows = dict[str, list[dict[str, float]]]


def measure_steps(bundle: Path, catalog: Catalog, queries: Sequence[Query], *, foreign: bool = False) -> Rows:
    """Rung -> the ranking metrics of each query, in order, and `cold`: 1 where no right tool has a past.

    Beside the rungs of an evaluation: `steps` are those of the rules, as `select_several` merges them; `and the whole`
    has the whole task beside them, as a service serves a text that it is to split. `foreign`: of another catalog.
    """
    settings = SelectorSettings(explore_rate=0.0, allow_foreign_catalog=foreign)
    selector = Selector.load(bundle, catalog, settings=settings)
    base = base_bundle()
    open_settings = SelectorSettings(explore_rate=0.0, allow_foreign_catalog=True)
    untrained = Selector.load(base, catalog, settings=open_settings) if base is not None else None
    rows: Rows = {}
    for query in queries:
        whole = selector.select(query.text, request_id="steps")
        steps = split(query.text)[:MAX_SUBGOALS]
        task = Subgoal(goal=query.text)
        cold = selector.bundle is None or query.right.isdisjoint(selector.bundle.usage.served)
        rankings = rankings_of(query, whole, selector, untrained)
        rankings["steps"] = select_several(selector, steps, request_id="steps").ranking
        rankings["and the whole"] = select_several(selector, steps, whole=task, request_id="steps").ranking
        for rung, ranking in rankings.items():
            rows.setdefault(rung, []).append(ranking_metrics(ranking, query) | {"cold": float(cold)})
    return rows


def step_report(rows: Mapping[str, Sequence[Mapping[str, float]]], seed: int) -> dict[str, Any]:
    """Group (all, cold) -> rung -> figure -> mean, interval over tasks, and the paired difference to each baseline."""
    report: dict[str, Any] = {}
    for group in ("all", "cold"):
        of = {rung: [row for row in those if group == "all" or row["cold"]] for rung, those in rows.items()}
        if any(of.values()):
            report[group] = {rung: {figure: _figure(of, rung, figure, seed) for figure in FIGURES} for rung in of}
    return report


def _figure(rows: Mapping[str, Sequence[Mapping[str, float]]], rung: str, figure: str, seed: int) -> dict[str, Any]:
    values = {name: np.array([row[figure] for row in rows[name]]) for name in (rung, *BASELINES) if name in rows}
    against = {
        name: (float((values[rung] - theirs).mean()), *paired_difference_interval(values[rung], theirs, seed))
        for name, theirs in values.items()
        if name != rung
    }
    return {"mean": float(values[rung].mean()), "interval": bootstrap_interval(values[rung], seed), "against": against}


def show_steps(report: Mapping[str, Any]) -> None:
    for group, rungs in report.items():
        for rung, figures in rungs.items():
            for name, f in figures.items():
                low, high = f["interval"]
                against = [
                    f"{x} {100 * d:+.1f} [{100 * a:+.1f}, {100 * b:+.1f}]" for x, (d, a, b) in f["against"].items()
                ]
                print(
                    f"{group:5s} {rung:15s} {name:10s} {100 * f['mean']:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
                    f"  against {', '.join(against)}"
                )

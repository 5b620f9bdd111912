"""Quality on public data: trains, evaluates, and writes one JSON report a set.

    python -m benchmarks.quality --data DIR --out runs/quality SET...

DIR holds the sets in the plain jsonl form. SET: bfcl, metatool, metatool-cold, base, stabletoolbench, livemcpbench.
`base` trains one bundle on BFCL, MetaTool and Seal-Tools; `stabletoolbench` (whose tools it has never seen) and
`livemcpbench` start from it, so it comes first.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import sets
from benchmarks.sets import Set
from benchmarks.steps import Rows, measure_steps, show_steps, step_report
from data.trace_store import write_traces
from toolcrib.demo_data import recipe_for
from toolcrib.reports import show_evaluation
from training.evaluation import evaluate
from training.pipeline import train
from training.recipe import Recipe

BASE_PAIRS = 3000


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure quality on public sets.")
    parser.add_argument("sets", nargs="+", choices=list(RUNS))
    parser.add_argument("--data", type=Path, required=True, help="the folder with the sets")
    parser.add_argument("--out", type=Path, default=Path("runs/quality"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bf16", action="store_true", help="train in bfloat16, where the CPU is made for it")
    parser.add_argument(
        "--no-rerankers", action="store_true", help="train none: where `auto` serves none, half the time"
    )
    parser.add_argument("--reuse", action="store_true", help="measure a bundle that is there, and train only others")
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
    logging.getLogger("toolcrib").setLevel(logging.INFO)
    for name in given.sets:
        started = time.perf_counter()
        report = RUNS[name](given)
        if report:
            report["seconds"] = time.perf_counter() - started
            folder = given.out / "reports"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}-{given.seed}.json").write_text(json.dumps(report, indent=1))
            print(f"== {name}, seed {given.seed}: {report['seconds']:.0f} s")
            show_evaluation(report)


def recipe(given: argparse.Namespace, **changes: Any) -> Recipe:
    if given.no_rerankers:
        changes |= {"cross_encoder": {"epochs": 0}, "interaction": {"epochs": 0}}
    return Recipe.model_validate({"seed": given.seed, "bf16": given.bf16, **changes})


def trained(given: argparse.Namespace, name: str, of: Set, how: Recipe) -> Path:
    """Train on a set's traces, unless its bundle is to be used again; the bundle's folder."""
    bundle: Path = given.out / name / f"bundle-{given.seed}"
    if given.reuse and bundle.is_dir():
        return bundle
    traces = given.out / name / "traces.parquet"
    traces.parent.mkdir(parents=True, exist_ok=True)
    write_traces(traces, of.traces)
    return train(of.catalog, traces, how, bundle).bundle


def run_bfcl(given: argparse.Namespace) -> dict[str, Any]:
    of = sets.bfcl()
    how = recipe(given, mining=recipe_for(of.catalog).mining.model_dump())
    return evaluate(trained(given, "bfcl", of, how), of.catalog, of.queries, seed=given.seed)


def run_metatool(given: argparse.Namespace, *, cold: bool = False) -> dict[str, Any]:
    of = sets.metatool(given.data, cold=cold)
    how = recipe(given, retriever={"epochs": 1.0, "max_pairs": 4000})
    bundle = trained(given, "metatool-cold" if cold else "metatool", of, how)
    return evaluate(bundle, of.catalog, of.queries, seed=given.seed)


def run_base(given: argparse.Namespace) -> dict[str, Any]:
    of = base_sets(given)
    how = recipe(
        given, keep_checkpoint=True, retriever={"epochs": 1.0}, cross_encoder={"epochs": 0}, interaction={"epochs": 0}
    )
    trained(given, "base", of, how)
    return {}


def base_sets(given: argparse.Namespace) -> Set:
    parts = [
        ("bfcl", sets.bfcl()),
        ("metatool", sets.sample(sets.metatool(given.data), BASE_PAIRS)),
        ("sealtools", sets.sealtools(given.data)),
    ]
    return sets.union([(name, Set(of.catalog, of.traces, ())) for name, of in parts])


def run_stabletoolbench(given: argparse.Namespace) -> dict[str, Any]:
    of = sets.stabletoolbench(given.data)
    bundle = given.out / "base" / f"bundle-{given.seed}"
    report = evaluate(bundle, of.catalog, of.queries, allow_foreign_catalog=True, seed=given.seed)
    steps = step_report(measure_steps(bundle, of.catalog, of.queries, foreign=True), given.seed)
    show_steps(steps)
    return {**report, "steps": steps}


def run_livemcpbench(given: argparse.Namespace) -> dict[str, Any]:
    """Five folds over the tasks; the heads learn from the base sets' requests besides, for the traces are few."""
    reports: list[dict[str, Any]] = []
    rows: Rows = {}
    base = [("bfcl", sets.bfcl()), ("metatool", sets.sample(sets.metatool(given.data), 1500))]
    for fold in range(sets.FOLDS):
        of = sets.livemcpbench(given.data, fold)
        learned = sets.union([("livemcp", of), *((name, Set(s.catalog, s.traces, ())) for name, s in base)])
        how = recipe(
            given,
            base_model=str(given.out / "base" / f"bundle-{given.seed}"),
            retriever={"epochs": 0.0},
            cross_encoder={"epochs": 0},
            interaction={"epochs": 0},
        )
        bundle = trained(given, f"livemcpbench-{fold}", learned, how)
        own = sets.union([("livemcp", of)])
        reports.append(evaluate(bundle, own.catalog, learned.queries, seed=given.seed))
        for rung, measured in measure_steps(bundle, own.catalog, learned.queries).items():
            rows.setdefault(rung, []).extend(measured)
    steps = step_report(rows, given.seed)
    show_steps(steps)
    return {**pooled(reports), "steps": steps}


def pooled(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Folds as one report: means weighted by queries. Intervals over folds are not those over queries: left out."""
    rungs: dict[str, dict[str, dict[str, float]]] = {}
    for rung in reports[0]["rungs"]:
        rungs[rung] = {}
        for group in ("all", "warm", "cold"):
            rows = [report["rungs"][rung][group] for report in reports if report["rungs"][rung][group]["n"]]
            count = sum(row["n"] for row in rows)
            names = [name for name in (rows[0] if rows else {}) if isinstance(rows[0][name], float)]
            rungs[rung][group] = {"n": count, **{k: sum(r[k] * r["n"] for r in rows) / count for k in names}}
    return {"rungs": rungs, "folds": len(reports)}


RUNS: Mapping[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "bfcl": run_bfcl,
    "metatool": run_metatool,
    "metatool-cold": lambda given: run_metatool(given, cold=True),
    "base": run_base,
    "stabletoolbench": run_stabletoolbench,
    "livemcpbench": run_livemcpbench,
}

if __name__ == "__main__":
    main()

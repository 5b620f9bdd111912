"""Fine-tuning side by side: on one process and on two, and with hard negatives; each beside the bootstrap interval.

    python -m benchmarks.tuning --data DIR [--seeds 3] [--tasks 600]

metatool, 15% of the tools in no log: a sample of the log trains by the command that users run, without rerankers;
held-out requests measure. Differences are to one process without hard negatives, paired by request, of means of seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from benchmarks import sets
from benchmarks.log_quality import cell, compared
from benchmarks.sets import Set
from data.jsonl import save_catalog
from data.trace_store import write_traces
from serving.bundle import load_bundle
from serving.selector import Selector
from serving.settings import SelectorSettings
from training.evaluation import rankings_of
from training.metrics import ranking_metrics

MEASURING = 400
FIRST = "one process"
RUNGS = ("retriever", "selector")
LAUNCHERS: Mapping[int, Sequence[str]] = {
    1: (),
    2: ("-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Fine-tune on one process and on two, and with hard negatives.")
    parser.add_argument("--data", type=Path, required=True, help="the folder with the sets")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=600)
    parser.add_argument("--out", type=Path, default=Path("runs/tuning"))
    given = parser.parse_args()
    of = sets.sample(sets.metatool(given.data, cold=True), given.tasks)
    of = replace(of, queries=tuple(sorted(of.queries, key=lambda query: sets.sha1(query.qid))[:MEASURING]))
    given.out.mkdir(parents=True, exist_ok=True)
    save_catalog(given.out / "catalog.jsonl", of.catalog)
    write_traces(given.out / "traces.parquet", of.traces)
    past = {trace.tool_id for trace in of.traces}
    seen = np.array([bool(query.right & past) for query in of.queries], np.bool_)
    first: dict[str, Any] = {}
    report: dict[str, Any] = {}
    print(f"== {given.tasks} tasks, {MEASURING} requests, means of {given.seeds} seeds: nDCG@10")
    print("| training | retriever, seen | retriever, never seen | selector, seen | selector, never seen |")
    print("|---|---|---|---|---|")
    for name, processes, from_seed, changes in (
        (FIRST, 1, 0, {}),
        ("two processes", 2, 0, {}),
        ("one process, other seeds", 1, given.seeds, {}),
        ("one process, 1 hard negative", 1, 0, {"hard_negatives": 1}),
        ("one process, 2 hard negatives", 1, 0, {"hard_negatives": 2}),
    ):
        seeds = range(from_seed, from_seed + given.seeds)
        runs = [gains_of(of, trained(given.out, name, seed, processes, changes)) for seed in seeds]
        gains = {rung: np.mean([run[rung] for run in runs], axis=0) for rung in RUNGS}
        first = first or gains
        report[name] = {
            f"{rung}, {group}": compared(gains[rung], first[rung], chosen)
            for rung in RUNGS
            for group, chosen in (("seen", seen), ("never seen", ~seen))
        }
        print(f"| {name} | {' | '.join(_told(figures, name) for figures in report[name].values())} |", flush=True)
    (given.out / "report.json").write_text(json.dumps(report, indent=1))


def _told(figures: dict[str, Any], name: str) -> str:
    """The first line's own interval, the others' differences to it."""
    low, high = figures["interval"]
    return f"{100 * figures['ndcg@10']:.1f} [{100 * low:.1f}, {100 * high:.1f}]" if name == FIRST else cell(figures)


def trained(out: Path, name: str, seed: int, processes: int, changes: Mapping[str, Any]) -> Path:
    """Train by the command; the bundle's folder. Raises RuntimeError with what the command said."""
    bundle = out / f"{name.replace(', ', '-').replace(' ', '-')}-{seed}"
    how = {
        "seed": seed,
        "retriever": {"epochs": 1.0, **changes},
        "cross_encoder": {"epochs": 0},
        "interaction": {"epochs": 0},
    }
    recipe = out / f"{bundle.name}.yaml"
    recipe.write_text(yaml.safe_dump(how), encoding="utf-8")
    given = ["--catalog", out / "catalog.jsonl", "--traces", out / "traces.parquet", "--recipe", recipe, "-o", bundle]
    command = [sys.executable, *LAUNCHERS[processes], "-m", "training", *map(str, given)]
    cpu = {} if torch.cuda.is_available() else {"ACCELERATE_USE_CPU": "true"}
    store = {"MLFLOW_TRACKING_URI": f"sqlite:///{(out / 'runs.db').resolve()}"}
    done = subprocess.run(command, env={**os.environ, **cpu, **store}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return bundle


def gains_of(of: Set, bundle: Path) -> dict[str, Any]:
    """Rung -> nDCG@10 of each request (n,)."""
    selector = Selector(load_bundle(bundle), of.catalog, settings=SelectorSettings(explore_rate=0.0))
    rows: dict[str, list[float]] = {rung: [] for rung in RUNGS}
    for query in of.queries:
        slice_ = selector.select(query.text, request_id="tuning")
        rankings = rankings_of(query, slice_, selector, None)
        for rung in RUNGS:
            rows[rung].append(ranking_metrics(rankings[rung], query)["ndcg@10"])
    return {rung: np.array(values) for rung, values in rows.items()}


if __name__ == "__main__":
    main()

"""Quality by log format: memory and head learned from the same agents' log in each foreign form, beside the plain one.

    python -m benchmarks.formats --data DIR --base BUNDLE [--seeds 3]

livemcpbench, five folds over its tasks: the traces of the other tasks are written in each form, imported again, mined,
and learned from over the encoder of BUNDLE; the held-out tasks measure. toolbench: all traces teach, as in
benchmarks.rules. *Same* is the share of the logs from which training reads exactly what it reads from the plain form,
but times; *same split* the share of which it leaves the same requests to the heads besides (the latest, where all have
times; else by chance). Where both are the same, so are the bundles.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import sets
from benchmarks.log_quality import Remembering, Taught, cell, compared, encoder_of, mined_from, taught
from benchmarks.round_trip import WRITERS, classed, tasks
from benchmarks.rules import toolbench_set
from benchmarks.sets import Set
from data.catalog import Catalog
from data.jsonl import write_jsonl
from data.logs import import_logs
from data.logs.collapse import collapsed
from data.traces import Trace
from training.recipe import Recipe

PLAIN = "plain"


def main() -> None:
    parser = argparse.ArgumentParser(description="Learn from each log format.")
    parser.add_argument("sets", nargs="*", default=["livemcpbench", "toolbench"])
    parser.add_argument("--data", type=Path, required=True, help="the folder with the sets")
    parser.add_argument("--base", type=Path, required=True, help="the bundle whose encoder is used")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/formats"))
    given = parser.parse_args()
    logging.getLogger("toolcrib").setLevel(logging.ERROR)
    given.out.mkdir(parents=True, exist_ok=True)
    encoder = encoder_of(given.base)
    for name in given.sets:
        folds = [toolbench_set(given.data)[0]]
        if name == "livemcpbench":
            folds = [sets.livemcpbench(given.data, fold) for fold in range(sets.FOLDS)]
        (given.out / f"{name}.json").write_text(json.dumps(by_form(name, folds, given.seeds, encoder), indent=1))


def by_form(name: str, folds: Sequence[Set], seeds: int, encoder: Remembering) -> dict[str, Any]:
    """Form -> nDCG@10 of the measuring requests, paired with the plain form; and how many logs read the same."""
    report: dict[str, Any] = {}
    plain: list[list[Taught]] = []
    print(f"== {name}: nDCG@10 (difference to the plain form), means of {seeds} seeds")
    print("| form | positives | memory and head | memory alone | same | same split |")
    print("|---|---|---|---|---|---|")
    for form in (PLAIN, *WRITERS):
        mined = [mined_from(replace(of, traces=tuple(read_as(form, of)))) for of in folds]
        runs = [
            [taught(of, made, Recipe(seed=seed), encoder) for of, made in zip(folds, mined, strict=True)]
            for seed in range(seeds)
        ]
        plain = plain or runs
        gains, memory = (_over_seeds(runs, what) for what in ("gains", "memory"))
        every = np.ones(len(gains), np.bool_)
        report[form] = {
            "positives": sum(made.report.positives for made in mined) / len(mined),
            "head": compared(gains, _over_seeds(plain, "gains"), every),
            "memory": compared(memory, _over_seeds(plain, "memory"), every),
            **{what: _share_alike(runs, plain, what) for what in ("digest", "split")},
        }
        row = report[form]
        print(
            f"| {form} | {row['positives']:.0f} | {cell(row['head'])} | {cell(row['memory'])} | "
            f"{row['digest']:.0%} | {row['split']:.0%} |",
            flush=True,
        )
    return report


def read_as(form: str, of: Set) -> Iterable[Trace]:
    """The traces of a set as an import gives them from a log of that form; the plain form with its repeats folded."""
    traces = [classed(trace) for trace in of.traces]
    if form == PLAIN:
        known = ([trace for trace in steps if trace.tool_id in of.catalog] for steps in tasks(traces))
        return [trace for steps in known for trace in collapsed(steps)]
    return _imported(form, traces, of.catalog)


def _imported(form: str, traces: list[Trace], catalog: Catalog) -> list[Trace]:
    with TemporaryDirectory() as folder:
        log = Path(folder) / f"{form}.jsonl"
        write_jsonl(log, (row for steps in tasks(traces) for row in WRITERS[form](steps, catalog)))
        return list(import_logs([log], form, catalog).traces())


def _share_alike(runs: Sequence[Sequence[Taught]], plain: Sequence[Sequence[Taught]], what: str) -> float:
    pairs = [(one, other) for run, base in zip(runs, plain, strict=True) for one, other in zip(run, base, strict=True)]
    return float(np.mean([getattr(one, what) == getattr(other, what) for one, other in pairs]))


def _over_seeds(runs: Sequence[Sequence[Taught]], what: str) -> Any:
    return np.mean([np.concatenate([getattr(of, what) for of in run]) for run in runs], axis=0)


if __name__ == "__main__":
    main()

"""Learning curves: what more of a log brings, to memory and head over an encoder that stays.

    python -m benchmarks.curves --data DIR [--base BUNDLE] [--seeds 3] [SET...]

The encoder is that of BUNDLE; without one the untrained base model. metatool: 15% of the tools are in no log, the last
fifth of the requests measures. livemcpbench: five folds over its tasks; livemcpbench-calls: what the agents wanted
before each call that succeeded measures instead. A share of the log is a share of its tasks, drawn anew for each seed.
Intervals are over requests, of means over the seeds. At most a thousand requests fit the head.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import sets
from benchmarks.log_quality import Remembering, encoder_of, livemcpbench_calls, mined_from, taught
from benchmarks.sets import Set
from data.errors import InputError
from data.mining.miner import Mined
from training.base import base_bundle
from training.metrics import bootstrap_interval
from training.recipe import HeadPart, Recipe

SHARES = (0.0, 0.1, 0.25, 0.5, 1.0)
MEASURING = 800
HEAD = HeadPart(max_requests=1000)


def main() -> None:
    parser = argparse.ArgumentParser(description="Quality by the share of the log.")
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--data", type=Path, required=True, help="the folder with the sets")
    parser.add_argument("--base", type=Path, help="the bundle whose encoder is used")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/curves"))
    given = parser.parse_args()
    logging.getLogger("toolcrib").setLevel(logging.ERROR)
    base = given.base or base_bundle()
    if base is None:
        parser.error("the base model is not installed: give --base")
    encoder = encoder_of(base)
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.sets:
        report = curve(name, SETS[name](given.data), given.seeds, encoder)
        (given.out / f"{name}.json").write_text(json.dumps(report, indent=1))


def curve(name: str, folds: Sequence[Set], seeds: int, encoder: Remembering) -> dict[str, Any]:
    """Share -> {group: n, nDCG@10, interval}: `seen` requests have a tool with a positive in that share."""
    report: dict[str, Any] = {}
    print(f"== {name}: nDCG@10 of memory and head by share of the log, means of {seeds} seeds")
    print("| share | tasks | positives | all | seen | never seen | heads |")
    print("|---|---|---|---|---|---|---|")
    for share in SHARES:
        tasks, positives, headed = [], [], []
        gains, seen = [], []
        for seed in range(seeds):
            made = []
            for of in folds:
                part = shortened(of, share, seed)
                tasks.append(len({trace.trace_id for trace in part.traces}))
                mined = _mined(part)
                positives.append(mined.report.positives if mined is not None else 0)
                made.append(taught(of, mined, Recipe(seed=seed, head=HEAD), encoder))
            headed += [of.headed for of in made]
            gains.append(np.concatenate([of.gains for of in made]))
            seen.append(np.concatenate([of.seen for of in made]))
        groups = {"all": np.ones_like(np.stack(seen)), "seen": np.stack(seen), "never_seen": ~np.stack(seen)}
        report[str(share)] = {
            "tasks": float(np.mean(tasks)),
            "positives": float(np.mean(positives)),
            "heads": float(np.mean(headed)),
            **{group: _figures(np.stack(gains), chosen) for group, chosen in groups.items()},
        }
        row = report[str(share)]
        cells = [_cell(row[group]) for group in groups]
        print(
            f"| {share:.0%} | {row['tasks']:.0f} | {row['positives']:.0f} | {' | '.join(cells)} | {row['heads']:.0%} |",
            flush=True,
        )
    return report


def shortened(of: Set, share: float, seed: int) -> Set:
    """A share of the tasks of a log, at least one unless it is none."""
    tasks = sorted({trace.trace_id for trace in of.traces})
    random.Random(seed).shuffle(tasks)
    kept = set(tasks[: round(share * len(tasks))])
    return replace(of, traces=tuple(trace for trace in of.traces if trace.trace_id in kept))


def _mined(of: Set) -> Mined | None:
    """None where the log is too short to hold a success."""
    try:
        return mined_from(of) if of.traces else None
    except InputError:
        return None


def _figures(gains: np.ndarray[Any, Any], chosen: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Over the requests that are of the group in any seed, each by its mean over those seeds. (seeds, n) each."""
    times = chosen.sum(axis=0)
    mine = times > 0
    if not mine.any():
        return {"n": 0.0}
    means = (gains * chosen).sum(axis=0)[mine] / times[mine]
    low, high = bootstrap_interval(means, 0)
    return {"n": float(times.sum() / len(chosen)), "ndcg@10": float(means.mean()), "interval": [low, high]}


def _cell(figures: Mapping[str, Any]) -> str:
    if not figures["n"]:
        return "-"
    low, high = figures["interval"]
    return f"{100 * figures['ndcg@10']:.1f} [{100 * low:.1f}, {100 * high:.1f}] (n {figures['n']:.0f})"


def _metatool(data: Path) -> list[Set]:
    of = sets.metatool(data, cold=True)
    return [replace(of, queries=tuple(sorted(of.queries, key=lambda query: sets.sha1(query.qid))[:MEASURING]))]


SETS: Mapping[str, Callable[[Path], list[Set]]] = {
    "metatool": _metatool,
    "livemcpbench": lambda data: [sets.livemcpbench(data, fold) for fold in range(sets.FOLDS)],
    "livemcpbench-calls": lambda data: [livemcpbench_calls(data, fold) for fold in range(sets.FOLDS)],
}

if __name__ == "__main__":
    main()

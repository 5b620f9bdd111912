"""Several trainings of the same set side by side: how much of a figure is luck of the seed.

    python -m benchmarks.seeds --out runs/quality SET...

Reads what `benchmarks.quality --seed N` wrote there. For each group of queries and each rung nDCG@10 by seed; for the
untrained rungs also what the selector has more on the same queries, by seed, with the 95% interval over queries.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

UNTRAINED = ("bm25", "dense", "rrf")
GROUPS = {"all": "all", "warm": "seen", "cold": "never seen"}


def main() -> None:
    parser = argparse.ArgumentParser(description="Show the seeds of a set side by side.")
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--out", type=Path, default=Path("runs/quality"), help="where benchmarks.quality wrote")
    given = parser.parse_args()
    for name in given.sets:
        show(name, reports_of(given.out / "reports", name))


def reports_of(folder: Path, name: str) -> dict[int, dict[str, Any]]:
    """Seed -> its report."""
    found = {file.stem.removeprefix(f"{name}-"): file for file in folder.glob(f"{name}-*.json")}
    return {int(seed): json.loads(found[seed].read_text()) for seed in sorted(found) if seed.isdecimal()}


def show(name: str, reports: Mapping[int, Mapping[str, Any]]) -> None:
    print(f"== {name}: nDCG@10 with seeds {', '.join(map(str, reports))}; in brackets what the selector has more")
    of = list(reports.values())
    for group, called in GROUPS.items():
        for rung in of[0]["rungs"] if of else ():
            rows = [report["rungs"][rung][group] for report in of]
            if all(row["n"] for row in rows):
                print(f"{called:10s} {rung:9s} {shown(rows)}{gains(of, rung, group) if rung in UNTRAINED else ''}")
    for report, seed in zip(of, reports, strict=True):
        for group, rungs in report.get("steps", {}).items():
            for rung, figures in rungs.items():
                five = figures["recall@5"]
                low, high = five["interval"]
                print(
                    f"seed {seed}  {GROUPS[group]:10s} {rung:15s} R@5 {100 * five['mean']:.1f} "
                    f"[{100 * low:.1f}, {100 * high:.1f}], nDCG@10 {100 * figures['ndcg@10']['mean']:.1f}"
                )


def shown(rows: Sequence[Mapping[str, Any]]) -> str:
    values = [100 * row["ndcg@10"] for row in rows]
    return f"{sum(values) / len(values):5.1f}  ({' / '.join(f'{value:.1f}' for value in values)})"


def gains(of: Sequence[Mapping[str, Any]], rung: str, group: str) -> str:
    known = [report["gains"][rung][group] for report in of if "gains" in report]
    cells = [f"{100 * g['gain']:+.1f} [{100 * g['interval'][0]:.1f}, {100 * g['interval'][1]:.1f}]" for g in known]
    return f"  [{'; '.join(cells)}]" if cells else ""


if __name__ == "__main__":
    main()

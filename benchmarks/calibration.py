"""Calibration and abstention: whether what is stated comes true, by parts of the catalog, and who is turned away.

    python -m benchmarks.calibration --data DIR [--most N] NAME:SET=BUNDLE...

DIR holds the public sets; SET is bfcl, metatool or metatool-cold, NAME says what is special about the bundle. Every
bundle is evaluated on held-out queries (the first N answered ones, and all that nothing fits), as they are and with
their right tools taken out of the catalog.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.conformal import SETS
from training.evaluation import evaluate


def main() -> None:
    parser = argparse.ArgumentParser(description="Calibration error by parts of the catalog, and abstention.")
    parser.add_argument("bundles", nargs="+", metavar="NAME:SET=BUNDLE")
    parser.add_argument("--data", type=Path, required=True, help="the folder with the sets")
    parser.add_argument("--most", type=int, help="so many answered queries of a set")
    given = parser.parse_args()
    print(
        "| bundle | set | error | warm | cold | AUROC | precision | recall | turned away wrongly "
        "| tools removed: AUROC | precision | recall |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for named in given.bundles:
        name, _, pair = named.partition(":")
        of_set, _, bundle = pair.partition("=")
        of = SETS[of_set](given.data)
        answered = [query for query in of.queries if query.gold][: given.most]
        report = evaluate(Path(bundle), of.catalog, [*answered, *(query for query in of.queries if not query.gold)])
        print(f"| {name} | {of_set} | {' | '.join(_figures(report))} |", flush=True)


def _figures(report: dict[str, Any]) -> list[str]:
    calibration, abstention = report["calibration"], report["abstention"]
    errors = [calibration, *(calibration["slices"].get(part, {}) for part in ("warm", "cold"))]
    removed = abstention["removed_gold"]
    values = [
        *(part.get("ece") for part in errors),
        *(abstention[name] for name in ("auroc", "precision", "recall", "turned_away")),
        *(removed[name] for name in ("auroc", "precision", "recall")),
    ]
    return ["" if value is None else f"{value:.3f}" for value in values]


if __name__ == "__main__":
    main()

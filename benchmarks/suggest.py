"""What suggested overlays do for the search: recall before and after, with suggestions from training traces only.

    python -m benchmarks.suggest --data FOLDER

The overlay is applied as it is proposed, unread; an owner who reads it can only do better.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.sets import FOLDS, Set, livemcpbench, metatool, sample
from data.catalog import Catalog
from data.overlay import read_overlay
from data.suggest import suggest, write_overlay
from serving.evidence import evidence, gather
from serving.index import build_index

DEPTHS = (1, 5, 10)


def suggested(of: Set) -> Catalog:
    """The catalog with every suggestion from the set's training traces."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "suggested.yaml"
        write_overlay(path, suggest(of.catalog, of.traces))
        return read_overlay(path).apply(of.catalog)[0]


def recall(of: Set, catalog: Catalog) -> list[tuple[float, ...]]:
    """Of each query, the share of its gold tools among the first DEPTHS of keyword search."""
    index = build_index(catalog, None, None, None)
    rows = np.arange(len(catalog), dtype=np.int64)
    found = []
    for query in of.queries:
        if query.gold:
            ranked = [catalog.ids[row] for row in gather(evidence(query.text, None, index, None), 40, rows)[0].tolist()]
            shares = (sum(gold in ranked[:depth] for gold in query.gold) / len(query.gold) for depth in DEPTHS)
            found.append(tuple(shares))
    return found


def main() -> None:
    """Print recall before and after, one line a set; livemcpbench over all its folds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    sets = {
        "metatool": [metatool(data)],
        "metatool, 500 traces": [sample(metatool(data), 500)],
        "livemcpbench": [livemcpbench(data, fold) for fold in range(FOLDS)],
    }
    for name, folds in sets.items():
        for when in ("before", "after"):
            found = [shares for of in folds for shares in recall(of, of.catalog if when == "before" else suggested(of))]
            said = ", ".join(
                f"recall@{depth} {share:.3f}" for depth, share in zip(DEPTHS, np.mean(found, axis=0), strict=True)
            )
            print(f"{name}, {when}: {said} ({len(found)} queries)")


if __name__ == "__main__":
    main()

"""Lint on public catalogs: what it finds, the processor time it takes, and how that grows to ten thousand cards.

python -m benchmarks.lint --data FOLDER [--cards 10000] [--bundle BUNDLE|none]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections import Counter
from pathlib import Path

from data.catalog import Catalog
from data.importers import import_catalog
from data.jsonl import load_catalog
from toolcrib.linting import findings_of

SETS = ("livemcpbench", "sealtools", "metatool", "stabletoolbench", "toolbench")


def catalogs(data: Path) -> dict[str, Catalog]:
    """The public catalogs of a data folder by name."""
    found = {"github-mcp": import_catalog(data / "github-mcp" / "tools_list.json", "mcp", domain="github")[0]}
    return found | {name: load_catalog(data / name / "tools.jsonl") for name in SETS}


def grown(found: dict[str, Catalog], cards: int) -> Catalog:
    """All catalogs one after the other, from the start again where they are too few, with ids of their own."""
    listed = [(name, card) for name, catalog in found.items() for card in catalog]
    taken = [(turn, *listed[turn % len(listed)]) for turn in range(cards)]
    return Catalog(card.model_copy(update={"tool_id": f"{turn}/{name}/{card.tool_id}"}) for turn, name, card in taken)


def main() -> None:
    """Print one line a catalog: cards, seconds of the processor, counts by rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cards", type=int, default=10_000)
    parser.add_argument("--bundle")
    asked = parser.parse_args()
    found = catalogs(asked.data)
    for name, catalog in [*found.items(), (f"together, {asked.cards}", grown(found, asked.cards))]:
        start = time.process_time()
        findings = findings_of(catalog, asked.bundle, own_words=True)
        seconds = time.process_time() - start
        counts = Counter(finding.rule for finding in findings)
        said = ", ".join(f"{rule} {count}" for rule, count in counts.most_common())
        print(f"{name}: {len(catalog)} cards, {seconds:.1f} s: {said}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()

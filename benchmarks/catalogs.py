"""Public catalogs from their files to a search: imported, linted, indexed; processor time, and the memory it takes.

    python -m benchmarks.catalogs --data FOLDER

Each catalog has a process of its own. Seconds are the processor's, on all threads, and do not count waiting for others.
Memory is what the process holds at most, beyond what it held once all was imported that it runs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from data.importers import import_catalog
from serving.bundle import load_bundle
from serving.index import build_index, load_models
from toolcrib.linting import findings_of
from training.base import base_bundle

SOURCES = {
    "github-mcp": ("tools_list.json", "mcp", "github"),
    "livemcpbench": ("tools.jsonl", "jsonl", None),
    "sealtools": ("tools.jsonl", "jsonl", None),
}
"""Folder -> file, form, and server's name."""


class Taken(NamedTuple):
    """Of one catalog: its size, seconds by step, megabytes by step, and counts of findings by rule."""

    cards: int
    seconds: dict[str, float]
    megabytes: dict[str, float]
    findings: dict[str, int]


def taken(path: Path, form: str, domain: str | None) -> Taken:
    """Import, lint with the self-test by keywords, and index by words and by words and vectors."""
    folder = base_bundle()
    assert folder is not None, "the base model is not installed"
    bundle = load_bundle(folder)
    encoder, weights = load_models(bundle, threads=1)
    seconds: dict[str, float] = {}
    megabytes: dict[str, float] = {}
    before, start = _megabytes(), time.process_time()

    def step(name: str) -> None:
        nonlocal start
        seconds[name], megabytes[name] = time.process_time() - start, _megabytes() - before
        start = time.process_time()

    catalog, _ = import_catalog(path, form, domain=domain)
    step("import")
    build_index(catalog, None, None, None)
    step("index by words")
    findings = findings_of(catalog, None, own_words=True)
    step("lint")
    build_index(catalog, bundle, encoder, weights)
    step("index by words and vectors")
    return Taken(len(catalog), seconds, megabytes, dict(Counter(finding.rule for finding in findings).most_common()))


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print a few lines a catalog."""
    parser = argparse.ArgumentParser(description="Import, lint and index public catalogs.")
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    for name, (file, form, domain) in SOURCES.items():
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.apply(taken, (data / name / file, form, domain))
        print(f"{name}: {found.cards} tools")
        for step, seconds in found.seconds.items():
            print(f"  {step:28s} {seconds:6.2f} s   {found.megabytes[step]:6.0f} MB so far")
        print("  " + ", ".join(f"{rule} {count}" for rule, count in found.findings.items()))


if __name__ == "__main__":
    main()

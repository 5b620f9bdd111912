"""Following a registry: from one decision there until the changed catalog serves, on 1,000 and 10,000 cards.

    python -m benchmarks.following --run runs/demo [--sizes 1000 10000] [--changes 20]

A larger catalog is the given one with its cards renamed and repeated. Each change is one card whose text is new, one
that is added and one that goes, in turn, approved and then followed by one look. `afresh` is the same catalog loaded
without what served before, as a start does; a look at a registry where nothing has happened is timed by itself.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from contextlib import closing
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.latency import resized
from data.cards import ToolCard
from data.catalog import Catalog
from data.jsonl import load_catalog
from data.store.approved import Approved
from data.store.database import open_database
from data.store.registry import Registry
from serving.bundle import Bundle
from serving.following import BundleFolder, Watch
from serving.search_tool import with_search_tool
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.watch import bundle_source

HOW = SelectorSettings(allow_foreign_catalog=True)
KINDS = ("a text that is new", "a tool that is added", "a tool that goes")


def build(catalog: Catalog, bundle: Bundle | None, earlier: Selector | None) -> Selector:
    return Selector(bundle, with_search_tool(catalog), settings=HOW, earlier=earlier)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time how a service follows a registry.")
    parser.add_argument("--run", type=Path, required=True, help="what `toolcrib demo` wrote")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--changes", type=int, default=20, help="of each kind")
    given = parser.parse_args()
    catalog = load_catalog(given.run / "catalog.jsonl")
    for size in given.sizes:
        with tempfile.TemporaryDirectory() as folder, closing(open_database(Path(folder) / "registry.db")) as database:
            measure(Registry(database), resized(catalog, size), given.run / "bundle", given.changes)


def measure(registry: Registry, catalog: Catalog, bundle: Path, changes: int) -> None:
    """Fill the registry, follow it through the changes, print what it took."""
    database = registry.database
    cards = {card.tool_id: card for card in catalog}
    registry.offer(cards.values(), "all", "job")
    approve_everything(registry)
    started = time.perf_counter()
    watch = Watch(Approved(database), BundleFolder(bundle_source(bundle)), build)
    first = time.perf_counter() - started
    took: dict[str, list[float]] = {kind: [] for kind in KINDS}
    idle: list[float] = []
    for turn in range(changes):
        for kind in KINDS:
            change(cards, kind, turn)
            registry.offer(cards.values(), "all", "job")
            approve_everything(registry)
            started = time.perf_counter()
            swap = watch.poll()
            took[kind].append(time.perf_counter() - started)
            assert swap is not None
            assert swap.accepted, swap.problem
            started = time.perf_counter()
            assert watch.poll() is None
            idle.append(time.perf_counter() - started)
    serving = watch.live.current
    assert [card for card in serving.catalog][:-1] == registry.shown()
    started = time.perf_counter()
    build(Catalog(registry.shown()), serving.bundle, None)
    afresh = time.perf_counter() - started
    print(f"{len(catalog):,} cards: started in {first:.2f} s; the same afresh {afresh:.2f} s")
    for kind, seconds in took.items():
        print(f"  {kind:<22} {_ms(seconds, 50):8.0f} ms (p95 {_ms(seconds, 95):.0f})")
    print(f"  {'nothing':<22} {_ms(idle, 50):8.2f} ms (p95 {_ms(idle, 95):.2f})")


def change(cards: dict[str, ToolCard], kind: str, turn: int) -> None:
    """One change of what the source offers, somewhere in the catalog."""
    tool = list(cards)[(turn * 7919) % len(cards)]
    if kind == KINDS[0]:
        cards[tool] = cards[tool].model_copy(update={"description": f"{cards[tool].description} Revised {turn} times."})
    elif kind == KINDS[1]:
        name = f"added_{turn}"
        cards[f"added.{name}"] = cards[tool].model_copy(update={"tool_id": f"added.{name}", "name": name})
    else:
        del cards[tool]


def approve_everything(registry: Registry) -> None:
    """Also what lint has something against: these cards are made up."""
    registry.approve_all("anna")
    for tool in registry.waiting():
        registry.approve(tool.tool_id, tool.pending[-1], "anna", despite="a benchmark")


def _ms(seconds: list[float], percentile: float) -> float:
    return float(np.percentile(seconds, percentile)) * 1000


if __name__ == "__main__":
    main()

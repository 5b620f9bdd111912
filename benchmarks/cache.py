"""What the slice cache costs and saves inside the process: a hit, a lookup that misses, a decision; and bytes an entry.

    python -m benchmarks.cache --run runs/demo

A hit is all that a request costs then: making the key, the lookup, and the slice with its own id. The callers are one
who sees every tool and one from whom most are withheld, whose slices name thousands of them.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from data.cards import Requires
from data.catalog import Catalog
from data.context import Caller, Recent
from data.jsonl import load_catalog, load_queries
from serving.bundle import load_bundle
from serving.embedding_cache import EmbeddingCache
from serving.policy import DEFAULT_POLICY
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.slice_cache import SliceCache, slice_key

SHARE_WITHHELD = 0.9
TURNS = tuple(f"turn {number}: {'what was said here goes on for a while ' * 4}" for number in range(6))


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the slice cache.")
    parser.add_argument("--run", type=Path, required=True, help="what `toolcrib demo` wrote")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=20, help="hits of each request")
    given = parser.parse_args()
    catalog = load_catalog(given.run / "catalog.jsonl")
    withheld = int(SHARE_WITHHELD * len(catalog))
    guarded = Catalog(
        card.model_copy(update={"requires": Requires(scopes=("inside",))}) if row < withheld else card
        for row, card in enumerate(catalog)
    )
    embeddings = EmbeddingCache()
    how = SelectorSettings(allow_foreign_catalog=True)
    selector = Selector(load_bundle(given.run / "bundle"), guarded, DEFAULT_POLICY, how, embeddings)
    texts = [query.text for query in load_queries(given.run / "queries.jsonl")][: given.requests]
    recent = Recent(plan="find the right tool", turns=TURNS)
    for name, caller in (
        ("sees every tool", Caller(scopes=("inside",), recent=recent)),
        (f"{withheld:,} of {len(catalog):,} tools withheld", Caller(recent=recent)),
    ):
        print(f"caller: {name}")
        measure(selector, caller, texts, given.rounds)
    figures = embeddings.figures()
    print(f"embeddings: {figures.hits} hits, {figures.misses} passes, {figures.bytes / 2**20:.1f} MiB")


def measure(selector: Selector, caller: Caller, texts: list[str], rounds: int) -> None:
    """Print the costs for one caller, in microseconds; p50 and p95."""
    for number, text in enumerate(texts[:10]):
        selector.select(text, caller, request_id=f"warm up {number}")
    decided, misses, hits, keys, puts = list[float](), list[float](), list[float](), list[float](), list[float]()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = SliceCache()
    for number, text in enumerate(texts):
        kept.ask(selector, text, caller, request_id=f"memory {number}")
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    weight, slices = kept.figures().weight, kept.figures().slices
    kept.clear()
    for number, text in enumerate(texts):
        request_id = f"miss {number}"
        started = time.perf_counter()
        key = slice_key(selector, text, caller)
        keyed = time.perf_counter()
        assert kept.get(key, request_id) is None
        looked = time.perf_counter()
        made = selector.select(text, caller, request_id=request_id)
        selected = time.perf_counter()
        kept.put(key, made)
        stored = time.perf_counter()
        keys.append(keyed - started)
        misses.append(looked - started)
        decided.append(selected - looked)
        puts.append(stored - selected)
    total = 0
    for turn in range(rounds):
        for number, text in enumerate(texts):
            request_id = f"hit {turn} {number}"
            started = time.perf_counter()
            found = kept.get(slice_key(selector, text, caller), request_id)
            if found is not None:
                hits.append(time.perf_counter() - started)
            total += 1
    for what, seconds in (
        ("key alone", keys),
        ("hit (key, lookup, slice)", hits),
        ("lookup that misses (key, lookup)", misses),
        ("decision (query embedded before)", decided),
        ("keeping a decision", puts),
    ):
        p50, p95 = np.percentile(np.array(seconds) * 1e6, [50, 95])
        print(f"  {what:<34} {p50:9.1f} / {p95:9.1f} us")
    print(f"  {len(hits) / total:.1%} of {total:,} repeated requests were hits (the others explore)")
    print(f"  {slices} slices, {weight:,} entries, {grown / max(weight, 1):.0f} bytes an entry, embeddings included")


if __name__ == "__main__":
    main()

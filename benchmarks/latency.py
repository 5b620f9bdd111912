"""Latency of `select`, one thread, no cache: per stage, for catalogs of 1,000 and 10,000 tools, beside MiniLM in torch.

    python -m benchmarks.latency --run runs/demo [--cross-encoder]

A larger catalog is the given one with its cards renamed and repeated, so that texts keep their length and variety. Each
round times every configuration once on the same query, so that the ratios hold when the machine's speed drifts.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from data.catalog import Catalog
from data.jsonl import load_catalog, load_queries
from serving.bundle import Bundle, load_bundle
from serving.policy import DEFAULT_POLICY
from serving.selector import Selector
from serving.settings import SelectorSettings
from training.recipe import DEFAULT_BASE, base_path

SIZES = (1_000, 10_000)
WARM_UP = 10


def main() -> None:
    parser = argparse.ArgumentParser(description="Time a selection, stage by stage.")
    parser.add_argument("--run", type=Path, required=True, help="what `toolcrib demo` wrote")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--cross-encoder", action="store_true", help="time it even where it does not serve")
    given = parser.parse_args()
    torch.set_num_threads(1)
    catalog, bundle = load_catalog(given.run / "catalog.jsonl"), load_bundle(given.run / "bundle")
    if given.cross_encoder:
        bundle = Bundle(bundle.path, bundle.manifest.model_copy(update={"reranker": "cross_encoder"}))
    texts = [query.text for query in load_queries(given.run / "queries.jsonl")][: given.rounds]
    settings = SelectorSettings(allow_foreign_catalog=True)
    selectors = {size: Selector(bundle, resized(catalog, size), DEFAULT_POLICY, settings) for size in SIZES}
    base = SentenceTransformer(base_path(DEFAULT_BASE), device="cpu")

    stages: dict[int, dict[str, list[float]]] = {size: {} for size in SIZES}
    whole: dict[str, list[float]] = {}
    for number, text in enumerate([*texts[:WARM_UP], *texts]):
        measured = number >= WARM_UP
        for size, selector in selectors.items():
            started = time.perf_counter()
            slice_ = selector.select(text, request_id=f"latency-{number}")
            elapsed = (time.perf_counter() - started) * 1000
            if measured:
                whole.setdefault(f"select, {size:,} tools", []).append(elapsed)
                for stage, ms in slice_.timings_ms.items():
                    stages[size].setdefault(stage, []).append(ms)
        started = time.perf_counter()
        base.encode([text], show_progress_bar=False)
        if measured:
            whole.setdefault("MiniLM in torch, one query", []).append((time.perf_counter() - started) * 1000)

    depth = f", {bundle.manifest.rerank_depth} deep" if given.cross_encoder else ""
    print(f"reranker: {bundle.manifest.reranker}{depth}; {len(texts)} queries, one thread, ms (p50 / p95)")
    for size in SIZES:
        print(f"{size:,} tools")
        for stage, took in stages[size].items():
            print(f"  {stage:<10} {np.percentile(took, 50):7.2f} / {np.percentile(took, 95):7.2f}")
    torch_ms = np.array(whole["MiniLM in torch, one query"])
    for name, of in whole.items():
        ratio = np.median(np.array(of) / torch_ms)
        print(
            f"{name:<28} {np.percentile(of, 50):7.2f} / {np.percentile(of, 95):7.2f}   {ratio:.2f} of MiniLM in torch"
        )
    small, large = (np.array(whole[f"select, {size:,} tools"]) for size in SIZES)
    print(f"10,000 tools against 1,000: {np.median(large / small):.2f} times, median of pairs")


def resized(catalog: Catalog, size: int) -> Catalog:
    """`size` cards: the catalog's own, then copies under other names."""
    cards = []
    for number in range(size):
        card = catalog.cards[number % len(catalog)]
        turn = number // len(catalog)
        suffix = f"_copy{turn}" if turn else ""
        cards.append(card.model_copy(update={"tool_id": card.tool_id + suffix, "name": card.name + suffix}))
    return Catalog(cards)


if __name__ == "__main__":
    main()

"""Learning at once: what reported successes change before the next training, request by request.

    python -m benchmarks.at_once --data DIR --most 400 SET=BUNDLE

Held-out queries come one after another; the agent calls the right tool where it is on the menu, and reports that it
succeeded. Each query is decided twice, by what the bundle knows and by what has been reported besides. By the number
of successes that the right tool had by then.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks.conformal import SETS
from data.queries import Query
from serving.bundle import load_bundle
from serving.embedding_cache import EmbeddingCache
from serving.lately import Outcome
from serving.live import Live
from serving.selector import Selector
from serving.settings import SelectorSettings
from training.answers import ABSTAINS
from training.evaluation import unrestricted
from training.metrics import ndcg_at_k

BANDS = ((0, 0), (1, 1), (2, 4), (5, 10_000))


def main() -> None:
    parser = argparse.ArgumentParser(description="What reported successes are worth before a training.")
    parser.add_argument("bundle", metavar="SET=BUNDLE")
    parser.add_argument("--data", type=Path, required=True, help="the folder with the sets")
    parser.add_argument("--most", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    name, _, bundle = given.bundle.partition("=")
    of = SETS[name](given.data)
    settings = SelectorSettings(explore_rate=0.0, rerank_budget_ms=1e6)
    selector = Selector(
        load_bundle(Path(bundle)), unrestricted(of.catalog), settings=settings, embeddings=EmbeddingCache()
    )
    queries = [query for query in of.queries if len(query.gold) == 1]
    queries = random.Random(given.seed).sample(queries, min(given.most, len(queries)))
    for line in stream(selector, queries):
        print(line)


def stream(selector: Selector, queries: list[Query]) -> list[str]:
    """The table: queries for warm and cold tools, by the successes that the right tool had been reported with."""
    live, reported = Live(selector), defaultdict[str, int](int)
    memory = selector.memory("")
    assert memory is not None
    rows: defaultdict[tuple[str, tuple[int, int]], list[tuple[float, float]]] = defaultdict(list)
    took = []
    for query in queries:
        (gold,) = query.gold
        good = query.as_good_as(gold)
        before, after = (of.select(query.text, request_id="benchmark") for of in (selector, live.current))
        kind = "warm" if any(memory.counts[selector.catalog.row[tool]] > 0 for tool in good) else "cold"
        band = next(band for band in BANDS if band[0] <= reported[gold] <= band[1])
        rows[kind, band].append((ndcg_at_k(before.ranking, query, 10), ndcg_at_k(after.ranking, query, 10)))
        shown = [entry.tool_id for entry in after.menu if entry.tool_id in good]
        if shown and after.abstention.outcome not in ABSTAINS:
            started, vector = time.perf_counter(), selector.embed(query.text)
            assert vector is not None
            live.learn(selector.versions.bundle, Outcome("", query.text, shown[0]), vector)
            live.current.memory("")
            took.append((time.perf_counter() - started) * 1000)
            reported[gold] += 1
    lines = [
        "| right tool | successes reported | queries | nDCG@10 before | with them | gain ± error |",
        "|---|---|---|---|---|---|",
    ]
    for (kind, band), pairs in sorted(rows.items()):
        b, a = np.array(pairs).T
        label = (
            f"{band[0]}" if band[0] == band[1] else f"{band[0]} or more" if band[1] > 100 else f"{band[0]} to {band[1]}"
        )
        error = np.std(a - b) / np.sqrt(len(a))
        lines.append(
            f"| {kind} | {label} | {len(a)} | {b.mean():.3f} | {a.mean():.3f} | {(a - b).mean():+.3f} ± {error:.3f} |"
        )
    return [*lines, "", f"A success costs {np.median(took):.1f} ms (median), {np.percentile(took, 95):.1f} ms (p95)."]


if __name__ == "__main__":
    main()

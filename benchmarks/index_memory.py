"""A large catalog's index: the memory it takes, the time to build it, and how fast its encoder embeds texts.

    python -m benchmarks.index_memory --run runs/demo [--tools 10000 100000]

Cards are the run's own, renamed and repeated, with their vectors and token states repeated too: what is measured is the
index, not the encoding, which is timed on its own (one thread, processor time). Each size has a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.latency import resized
from data.jsonl import load_catalog, load_queries
from serving.bundle import CARDS, load_bundle
from serving.index import index_of, load_models
from serving.interaction import CardTokens

EMBEDDED = 300


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the index of a large catalog.")
    parser.add_argument("--run", type=Path, required=True, help="what `toolcrib demo` wrote")
    parser.add_argument("--tools", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        print(json.dumps(measured(given.run, given.one)))
        return
    print(
        "tools, MB of cards, of the index by words, of vectors, of token states; CPU seconds to index; texts a second"
    )
    for tools in given.tools:
        command = [sys.executable, "-m", "benchmarks.index_memory", "--run", str(given.run), "--one", str(tools)]
        told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        sizes = " ".join(f"{told[what]:>8,.0f}" for what in ("cards", "words", "vectors", "tokens"))
        print(f"{tools:>9,} {sizes} {told['seconds']:>8.1f} {told['texts_a_second']:>8,.0f}", flush=True)


def measured(run: Path, tools: int) -> dict[str, float]:
    """Megabytes of each part of the index of `tools` cards, CPU seconds to build it, texts embedded a CPU second."""
    bundle, own = load_bundle(run / "bundle"), load_catalog(run / "catalog.jsonl")
    encoder, weights = load_models(bundle, threads=1)
    texts = [query.text for query in load_queries(run / "queries.jsonl")][:EMBEDDED]
    started = time.process_time()
    encoder.encode(texts, bundle.manifest.max_query_tokens)
    rate = len(texts) / (time.process_time() - started)
    with np.load(run / "bundle" / CARDS) as stored:
        rows = np.arange(tools) % len(stored["vectors"])
        vectors, tokens = stored["vectors"][rows], None
        if weights is not None:
            lengths = np.diff(stored["start"])[rows]
            start = np.concatenate([[0], np.cumsum(lengths)])
            inside = np.arange(start[-1]) - np.repeat(start[:-1], lengths)
            tokens = CardTokens(stored["tokens"][np.repeat(stored["start"][rows], lengths) + inside], start)
    before = _megabytes()
    catalog = resized(own, tools)
    cards = _megabytes() - before
    before, started = _megabytes(), time.process_time()
    index_of(catalog, vectors, tokens)
    return {
        "cards": cards,
        "words": _megabytes() - before,
        "vectors": vectors.nbytes / 2**20,
        "tokens": 0.0 if tokens is None else tokens.tokens.nbytes / 2**20,
        "seconds": time.process_time() - started,
        "texts_a_second": rate,
    }


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()

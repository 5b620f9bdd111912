"""Whether batching the encoder would pay on this CPU: 8 texts in one padded batch beside 8 passes of one text each.

    python -m benchmarks.batching --run runs/demo [--graph retriever.onnx --graph retriever.int8.onnx]

Graphs default to those of the bundle; rounds alternate between the two ways, so that drift of the machine hits both.
Also says how far the vectors of a batch are from those of single passes: whether a text's vector depends on neighbours.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from data.jsonl import load_queries
from serving.bundle import TOKENIZER, load_bundle
from serving.encoder import Encoder, session

SIZE = 8


def main() -> None:
    parser = argparse.ArgumentParser(description="Time a batch of queries beside single passes.")
    parser.add_argument("--run", type=Path, required=True, help="what `toolcrib demo` wrote")
    parser.add_argument("--graph", type=Path, action="append", help="an encoder graph; may be given again")
    parser.add_argument("--rounds", type=int, default=60)
    given = parser.parse_args()
    bundle = load_bundle(given.run / "bundle")
    texts = [query.text for query in load_queries(given.run / "queries.jsonl")][: SIZE * given.rounds]
    for graph in given.graph or [bundle.file(bundle.manifest.retriever_graph)]:
        compare(graph, bundle.file(TOKENIZER), texts, bundle.manifest.max_query_tokens)


def compare(graph: Path, tokenizer: Path, texts: list[str], max_tokens: int) -> None:
    """Print both ways' milliseconds for `SIZE` texts, their ratio, and how far their vectors are apart."""
    encoder, running = Encoder(graph, tokenizer), session(graph, 1)
    batched, single, apart, padding = list[float](), list[float](), list[float](), list[float]()
    for start in range(0, len(texts) - SIZE + 1, SIZE):
        ids = [encoder.token_ids(text, max_tokens) for text in texts[start : start + SIZE]]
        feeds, batch = [padded([one]) for one in ids], padded(ids)
        started = time.perf_counter()
        alone = np.concatenate([running.run(["vector"], feed)[0] for feed in feeds])
        middle = time.perf_counter()
        together = running.run(["vector"], batch)[0]
        ended = time.perf_counter()
        single.append((middle - started) * 1000)
        batched.append((ended - middle) * 1000)
        apart.append(float((1.0 - (alone * together).sum(1)).max()))
        padding.append(1.0 - float(batch["attention_mask"].mean()))
    one, many = np.array(single[1:]), np.array(batched[1:])  # the first is cold
    print(f"{graph.name}: {len(one)} rounds of {SIZE} queries, one thread, ms (p50 / p95)")
    print(f"  {SIZE} single passes  {np.percentile(one, 50):7.2f} / {np.percentile(one, 95):7.2f}")
    print(f"  one padded batch {np.percentile(many, 50):7.2f} / {np.percentile(many, 95):7.2f}")
    print(f"  batch against single passes: {np.median(many / one):.2f} times, median of pairs")
    print(f"  {np.mean(padding):.0%} of a batch is padding; vectors differ by up to {max(apart):.1e} in cosine")


def padded(rows: list[list[int]]) -> dict[str, NDArray[np.int64]]:
    """The graph's inputs for these token ids, short rows filled up with masked zeros."""
    width = max(map(len, rows))
    ids, mask = np.zeros((len(rows), width), np.int64), np.zeros((len(rows), width), np.int64)
    for row, tokens in enumerate(rows):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    return {"input_ids": ids, "attention_mask": mask}


if __name__ == "__main__":
    main()

"""What a log teaches: usage memory and head over an encoder that stays, measured on requests that the log has not."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import sets
from benchmarks.ablation import Experiment, Gains, material, requests_of, together
from benchmarks.sets import Set
from data.jsonl import load_traces
from data.mining.miner import Mined, mine
from data.mining.options import MiningOptions
from data.trace_store import write_traces
from serving.bundle import TOKENIZER, load_bundle
from serving.encoder import Encoded, Encoder
from serving.features import features
from training.decisions import Decision, gather_decisions
from training.head import Classifier, fit_relevance, probabilities
from training.heads import LEAST_REQUESTS
from training.held_out import queries_from_traces
from training.material import head_requests
from training.metrics import bootstrap_interval, paired_difference_interval, ranking_metrics
from training.recipe import Recipe


@dataclass(frozen=True)
class Taught:
    """nDCG@10 of each measuring request (n,) by the head, or in the fused order where the log is too small for one;
    `memory` the same in the fused order; `rank` of its first right tool, from 1, candidates + 1 where it is none.

    `seen` (n,): a right tool has a positive in the log. `headed`: whether there was a head. `digest`: of all that the
    stages after mining read of the log but times, and the split that follows from them; `split` has it in.
    """

    gains: Gains
    memory: Gains
    rank: NDArray[np.int64]
    seen: NDArray[np.bool_]
    headed: bool
    digest: str
    split: str


class Remembering(Encoder):
    """An encoder that encodes each text once, and knows what was learned with it: logs of a benchmark share much."""

    def __init__(self, graph: Path, tokenizer: Path) -> None:
        super().__init__(graph, tokenizer)
        self.taught: dict[Any, Taught] = {}
        self._known: dict[tuple[str, int], NDArray[np.float32]] = {}

    def encode(self, texts: Sequence[str], max_tokens: int, *, states: bool = False, workers: int = 1) -> Encoded:
        """As any encoder; only vectors are remembered."""
        if states:
            return super().encode(texts, max_tokens, states=True, workers=workers)
        missing = [text for text in dict.fromkeys(texts) if (text, max_tokens) not in self._known]
        made = super().encode(missing, max_tokens, workers=workers).vectors
        self._known |= {(text, max_tokens): vector for text, vector in zip(missing, made, strict=True)}
        known = [self._known[text, max_tokens] for text in texts]
        return Encoded(np.stack(known) if known else made, None)


def encoder_of(bundle: Path) -> Remembering:
    """The retriever of a bundle, with a memory."""
    of = load_bundle(bundle)
    return Remembering(of.file(of.manifest.retriever_graph), of.file(TOKENIZER))


def mined_from(of: Set, options: MiningOptions | None = None) -> Mined:
    """What the log of a set teaches by the mining rules."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "traces.parquet"
        write_traces(file, of.traces)
        return mine(file, of.catalog, options=options)


def taught(of: Set, mined: Mined | None, how: Recipe, encoder: Remembering) -> Taught:
    """Fit memory and head on what was mined (None: there is no log), rank the set's requests that have an answer.

    Logs that teach the same are learned from once.
    """
    split = how.split
    shares = {"valid_share": split.valid_share, "cold_share": split.cold_share}
    logged = gather_decisions(mined, **shares, seed=how.seed) if mined is not None else []
    # the head reads what was passed over only where it knows the menu, and the memory never
    read = [decision if decision.menu_known else replace(decision, wrong=()) for decision in logged]
    asked = tuple(query.qid for query in of.queries)
    known = (of.catalog.version, asked, how.model_dump_json(), tuple(map(repr, read)))
    if known not in encoder.taught:
        encoder.taught[known] = _taught(of, logged, read, how, encoder)
    return encoder.taught[known]


def _taught(of: Set, logged: Sequence[Decision], read: Sequence[Decision], how: Recipe, encoder: Remembering) -> Taught:
    of = replace(of, queries=tuple(query for query in of.queries if query.gold))
    asked = [
        Decision(query.text, -1 - i, "", None, tuple((g, 1.0) for g in query.gold), (), None, "valid", True)
        for i, query in enumerate(of.queries)
    ]
    experiment = Experiment(of, how, logged, asked)
    made = material(experiment, encoder)
    views = requests_of(experiment, made)
    headed = len({request.group for request in views[0] if request.tells}) >= LEAST_REQUESTS
    head: Classifier = None
    if headed:
        head = fit_relevance(together(views), regularisation=how.head.regularisation, calibrate=False)
    gains, in_order, ranks = [], [], []
    for query, request, rows in zip(
        of.queries, *head_requests(made, range(len(logged), len(made.decisions))), strict=True
    ):
        found = [made.catalog.ids[row] for row in rows.tolist()]
        order = np.arange(len(rows))
        if headed:
            order = np.argsort(-probabilities(head, features(request.signals)), kind="stable")
        right = np.flatnonzero(request.right[order])
        ranks.append(int(right[0]) + 1 if len(right) else len(rows) + 1)
        in_order.append(ranking_metrics(found, query)["ndcg@10"])
        gains.append(ranking_metrics([found[place] for place in order.tolist()], query)["ndcg@10"])
    past = {tool for decision in logged for tool, _ in decision.tools}
    seen = np.array([not query.right.isdisjoint(past) for query in of.queries], np.bool_)
    unsplit = [replace(decision, side="train") for decision in read]
    return Taught(np.array(gains), np.array(in_order), np.array(ranks), seen, headed, digest(unsplit), digest(read))


def livemcpbench_calls(data: Path, fold: int) -> Set:
    """LiveMCPBench as its agents asked: what they wanted before each call, and what then succeeded, measures."""
    of = sets.livemcpbench(data, fold)
    taught_by = {trace.trace_id for trace in of.traces}
    file = data / "livemcpbench" / "traces.jsonl"
    held_out = [trace for trace in load_traces(file) if trace.trace_id not in taught_by]
    return replace(of, queries=tuple(queries_from_traces(held_out, of.catalog, str(file))))


def digest(decisions: Sequence[Decision]) -> str:
    """Of what the stages after mining read of a log, times left out."""
    return hashlib.sha256("\n".join(repr(replace(d, ts=None)) for d in decisions).encode()).hexdigest()[:12]


def compared(gains: Gains, baseline: Gains, chosen: NDArray[np.bool_], seed: int = 0) -> dict[str, Any]:
    """Mean nDCG@10 over some requests, the paired difference to the baseline, and their 95% intervals."""
    low, high = bootstrap_interval(gains[chosen], seed)
    down, up = paired_difference_interval(gains[chosen], baseline[chosen], seed)
    return {
        "n": int(chosen.sum()),
        "ndcg@10": float(gains[chosen].mean()),
        "interval": [low, high],
        "difference": float((gains - baseline)[chosen].mean()),
        "difference_interval": [down, up],
    }


def cell(figures: dict[str, Any]) -> str:
    """A table's cell: mean, then the difference with its interval."""
    down, up = figures["difference_interval"]
    return f"{100 * figures['ndcg@10']:.1f} ({100 * figures['difference']:+.1f} [{100 * down:+.1f}, {100 * up:+.1f}])"

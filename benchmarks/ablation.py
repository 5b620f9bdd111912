"""Ablation: what each part is worth, by taking out one at a time and fitting the head again without it.

    python -m benchmarks.ablation --data DIR --out runs/quality SET...

SET: bfcl, metatool, metatool-cold, each after `benchmarks.quality` has trained it. The head is fitted anew on the same
held-out requests for every line, so that it may make up for what is missing; candidates are gathered anew as well.
What the rerankers are worth to the head is measured by the training itself, out of fold, and read from the manifest.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import sets
from benchmarks.quality import recipe
from benchmarks.sets import Set
from data.card_text import query_text
from data.mining.miner import mine
from serving.bundle import Bundle, load_bundle
from serving.card_vectors import encode_cards
from serving.encoder import Encoder
from serving.features import features
from serving.index import Index, index_of, load_models
from serving.lexical import LexicalIndex, LexicalScores
from serving.memory import Usage
from toolcrib.demo_data import recipe_for
from training.base import base_bundle
from training.decisions import Decision, Ended, gather_decisions, gather_history, same_names
from training.head import Request, first_day, fit_relevance, probabilities, without
from training.material import Material, head_requests, remember, short_past
from training.metrics import bootstrap_interval, paired_difference_interval, ranking_metrics
from training.recipe import Recipe

Gains = NDArray[np.float64]

HEAD_SIGNALS: Mapping[str, tuple[str, ...]] = {
    "BM25": ("bm25",),
    "names": ("name", "exact"),
    "votes of past requests": ("vote", "nearest"),
    "past requests of the tool": ("centroid", "shrunk"),
    "how much past a tool has": ("count",),
    "history": ("success_rate",),
    "the server used before": ("same_domain",),
}
"""What the head is told of a candidate, beside the cosine, in parts that can be silenced."""


@dataclass(frozen=True)
class Experiment:
    """A set, how its bundle was trained, its requests (those of the log, then those that measure), how calls ended."""

    of: Set
    how: Recipe
    logged: Sequence[Decision]
    asked: Sequence[Decision]
    history: Sequence[Ended] = ()


class NoLexical(LexicalIndex):
    """Lexical search that finds nothing."""

    def __init__(self, tools: int) -> None:
        self._nothing = np.zeros(tools, np.float32)

    def scores(self, query: str, tenant: str | None = None) -> LexicalScores:
        return LexicalScores(bm25=self._nothing, name=self._nothing, exact=self._nothing.astype(np.bool_))


def main() -> None:
    parser = argparse.ArgumentParser(description="Take out one part at a time.")
    parser.add_argument("sets", nargs="+", choices=list(SETS))
    parser.add_argument("--data", type=Path, required=True, help="the folder with the sets")
    parser.add_argument("--out", type=Path, default=Path("runs/quality"), help="where benchmarks.quality wrote")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bf16", action="store_true", help="as benchmarks.quality was told")
    parser.set_defaults(no_rerankers=False)
    given = parser.parse_args()
    for name in given.sets:
        report = ablation(name, given)
        folder = given.out / "reports"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"ablation-{name}-{given.seed}.json").write_text(json.dumps(report, indent=1))
        show(name, report)


def ablation(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """Line -> {group: nDCG@10, interval, difference to everything, its interval}; and the rerankers' recorded gains."""
    of = SETS[name](given)
    how = recipe(given, mining=recipe_for(of.catalog).mining.model_dump()) if name == "bfcl" else recipe(given)
    bundle = load_bundle(given.out / name / f"bundle-{given.seed}")
    mined = mine(given.out / name / "traces.parquet", of.catalog, options=how.mining)
    split = how.split
    logged = gather_decisions(mined, valid_share=split.valid_share, cold_share=split.cold_share, seed=how.seed)
    of = replace(of, queries=tuple(query for query in of.queries if query.gold))
    asked = [
        Decision(query.text, -1 - i, "", None, tuple((g, 1.0) for g in query.gold), (), None, "valid", True)
        for i, query in enumerate(of.queries)
    ]
    experiment = Experiment(of, how, logged, asked, gather_history(mined, logged))
    past = bundle.usage.served
    seen = np.array([not query.right.isdisjoint(past) for query in of.queries], np.bool_)
    lines = gains_by_line(experiment, bundle)
    return {
        "lines": {line: summary(gains, lines["everything"], seen, given.seed) for line, gains in lines.items()},
        "rerankers": {
            reranker: {k: v for k, v in bundle.manifest.metrics.get(reranker, {}).items() if k.startswith("head_gain")}
            for reranker in ("interaction", "cross_encoder")
        },
    }


def gains_by_line(of: Experiment, bundle: Bundle) -> dict[str, Gains]:
    """nDCG@10 of each measuring query, with everything and with one part out."""
    tuned, base = load_models(bundle, 1)[0], base_bundle()
    full = material(of, tuned)
    views = requests_of(of, full)
    lines = {
        "everything": measured(of, full, together(views)),
        "head: no first requests": measured(of, full, [*views[0], *first_day(views[0])]),
        "head: no short pasts": measured(of, full, [*views[0], *views[1], *first_day(views[0])]),
        "head: none, fused order": fused(of, full),
    }
    lines |= {f"head: blind to {name}": blinded(of, full, views, *signals) for name, signals in HEAD_SIGNALS.items()}
    without_lexical = replace(full, index=replace(full.index, lexical=NoLexical(len(full.catalog))), memories={})
    without_usage = replace(full, usage=Usage.empty(full.vectors.shape[1]), memories={})
    lines["no BM25, no names"] = relearned(of, without_lexical)
    lines["no usage memory"] = relearned(of, without_usage)
    if base is not None:
        lines["no fine-tuning"] = relearned(of, material(of, load_models(load_bundle(base), 1)[0]))
    return lines


def material(of: Experiment, encoder: Encoder) -> Material:
    """Everything as one encoder sees it; only the log is remembered."""
    part = of.how.retriever
    cards = encode_cards(encoder, of.of.catalog.cards, part.max_card_tokens).vectors
    decisions = [*of.logged, *of.asked]
    vectors = encoder.encode([query_text(d.goal) for d in decisions], part.max_query_tokens).vectors
    ended = encoder.encode([query_text(one.goal) for one in of.history], part.max_query_tokens).vectors
    index: Index = index_of(of.of.catalog, cards, None)
    return Material(
        catalog=of.of.catalog,
        index=index,
        decisions=decisions,
        vectors=vectors,
        usage=remember(of.logged, vectors[: len(of.logged)], of.how.usage_half_life_days, (of.history, ended)),
        equivalents={tool: frozenset(others) for tool, others in of.how.mining.equivalents.items()},
        same_name=same_names(of.of.catalog),
        candidates=40,
        unshown_weight=of.how.head.unshown_weight,
    )


ViewsOf = tuple[list[Request], list[Request], list[Request]]


def requests_of(of: Experiment, made: Material) -> ViewsOf:
    """What the head learns from: the held-out requests as they were, as if the held-out tools were new, and nearly."""
    chosen = [i for i, d in enumerate(of.logged) if d.side in ("valid", "cold") and d.tools]
    chosen = sorted(np.random.default_rng(of.how.seed).permutation(chosen)[: of.how.head.max_requests].tolist())
    cold = frozenset(tool for d in of.logged if d.side == "cold" for tool, _ in d.tools)
    lately = replace(made, usage=short_past(made.usage, cold, of.how.seed), memories={})
    return head_requests(made, chosen)[0], head_requests(made, chosen, cold)[0], head_requests(lately, chosen)[0]


def together(views: ViewsOf) -> list[Request]:
    """All that the head learns from."""
    return [request for view in views for request in view] + first_day(views[0])


def relearned(of: Experiment, made: Material) -> Gains:
    return measured(of, made, together(requests_of(of, made)))


def measured(of: Experiment, made: Material, learned: Sequence[Request]) -> Gains:
    head = fit_relevance(learned, regularisation=of.how.head.regularisation, calibrate=False)
    return ranked(of, made, lambda request: probabilities(head, features(request.signals)))


def blinded(of: Experiment, made: Material, views: ViewsOf, *signals: str) -> Gains:
    """The same candidates by a head that never saw some signals."""
    learned = without(together(views), *signals)
    head = fit_relevance(learned, regularisation=of.how.head.regularisation, calibrate=False)
    return ranked(of, made, lambda request: probabilities(head, features(without([request], *signals)[0].signals)))


def fused(of: Experiment, made: Material) -> Gains:
    """The candidates in the order in which they are gathered: reciprocal rank fusion."""
    return ranked(of, made, lambda request: -np.arange(len(request.right), dtype=np.float64))


def ranked(of: Experiment, made: Material, score: Callable[[Request], NDArray[np.float64]]) -> Gains:
    places = range(len(of.logged), len(made.decisions))
    gains = []
    for query, request, rows in zip(of.of.queries, *head_requests(made, places), strict=True):
        order = np.argsort(-score(request), kind="stable")
        gains.append(ranking_metrics([made.catalog.ids[row] for row in rows[order].tolist()], query)["ndcg@10"])
    return np.array(gains)


def summary(gains: Gains, everything: Gains, seen: NDArray[np.bool_], seed: int) -> dict[str, Any]:
    groups = {"all": np.ones(len(seen), np.bool_), "seen": seen, "never_seen": ~seen}
    return {
        name: {
            "n": int(chosen.sum()),
            "ndcg@10": float(gains[chosen].mean()),
            "interval": bootstrap_interval(gains[chosen], seed),
            "difference": float((gains - everything)[chosen].mean()),
            "difference_interval": paired_difference_interval(gains[chosen], everything[chosen], seed),
        }
        for name, chosen in groups.items()
        if chosen.any()
    }


def show(name: str, report: Mapping[str, Any]) -> None:
    print(f"== {name}: nDCG@10, and the difference to everything with its 95% interval")
    for line, groups in report["lines"].items():
        cells = [
            f"{group} {100 * g['ndcg@10']:.1f} ({100 * g['difference']:+.1f} "
            f"[{100 * g['difference_interval'][0]:+.1f}, {100 * g['difference_interval'][1]:+.1f}])"
            for group, g in groups.items()
        ]
        print(f"{line:38s} {'  '.join(cells)}")
    for reranker, gain in report["rerankers"].items():
        print(f"{reranker}, for the head, out of fold: {gain}")


SETS: Mapping[str, Callable[[argparse.Namespace], Set]] = {
    "bfcl": lambda given: sets.bfcl(),
    "metatool": lambda given: sets.metatool(given.data),
    "metatool-cold": lambda given: sets.metatool(given.data, cold=True),
}

if __name__ == "__main__":
    main()

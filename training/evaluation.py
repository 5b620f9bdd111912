"""Evaluation: every rung from BM25 to the full selector on held-out queries, by the very selector that serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from data.cards import Requires
from data.catalog import Catalog
from data.context import Caller
from data.errors import InputError
from data.queries import Query
from serving.bundle import Bundle, load_bundle
from serving.cosine import cosines
from serving.evidence import evidence
from serving.policy import DEFAULT_POLICY
from serving.retrieval import fuse, top
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.slice import Slice
from training.answers import Answer
from training.base import base_bundle
from training.calibration import calibration
from training.decisions import same_names
from training.metrics import (
    RECALL_CUTOFFS,
    auroc,
    bootstrap_interval,
    mean_metrics,
    paired_difference_interval,
    precision_recall,
    ranking_metrics,
)
from training.per_query import per_no_tool, per_query
from training.removed_gold import removed_gold
from training.report.chain import chain, chain_intervals
from training.report.confusions import confusions
from training.report.curves import menu_curve
from training.report.domains import domains
from training.report.failures import failures

RUNGS = ("bm25", "dense", "rrf", "retriever", "usage", "reranker", "selector")
DEPTH = 40
UNTRAINED = ("bm25", "dense", "rrf")
METRICS = (*(f"recall@{k}" for k in RECALL_CUTOFFS), "ndcg@10", "mrr")
"""Figures of a group, null where it has no query."""

Rankings = dict[str, tuple[str, ...]]


def evaluate(
    bundle: Path | None,
    catalog: Catalog,
    queries: Sequence[Query],
    *,
    caller: Caller | None = None,
    allow_foreign_catalog: bool = False,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure a bundle (None: no trained model) on queries; the dict of `toolcrib evaluate --json`.

    Fractions in [0, 1], times in milliseconds. `warm` and `cold` part the answered queries by whether any of their
    gold tools, or an equivalent, has a past in the bundle. Beside the contract: intervals (95%, bootstrap over
    queries), the reliability bins and those of parts of the catalog, abstention where the gold tools are taken away
    (`abstention.removed_gold`), menu size and tokens, the paired gain of the selector over each rung, what a report
    for a person tells (failures, domains, confusions, the menu curve), and the figures of each query.

    The selector asks over a catalog without its rules; with a `caller`, as that caller and with the rules in force.
    Raises InputError when no query has a gold tool in the catalog.
    """
    found = load_bundle(bundle) if bundle is not None else None
    return evaluate_loaded(
        found, catalog, queries, caller=caller, allow_foreign_catalog=allow_foreign_catalog, seed=seed
    )


def evaluate_loaded(
    bundle: Bundle | None,
    catalog: Catalog,
    queries: Sequence[Query],
    *,
    caller: Caller | None = None,
    allow_foreign_catalog: bool = False,
    seed: int = 0,
) -> dict[str, Any]:
    """`evaluate` for a bundle that is loaded."""
    _check(queries, catalog)
    asked_catalog = catalog if caller is not None else unrestricted(catalog)
    settings = SelectorSettings(explore_rate=0.0, allow_foreign_catalog=allow_foreign_catalog)
    selector = Selector(bundle, asked_catalog, DEFAULT_POLICY, settings)
    past = bundle.usage.served if bundle is not None else frozenset[str]()
    untrained = _untrained(asked_catalog, settings)

    ranked: dict[str, list[tuple[Query, tuple[str, ...]]]] = {rung: [] for rung in RUNGS}
    answers: list[Answer] = []
    for number, query in enumerate(queries):
        slice_ = selector.select(query.text, caller, request_id=f"evaluation-{number}")
        answers.append(Answer(query, slice_, not query.right.isdisjoint(past)))
        if query.gold:
            for rung, ranking in rankings_of(query, slice_, selector, untrained).items():
                ranked[rung].append((query, ranking))
    warm = {answer.query.qid: answer.warm for answer in answers if answer.query.gold}
    rungs = {rung: _groups(rows, warm, seed) for rung, rows in ranked.items() if rows}
    return {
        "rungs": rungs,
        "gains": _gains(ranked, warm, seed),
        "abstention": {
            **_abstention(answers),
            "removed_gold": removed_gold(answers, selector, same_names(asked_catalog), caller=caller, seed=seed),
        },
        "calibration": calibration(answers, past.__contains__, lambda tool: asked_catalog[tool].domain),
        "chain": chain(answers),
        "chain_intervals": chain_intervals(answers, seed),
        "menu": _menu(answers, selector),
        "menu_curve": menu_curve(answers, selector),
        "latency_ms": _latency([answer.slice for answer in answers]),
        "failures": failures(answers),
        "domains": domains(answers, asked_catalog),
        "confusions": confusions(answers, asked_catalog, selector.index.vectors),
        "queries": {
            "answered": len(warm),
            "no_tool": len(answers) - len(warm),
            "cold": len(warm) - sum(warm.values()),
        },
        "per_query": per_query(answers),
        "per_no_tool": per_no_tool(answers),
        "bundle_version": selector.bundle.version if selector.bundle else "none",
        "catalog_version": catalog.version,
    }


def _check(queries: Sequence[Query], catalog: Catalog) -> None:
    if not any(query.gold for query in queries):
        raise InputError("none of the queries names a right tool", field="gold", hint="give queries with known answers")
    unknown = sorted({gold for query in queries for gold in query.gold if gold not in catalog})
    if unknown:
        raise InputError(
            f"{len(unknown)} gold tools are not in the catalog, the first is '{unknown[0]}'",
            field="gold",
            hint="evaluate on the catalog that the queries were written for",
        )


def unrestricted(catalog: Catalog) -> Catalog:
    """The same tools without their rules: what permissions withhold is not a matter of ranking quality."""
    rules: dict[str, Any] = {"requires": Requires(), "tenants": (), "envs": (), "regions": (), "flags": ()}
    return Catalog(card.model_copy(update=rules) for card in catalog)


def _untrained(catalog: Catalog, settings: SelectorSettings) -> Selector | None:
    base = base_bundle()
    return Selector.load(base, catalog, settings=settings) if base is not None else None


def rankings_of(query: Query, slice_: Slice, selector: Selector, untrained: Selector | None) -> Rankings:
    """The first DEPTH tools of each rung that can be climbed here, best first."""
    ids = selector.catalog.ids
    lexical = top(selector.index.lexical.scores(slice_.query).bm25, DEPTH)
    made = {"bm25": lexical}
    if untrained is not None:
        dense = top(_cosine(untrained, slice_.query), DEPTH)
        made |= {"dense": dense, "rrf": fuse([lexical, dense], DEPTH)[0]}
    if selector.encoder is not None and selector.bundle is not None and not _same_bundle(selector, untrained):
        vector = selector.encoder.encode([slice_.query], selector.bundle.manifest.max_query_tokens).vectors[0]
        own = evidence(slice_.query, vector, selector.index, selector.memory(""))
        assert own.cosine is not None
        made["retriever"] = top(own.cosine, DEPTH)
        if own.usage is not None and own.knows_usage:
            made["usage"] = top(own.usage.shrunk, DEPTH)
    named: Rankings = {rung: tuple(ids[row] for row in rows.tolist()) for rung, rows in made.items()}
    reranked = next((record.scores for record in slice_.record if record.stage == "rerank"), {})
    if reranked:
        named["reranker"] = tuple(sorted(reranked, key=lambda tool: (-reranked[tool], selector.catalog.row[tool])))
    named["selector"] = slice_.ranking
    return named


def _same_bundle(one: Selector, other: Selector | None) -> bool:
    return other is not None and one.bundle is not None and other.bundle == one.bundle


def _cosine(selector: Selector, query: str) -> Any:
    assert selector.encoder is not None
    assert selector.bundle is not None
    assert selector.index.vectors is not None
    vector = selector.encoder.encode([query], selector.bundle.manifest.max_query_tokens).vectors[0]
    return cosines(selector.index.vectors, vector)


def _groups(
    rows: Sequence[tuple[Query, tuple[str, ...]]], warm: Mapping[str, bool], seed: int
) -> dict[str, dict[str, Any]]:
    measured = [(warm[query.qid], ranking_metrics(ranking, query)) for query, ranking in rows]
    groups: dict[str, dict[str, Any]] = {}
    for name, wanted in (("all", (True, False)), ("warm", (True,)), ("cold", (False,))):
        chosen = [metrics for is_warm, metrics in measured if is_warm in wanted]
        groups[name] = {"n": len(chosen), **dict.fromkeys(METRICS), **mean_metrics(chosen)}
        if chosen:
            low, high = bootstrap_interval([metrics["ndcg@10"] for metrics in chosen], seed)
            groups[name]["ndcg@10_interval"] = [low, high]
    return groups


def _gains(
    answered: Mapping[str, Sequence[tuple[Query, tuple[str, ...]]]], warm: Mapping[str, bool], seed: int
) -> dict[str, dict[str, Any]]:
    """nDCG@10 of the selector minus that of each other rung, on the same queries, with the paired interval."""
    per_rung = {
        rung: [(warm[query.qid], ranking_metrics(ranking, query)["ndcg@10"]) for query, ranking in rows]
        for rung, rows in answered.items()
    }
    ours = per_rung["selector"]
    gains: dict[str, dict[str, Any]] = {}
    for rung, theirs in per_rung.items():
        if rung == "selector" or len(theirs) != len(ours):
            continue
        gains[rung] = {}
        for name, wanted in (("all", (True, False)), ("warm", (True,)), ("cold", (False,))):
            a = [value for is_warm, value in ours if is_warm in wanted]
            b = [value for is_warm, value in theirs if is_warm in wanted]
            if a:
                low, high = paired_difference_interval(a, b, seed)
                gains[rung][name] = {"gain": float(np.mean(a) - np.mean(b)), "interval": [low, high]}
    return gains


def _abstention(answers: Sequence[Answer]) -> dict[str, float | None]:
    """How well a request that nothing fits is told from one that something does; the former are the positives."""
    fits = [(answer.slice.abstention.fit, not answer.query.gold) for answer in answers]
    scored = [(1.0 - fit, nothing) for fit, nothing in fits if fit is not None]
    turned = [float(answer.turned_away) for answer in answers]
    labels = [not answer.query.gold for answer in answers]
    precision, recall = precision_recall(turned, labels, 0.5)
    answered = [t for t, label in zip(turned, labels, strict=True) if not label]
    return {
        "auroc": auroc([score for score, _ in scored], [label for _, label in scored]) if scored else None,
        "precision": precision,
        "recall": recall,
        "turned_away": float(np.mean(answered)) if answered else None,
    }


def _menu(answers: Sequence[Answer], selector: Selector) -> dict[str, float]:
    sizes = [len(answer.slice.menu) for answer in answers]
    tokens = [sum(selector.token_cost(entry.tool_id) for entry in answer.slice.menu) for answer in answers]
    return {"mean_size": float(np.mean(sizes)), "max_size": float(max(sizes)), "mean_tokens": float(np.mean(tokens))}


def _latency(slices: Sequence[Slice]) -> dict[str, dict[str, float]]:
    """p50 and p95 of each stage, and of the whole."""
    stages = list(slices[0].timings_ms)
    times = {stage: np.array([slice_.timings_ms[stage] for slice_ in slices]) for stage in stages}
    times["total"] = np.sum(list(times.values()), axis=0)
    return {
        stage: {"p50": float(np.percentile(values, 50)), "p95": float(np.percentile(values, 95))}
        for stage, values in times.items()
    }

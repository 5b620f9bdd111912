"""Curves: what a longer menu would find, and what more of the past would."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from data.catalog import Catalog
from data.queries import Query
from serving.bundle import Bundle
from serving.embedding_cache import EmbeddingCache
from serving.memory import Usage
from serving.selector import Selector
from serving.settings import SelectorSettings
from training.answers import Answer
from training.metrics import bootstrap_interval, ranked_gains, ranking_metrics

log = logging.getLogger("toolcrib")

SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 20, 40)
SHARES = (0.0, 0.1, 0.25, 0.5, 1.0)
LEARNING_QUERIES = 200
LEARNING_SECONDS = 45.0
_TIMED = 10
_FEW = 30


def menu_curve(answers: Sequence[Answer], selector: Selector) -> dict[str, Any]:
    """`points`: for menus of the first k ranked tools, the recall of all, warm and cold queries, and mean tokens.

    Recall is the share of a query's right tools; a group without a query is None. Abstention and the token budget are
    set aside: `served` is what the menus that were really shown have, with their mean size and tokens.
    """
    asked = [answer for answer in answers if answer.query.gold]
    groups = {"all": asked, "warm": [a for a in asked if a.warm], "cold": [a for a in asked if not a.warm]}
    gains = {id(answer): ranked_gains(answer.slice.ranking, answer.query) for answer in asked}
    points = []
    for size in SIZES:
        point: dict[str, Any] = {"size": size}
        for name, group in groups.items():
            point[name] = _mean([gains[id(a)][:size].sum() / len(set(a.query.gold)) for a in group])
        tokens = [sum(selector.token_cost(tool) for tool in a.slice.ranking[:size]) for a in asked]
        points.append({**point, "tokens": _mean(tokens)})
    shown = [ranked_gains(a.shown, a.query).sum() / len(set(a.query.gold)) for a in asked]
    served = {
        "size": _mean([len(a.slice.menu) for a in asked]),
        "recall": _mean(shown),
        "tokens": _mean([sum(selector.token_cost(entry.tool_id) for entry in a.slice.menu) for a in asked]),
    }
    return {"points": points, "served": served}


def learning_curve(
    bundle: Bundle, catalog: Catalog, queries: Sequence[Query], *, seed: int = 0, seconds: float = LEARNING_SECONDS
) -> dict[str, Any]:
    """nDCG@10 of the bundle as it is, had its memory held a share of the past requests; {} without a past.

    Nothing is trained again: the encoder and the heads have seen the whole log, so the true curve starts lower and is
    steeper. A sample of `queries`, as large as the time allows, the largest shares first. `points`: `share`,
    `requests`, `ndcg@10` and its `interval`; `doubling`: what the last doubling of the log brought, with its paired
    `interval`.
    """
    usage = bundle.usage
    asked = [query for query in queries if query.gold]
    groups = np.unique(usage.group)
    if len(groups) < 2 or not asked:
        return {}
    random = np.random.default_rng(seed)
    sample = [asked[at] for at in random.permutation(len(asked))[:LEARNING_QUERIES].tolist()]
    order, ends = random.permutation(groups), time.monotonic() + seconds
    settings = SelectorSettings(explore_rate=0.0, allow_foreign_catalog=True)
    embeddings = EmbeddingCache()
    measured: dict[float, list[float]] = {}
    for share in sorted(SHARES, reverse=True):
        kept = order[: round(share * len(order))]
        past = with_usage(bundle, only(usage, frozenset(kept.tolist())))
        selector = Selector(past, catalog, settings=settings, embeddings=embeddings)
        values: list[float] = []
        started = time.monotonic()
        for number, query in enumerate(sample):
            if time.monotonic() > ends:
                break
            ranking = selector.select(query.text, request_id=f"learning-{number}").ranking
            values.append(ranking_metrics(ranking, query)["ndcg@10"])
            if not measured and number + 1 == _TIMED:  # a slow machine measures fewer queries, not fewer shares
                a_query = (time.monotonic() - started) / _TIMED
                del sample[max(_FEW, int(seconds / len(SHARES) / a_query)) :]
        if len(values) < len(sample):
            log.info("learning curve: no time left for %g%% of the past", share * 100)
            break
        measured[share] = values
    return _curve(measured, len(order), seed)


def with_usage(bundle: Bundle, usage: Usage) -> Bundle:
    """The same bundle with another past."""
    other = copy.copy(bundle)
    vars(other)["usage"] = usage  # where `cached_property` keeps what it has read
    return other


def only(usage: Usage, groups: frozenset[int]) -> Usage:
    """The past as if nothing but the requests of these groups had ever been asked."""
    return usage.keeping(np.isin(usage.group, list(groups))[usage.query])


def _curve(measured: dict[float, list[float]], requests: int, seed: int) -> dict[str, Any]:
    points = []
    for share in sorted(measured):
        low, high = bootstrap_interval(measured[share], seed)
        points.append(
            {
                "share": share,
                "requests": round(share * requests),
                "ndcg@10": float(np.mean(measured[share])),
                "interval": [low, high],
            }
        )
    if not points:
        return {}
    curve: dict[str, Any] = {"points": points, "queries": len(next(iter(measured.values())))}
    if {0.5, 1.0} <= measured.keys():
        gain = np.subtract(measured[1.0], measured[0.5])
        curve["doubling"] = {"gain": float(gain.mean()), "interval": list(bootstrap_interval(gain, seed))}
    return curve


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if len(values) else None

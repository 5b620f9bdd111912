"""Per query: the figures of each evaluated query, kept so that two bundles can be compared on the same ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from data.queries import Query
from serving.slice import Slice
from training.metrics import ranked_gains, ranking_metrics


def per_query(slices: Sequence[tuple[Query, Slice]], warm: Mapping[str, bool]) -> list[dict[str, Any]]:
    """One row an answered query, in their order.

    `question`: a digest of its words and answers. `warm`: a right tool has a past in the bundle. `retrieved`, `shown`:
    the share of the right tools among the candidates and on the menu; `first`: 1.0 where the first tool on the menu is
    right, else 0.0. `stated`: the relevance of the first candidate, None without a head; `right`: whether it is right.
    `ms`: the time of the whole decision.
    """
    return [_row(query, slice_, warm[query.qid]) for query, slice_ in slices if query.gold]


def question(query: Query) -> str:
    """16 hexadecimal digits that two queries share if they ask the same and have the same answers."""
    alternatives = {gold: sorted(others) for gold, others in sorted(query.gold_alt.items())}
    text = json.dumps([query.qid, query.text, sorted(query.gold), alternatives])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _row(query: Query, slice_: Slice, warm: bool) -> dict[str, Any]:
    candidates = next((tuple(r.scores) for r in slice_.record if r.stage == "retrieve"), ())
    menu = sorted((e for e in slice_.menu if e.rank is not None), key=lambda entry: entry.rank or 0)
    shown = ranked_gains([entry.tool_id for entry in menu], query)
    count = len(set(query.gold))
    relevance = next((r.scores for r in slice_.record if r.stage == "relevance"), {})
    best = slice_.ranking[:1]
    return {
        "question": question(query),
        "warm": warm,
        "ndcg@10": ranking_metrics(slice_.ranking, query)["ndcg@10"],
        "retrieved": float(ranked_gains(candidates, query).sum()) / count,
        "shown": float(shown.sum()) / count,
        "first": float(len(shown) > 0 and shown[0] > 0),
        "stated": relevance.get(best[0]) if best else None,
        "right": bool(ranked_gains(best, query).any()),
        "ms": float(sum(slice_.timings_ms.values())),
    }

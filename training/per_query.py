"""Per query: the figures of each evaluated query, kept so that two bundles can be compared on the same ones."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from data.queries import Query
from training.answers import Answer
from training.metrics import ranked_gains, ranking_metrics

_STEP = re.compile(r"#[0-9]+\Z")


def per_query(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """One row an answered query, in their order.

    `question`: a digest of its words and answers; `trace`: shared by the queries of one trace. `warm`: a right tool has
    a past in the bundle. `retrieved`, `shown`: the share of the right tools among the candidates and on the menu;
    `first`: 1.0 where the first tool on the menu is right, else 0.0. `stated`: the relevance of the first candidate,
    None without a head; `right`: whether it is right. `turned`: 1.0 where it was turned away. `ms`: the time of the
    whole decision.
    """
    return [_row(answer) for answer in answers if answer.query.gold]


def per_no_tool(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """One row a query that nothing fits: `question`, `trace`, and `turned`, 1.0 where it was turned away."""
    return [asked(answer) for answer in answers if not answer.query.gold]


def question(query: Query) -> str:
    """16 hexadecimal digits that two queries share if they ask the same and have the same answers."""
    alternatives = {gold: sorted(others) for gold, others in sorted(query.gold_alt.items())}
    return _digest(json.dumps([query.qid, query.text, sorted(query.gold), alternatives]))


def asked(answer: Answer) -> dict[str, Any]:
    """`question`, `trace` and `turned` of any answer."""
    return {
        "question": question(answer.query),
        "trace": _digest(_STEP.sub("", answer.query.qid)),
        "turned": float(answer.turned_away),
    }


def _row(answer: Answer) -> dict[str, Any]:
    query, ranking = answer.query, answer.slice.ranking
    shown = ranked_gains(answer.shown, query)
    count, best = len(set(query.gold)), ranking[:1]
    return {
        **asked(answer),
        "warm": answer.warm,
        "ndcg@10": ranking_metrics(ranking, query)["ndcg@10"],
        "retrieved": float(ranked_gains(answer.candidates, query).sum()) / count,
        "shown": float(shown.sum()) / count,
        "first": float(len(shown) > 0 and shown[0] > 0),
        "stated": answer.relevance.get(best[0]) if best else None,
        "right": bool(ranked_gains(best, query).any()),
        "ms": float(sum(answer.slice.timings_ms.values())),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

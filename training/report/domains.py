"""Domains: how requests for the tools of each server fare, the servers with the most failures first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from data.catalog import Catalog
from training.answers import Answer
from training.metrics import ranking_metrics
from training.report.failures import failure_of

DOMAINS = 12


def domains(answers: Sequence[Answer], catalog: Catalog) -> list[dict[str, Any]]:
    """Of each domain: `n` requests, `tools` in the catalog, mean `ndcg@10`, `failed` and the commonest failure.

    A request belongs to the domain of its first right tool. Beyond DOMAINS, the rest is one row whose domain is None.
    """
    of: defaultdict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        if answer.query.gold:
            of[catalog[answer.query.gold[0]].domain].append(answer)
    tools = Counter(card.domain for card in catalog)
    rows = [_row(domain, tools[domain], asked) for domain, asked in of.items()]
    order = sorted(range(len(rows)), key=lambda at: (-rows[at]["failed"], -rows[at]["n"], rows[at]["domain"]))
    first = [rows[at] for at in order[:DOMAINS]]
    rest = [rows[at]["domain"] for at in order[DOMAINS:]]
    if rest:
        first.append(_row(None, sum(tools[name] for name in rest), [one for name in rest for one in of[name]]))
    return first


def _row(domain: str | None, tools: int, asked: Sequence[Answer]) -> dict[str, Any]:
    kinds = Counter(failure.kind for answer in asked if (failure := failure_of(answer)) is not None)
    return {
        "domain": domain,
        "tools": tools,
        "n": len(asked),
        "cold": sum(not answer.warm for answer in asked),
        "ndcg@10": float(np.mean([ranking_metrics(one.slice.ranking, one.query)["ndcg@10"] for one in asked])),
        "failed": sum(kinds.values()),
        "mostly": kinds.most_common(1)[0][0] if kinds else None,
    }

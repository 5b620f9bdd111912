"""A training's own report: its held-out requests, asked of its bundle as if they had never been logged."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from data.catalog import Catalog
from data.queries import Query
from serving.bundle import load_bundle
from training.decisions import Decision
from training.evaluation import evaluate_loaded
from training.report.curves import only, with_usage

REQUESTS = 300
NOTE = (
    "Requests of the training's own log, held out of fine-tuning and forgotten by the memory. The heads have seen them,"
    " so calibration and abstention look a little better here than on new requests."
)


def own_report(
    bundle: Path,
    catalog: Catalog,
    held_out: Sequence[Decision],
    equivalents: Mapping[str, Sequence[str]],
    *,
    seed: int = 0,
) -> dict[str, Any] | None:
    """The evaluation of at most REQUESTS held-out requests, one of each that ask the same; None where none has a tool.

    Every held-out request is gone from the bundle's past, not the sample alone: tools that were held out whole meet
    their requests as new ones. Requests of a tenant are asked without the tenant's own past.
    """
    first = {decision.group: decision for decision in reversed(held_out)}
    if not any(decision.tools for decision in first.values()):
        return None
    sample = random.Random(seed).sample(sorted(first), min(REQUESTS, len(first)))
    queries = [_query(first[group], equivalents) for group in sorted(sample)]
    if not any(query.gold for query in queries):
        return None
    found = load_bundle(bundle)
    past = frozenset(np.unique(found.usage.group).tolist()) - first.keys()
    forgetful = with_usage(found, only(found.usage, past))
    return evaluate_loaded(forgetful, catalog, queries, allow_foreign_catalog=True, seed=seed)


def _query(decision: Decision, equivalents: Mapping[str, Sequence[str]]) -> Query:
    asked = f"{decision.tenant}\n{decision.goal}".encode("utf-8", "surrogatepass")
    gold = tuple(tool for tool, _ in decision.tools)
    alternatives = {tool: tuple(sorted(equivalents[tool])) for tool in gold if equivalents.get(tool)}
    return Query(qid=hashlib.sha256(asked).hexdigest()[:16], text=decision.goal, gold=gold, gold_alt=alternatives)

"""Evidence: what lexical search, the vectors and the past say of every tool, for one query.

Training and serving call the same functions here, so a feature cannot mean one thing to the one and another to the
other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serving.cosine import cosines
from serving.features import Signals
from serving.index import Index
from serving.lexical import LexicalScores
from serving.memory import UsageMemory, UsageScores
from serving.retrieval import fuse, in_turns, top

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Evidence:
    """Scores by catalog row. `cosine` and `usage` are None where the query could not be embedded."""

    lexical: LexicalScores
    cosine: Floats | None
    usage: UsageScores | None

    @property
    def knows_usage(self) -> bool:
        return self.usage is not None and bool((self.usage.count > 0).any())


def evidence(
    query: str,
    vector: Floats | None,
    index: Index,
    memory: UsageMemory | None,
    allowed: NDArray[np.bool_] | None = None,
    *,
    forget: int | None = None,
    tenant: str | None = None,
) -> Evidence:
    """All scores for one query; see UsageMemory.scores for `allowed` and `forget`, LexicalIndex.scores for `tenant`."""
    cosine = cosines(index.vectors, vector) if vector is not None and index.vectors is not None else None
    usage = None
    if memory is not None and vector is not None:
        usage = memory.scores(vector, allowed, forget=forget, cosine=cosine)
    return Evidence(index.lexical.scores(query, tenant), cosine, usage)


def rankings(found: Evidence, k: int, rows: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """The rankings that gather candidates, each of at most `k` of `rows`."""
    made = {"bm25": top(found.lexical.ranking, k, rows)}
    if found.cosine is not None:
        made["dense"] = top(found.cosine, k, rows)
    # of these rows alone: that a withheld tool has a past must not change the order of the others
    if found.usage is not None and (found.usage.count[rows] > 0).any():
        made["usage"] = top(found.usage.shrunk, k, rows)
        made["neighbours"] = top(found.usage.vote, k, rows)
    return made


def gather(found: Evidence, k: int, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """At most `k` candidates among `rows` with their fused score, best first.

    The rankings take turns, so that none crowds out another's finds (a tool without a past is found by its card
    alone); their order is the fused one.
    """
    made = list(rankings(found, k, rows).values())
    chosen = in_turns(made, k)
    fused, score = fuse(made, len(rows))
    kept = np.isin(fused, chosen)
    return fused[kept], score[kept]


def signals(found: Evidence, rows: NDArray[np.int64], *, same_domain: Floats | None = None) -> Signals:
    """The candidates' signals (k,) for the relevance head; what is not there is zero, and the rerankers' come later."""
    nothing = np.zeros(len(rows), np.float32)
    cosine = nothing if found.cosine is None else found.cosine[rows]
    usage = found.usage
    return Signals(
        cosine=cosine,
        bm25=found.lexical.bm25[rows],
        name=found.lexical.name[rows],
        exact=found.lexical.exact[rows].astype(np.float32),
        centroid=nothing if usage is None else usage.centroid[rows],
        shrunk=cosine if usage is None else usage.shrunk[rows],
        vote=nothing if usage is None else usage.vote[rows],
        nearest=nothing if usage is None else usage.nearest[rows],
        count=nothing if usage is None else usage.count[rows],
        success_rate=np.ones_like(nothing) if usage is None else usage.success_rate[rows],
        interaction=nothing,
        cross=nothing,
        same_domain=nothing if same_domain is None else same_domain,
        reach=0.0 if usage is None else usage.reach,
    )


def reading_order(seen: Signals, depth: int) -> NDArray[np.int64]:
    """Which candidates a cross-encoder reads: at most `depth`, best first by the better of card and past."""
    first_stage = np.maximum(seen.cosine, seen.shrunk)
    return np.lexsort((np.arange(len(first_stage)), -first_stage))[:depth]


def same_domain(index: Index, rows: NDArray[np.int64], last_tool: str | None) -> Floats:
    """1 where a candidate belongs to the server (domain) of the tool used just before, else 0."""
    row = index.catalog.row.get(last_tool) if last_tool is not None else None
    if row is None or not index.catalog.cards[row].domain:
        return np.zeros(len(rows), np.float32)
    same: Floats = (index.domain[rows] == index.domain[row]).astype(np.float32)
    return same

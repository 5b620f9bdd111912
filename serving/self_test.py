"""Self-test of retrieval: is each tool found by its own words, and if not, what stands above it?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from data.card_text import query_text, shorten
from data.cards import ToolCard
from data.findings import Finding
from data.lint.texts import cut, finding, share_callers
from data.words import split_identifier
from serving.evidence import evidence, gather
from serving.index import Index

TOP_K = 10
"""A tool's own words must bring it back among the first so many: as many as a menu shows."""

Embed = Callable[[str], NDArray[np.float32]]
"""A query's text to its unit vector (d,)."""

_QUERY_CHARACTERS = 300
_SENTENCE_WORDS = 3
_NAMED = 3
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s+|\n")


def self_test(index: Index, embed: Embed | None, k: int = TOP_K) -> Iterator[Finding]:
    """One finding for each tool that one of its examples, or lacking those its summary, does not bring back.

    The search is that of candidates: keywords, and with `embed` the index's vectors; no usage and no rerank, so that a
    newcomer is tested by its card alone. Tools of other tenants are out of the way, as they are for every caller.
    """
    everybody = np.array([row for row, card in enumerate(index.catalog) if not card.tenants], np.int64)
    for row, card in enumerate(index.catalog):
        rows = everybody if not card.tenants else _seen_with(card, index)
        for field, query in own_queries(card):
            found = evidence(query, None if embed is None else embed(query), index, None)
            ranked = gather(found, max(k, 40), rows)[0].tolist()
            place = ranked.index(row) if row in ranked else len(ranked)
            if place >= k:
                yield _not_found(card, field, query, [index.catalog.cards[other] for other in ranked[:_NAMED]])
                break


def own_queries(card: ToolCard) -> Iterator[tuple[str, str]]:
    """(field, query) of a card: its examples, or its summary, or the first sentence of its description."""
    for example in card.examples:
        if example.strip():
            yield "examples", query_text(example)
    if any(example.strip() for example in card.examples):
        return
    for field in ("summary", "description"):
        text = getattr(card, field).strip()
        first = _SENTENCE_END.split(text, maxsplit=1)[0]
        said = first if len(split_identifier(first)) >= _SENTENCE_WORDS else text
        if said:
            yield field, shorten(said, _QUERY_CHARACTERS)
            return


def _seen_with(card: ToolCard, index: Index) -> NDArray[np.int64]:
    return np.array([row for row, other in enumerate(index.catalog) if share_callers(card, other)], np.int64)


def _not_found(card: ToolCard, field: str, query: str, above: list[ToolCard]) -> Finding:
    instead = ", ".join(f"'{other.tool_id}'" for other in above) or "nothing"
    return finding("not-found-by-its-words", card, field, f"'{cut(query)}' brings back {instead} instead")

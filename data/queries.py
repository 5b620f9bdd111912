"""Query: a request with the tools that would serve it, for evaluation."""

from __future__ import annotations

from pydantic import Field

from data.cards import Frozen


class Query(Frozen):
    """`gold` empty = no tool fits. `gold_alt[g]` = tools that count as `g` when they are found."""

    qid: str = Field(min_length=1)
    text: str
    gold: tuple[str, ...] = ()
    gold_alt: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    kind: str = ""

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

    def as_good_as(self, gold: str) -> tuple[str, ...]:
        """A right tool and those that count as it."""
        return (gold, *self.gold_alt.get(gold, ()))

    @property
    def right(self) -> frozenset[str]:
        """Every right tool, those that count as one too."""
        return frozenset(tool for gold in self.gold for tool in self.as_good_as(gold))

"""Answers: what an evaluated query got, stage by stage, as the figures of an evaluation read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from data.queries import Query
from serving.slice import Slice, StageRecord

ABSTAINS = ("ask", "missing_capability")


@dataclass(frozen=True)
class Answer:
    """One query with its slice. `warm`: a right tool has a past in the bundle; False where no tool is right."""

    query: Query
    slice: Slice
    warm: bool

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        """The tools that retrieval found, in its order."""
        return tuple(self._scores("retrieve"))

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """The ranked tools on the menu, best first; core and used tools that were not ranked are none of them."""
        ranked = sorted((e for e in self.slice.menu if e.rank is not None), key=lambda entry: entry.rank or 0)
        return tuple(entry.tool_id for entry in ranked)

    @cached_property
    def relevance(self) -> Mapping[str, float]:
        """Candidate -> its stated relevance; empty without a head."""
        return self._scores("relevance")

    @cached_property
    def good(self) -> frozenset[str]:
        """Every right tool, equivalents too."""
        return self.query.right

    @property
    def turned_away(self) -> bool:
        """Whether the request was told that nothing fits it."""
        return self.slice.abstention.outcome in ABSTAINS

    def dropped_by(self, stage: str) -> Mapping[str, str]:
        """Tool -> the rule by which a stage dropped it."""
        return next((record.dropped for record in self._records(stage)), {})

    def _scores(self, stage: str) -> Mapping[str, float]:
        return next((record.scores for record in self._records(stage)), {})

    def _records(self, stage: str) -> list[StageRecord]:
        return [record for record in self.slice.record if record.stage == stage]

"""Account: what an import met, counted under a reason, with the first place of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Account:
    """Counts of one import, filled by every step of it.

    skipped  what made no trace: lines, records, spans, calls
    noticed  what made a trace all the same, and should be known: a call without a result, a bent clock
    first    where each reason was met first
    """

    files: int = 0
    lines: int = 0
    records: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    noticed: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def skip(self, reason: str, where: str = "", count: int = 1) -> None:
        """Count something that makes no trace."""
        self.skipped[reason] += count
        self._mark(reason, where)

    def notice(self, what: str, where: str = "", count: int = 1) -> None:
        """Count something that is used all the same."""
        self.noticed[what] += count
        self._mark(what, where)

    def _mark(self, reason: str, where: str) -> None:
        if where:
            self.first.setdefault(reason, where)

"""Observer: what the service tells whoever counts. Metrics implement it; the service does not know how."""

from __future__ import annotations

from typing import Protocol

from data.traces import ErrorClass, Outcome
from serving.slice import Slice


class Observer(Protocol):
    """Told of each event once, on whichever thread it happens; must be quick, and must not raise."""

    def decided(self, found: Slice, *, cached: bool, recorded: bool) -> None:
        """A menu was decided, or taken from the cache."""

    def checked(self, verdict: str, rule: str) -> None:
        """A call was checked."""

    def confirmed(self, decision: str) -> None:
        """A person approved or refused a waiting call."""

    def reported(self, outcome: Outcome, error_class: ErrorClass) -> None:
        """The outcome of a call was kept."""

    def swapped(self, what: str, *, accepted: bool) -> None:
        """A new bundle, catalog or policy was taken, or refused."""


class Unobserved:
    """Nobody counts."""

    def decided(self, found: Slice, *, cached: bool, recorded: bool) -> None:
        """Ignored."""

    def checked(self, verdict: str, rule: str) -> None:
        """Ignored."""

    def confirmed(self, decision: str) -> None:
        """Ignored."""

    def reported(self, outcome: Outcome, error_class: ErrorClass) -> None:
        """Ignored."""

    def swapped(self, what: str, *, accepted: bool) -> None:
        """Ignored."""

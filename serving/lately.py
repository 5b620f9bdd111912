"""Lately: how calls ended since the bundle was trained, so that the next request knows it without a restart.

A success that was reported and kept is one more past subgoal of its tenant's memory: it changes votes, vectors and the
tool's rate of success. A failure by the tool's own fault changes that rate alone: whether the tool was the right one,
the next training sees. Neither filters anything. What is known already is not added again, so that a step which
everybody asks for does not make every cached menu stale.

A state of one process, unchanging like a bundle; each outcome gives the next one. `version` names what a tenant sees
of it, and is part of what decisions depend on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from data.catalog import content_hash

CAPACITY = 10_000
"""Outcomes kept over all tenants, 1.5 kB each; beyond it the oldest give way. The next training has them all."""


class Outcome(NamedTuple):
    """Whose request it was, in which words, the tool that was called, and whether it succeeded."""

    tenant: str
    query: str
    tool_id: str
    won: bool = True


@dataclass(frozen=True)
class Lately:
    """Outcomes with the vector (d,) of their query, oldest first. `versions`: tenant -> hash of its own outcomes."""

    vectors: Mapping[Outcome, NDArray[np.float32]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def with_outcome(self, outcome: Outcome, vector: NDArray[np.float32]) -> Lately:
        """What is known after one more outcome; the same object where it was known."""
        if outcome in self.vectors:
            return self
        vectors = {**self.vectors, outcome: vector}
        changed = {outcome.tenant}
        while len(vectors) > CAPACITY:
            oldest = next(iter(vectors))
            del vectors[oldest]
            changed.add(oldest.tenant)
        made = {tenant: content_hash([self.versions.get(tenant, ""), *map(str, outcome)]) for tenant in changed}
        return Lately(vectors, {**self.versions, **made})

    def version(self, tenant: str) -> str:
        """Names what this tenant sees: its own outcomes and those of no tenant; "" for nothing."""
        seen = [self.versions.get(name, "") for name in dict.fromkeys(("", tenant))]
        return content_hash(seen) if any(seen) else ""

    def of(self, tenant: str) -> list[tuple[Outcome, NDArray[np.float32]]]:
        """What this tenant sees, oldest first."""
        return [(outcome, vector) for outcome, vector in self.vectors.items() if outcome.tenant in ("", tenant)]

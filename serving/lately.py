"""Lately: what has been served since the bundle was trained, so that the next request knows it without a restart.

A success that was reported and kept is one more past subgoal of its tenant's memory. It changes votes and vectors, and
filters nothing. Failures wait for the next training, which sees whether another tool then served: an error by itself
says nothing of relevance. What the memory knows already is not added again, so that a step which everybody asks for
does not make every cached menu stale.

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
"""Successes kept over all tenants, 1.5 kB each; beyond it the oldest give way. The next training has them all."""


class Success(NamedTuple):
    """Whose request it was, in which words, and the tool that served it."""

    tenant: str
    query: str
    tool_id: str


@dataclass(frozen=True)
class Lately:
    """Successes with the vector (d,) of their query, oldest first. `versions`: tenant -> hash of its own successes."""

    vectors: Mapping[Success, NDArray[np.float32]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def with_success(self, success: Success, vector: NDArray[np.float32]) -> Lately:
        """What is known after one more success; the same object where it was known."""
        if success in self.vectors:
            return self
        vectors = {**self.vectors, success: vector}
        changed = {success.tenant}
        while len(vectors) > CAPACITY:
            oldest = next(iter(vectors))
            del vectors[oldest]
            changed.add(oldest.tenant)
        made = {tenant: content_hash([self.versions.get(tenant, ""), *success]) for tenant in changed}
        return Lately(vectors, {**self.versions, **made})

    def version(self, tenant: str) -> str:
        """Names what this tenant sees: its own successes and those of no tenant; "" for nothing."""
        seen = [self.versions.get(name, "") for name in dict.fromkeys(("", tenant))]
        return content_hash(seen) if any(seen) else ""

    def of(self, tenant: str) -> list[tuple[Success, NDArray[np.float32]]]:
        """What this tenant sees, oldest first."""
        return [(success, vector) for success, vector in self.vectors.items() if success.tenant in ("", tenant)]

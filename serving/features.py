"""Features: what the relevance head sees of each candidate. One function for training and serving.

Every feature is local to one decision: raw signals, the same signals against the best candidate's (so that they mean
the same on a catalog of 50 tools and one of 10,000), and how much past a tool has, so that a score built on past use
is never compared blindly with one that cannot have any.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

FEATURES_VERSION = "2"

FEATURES: tuple[str, ...] = (
    "cosine",
    "cosine_gap",
    "bm25",
    "bm25_share",
    "name",
    "exact",
    "cosine_gap_new",
    "bm25_share_new",
    "reach_new",
    "newness",
    "centroid",
    "shrunk",
    "shrunk_gap",
    "vote",
    "nearest",
    "log_count",
    "interaction",
    "interaction_gap",
    "interaction_gap_new",
    "cross",
    "cross_gap",
    "success",
    "same_domain",
)
"""Names of the columns of `features`, in order. A bundle stores them and is refused when they differ."""

UNKNOWN_UNTIL = 2.0
"""With so many subgoals served a tool is half new: its first success does not end the favour of being new at once."""
MOST_CERTAIN = 0.99
"""A rate of success speaks for a tool no louder than this one, nor against it."""


@dataclass(frozen=True)
class Signals:
    """Scores of k candidates for one query; every array (k,) float32, in the same order.

    `cosine` to the card vector; `bm25` >= 0; `name` share of the tool's name in the query; `exact` 0 or 1; `centroid,
    shrunk, vote, nearest, count` as in UsageScores; `interaction`, `cross` the rerankers' scores (zeros where one does
    not run); `success_rate` shrunk share of past calls that succeeded, 1 where none is known to have failed;
    `same_domain` 1 where the tool belongs to the server used just before. `reach`: cosine of the nearest past subgoal.
    """

    cosine: Floats
    bm25: Floats
    name: Floats
    exact: Floats
    centroid: Floats
    shrunk: Floats
    vote: Floats
    nearest: Floats
    count: Floats
    interaction: Floats
    cross: Floats
    success_rate: Floats
    same_domain: Floats
    reach: float

    def without_past(self) -> Signals:
        """The same candidates as they look on a catalog's first day: nothing has been used, nothing has failed."""
        none = np.zeros_like(self.cosine)
        past = dict.fromkeys(("centroid", "vote", "nearest", "count"), none)
        return replace(self, **past, shrunk=self.cosine, success_rate=np.ones_like(none), reach=0.0)


def features(s: Signals) -> NDArray[np.float32]:
    """(k, len(FEATURES)) float32 for the k candidates of one decision; k = 0 gives no rows."""
    k = len(s.cosine)
    if k == 0:
        return np.zeros((0, len(FEATURES)), np.float32)
    new = (UNKNOWN_UNTIL / (UNKNOWN_UNTIL + s.count)).astype(np.float32)
    cosine_gap = s.cosine - s.cosine.max()
    bm25_share = s.bm25 / max(float(s.bm25.max()), 1e-6)
    success = np.clip(s.success_rate, 1.0 - MOST_CERTAIN, MOST_CERTAIN)
    interaction_gap = s.interaction - s.interaction.max()
    columns = (
        s.cosine,
        cosine_gap,
        np.log1p(s.bm25),
        bm25_share,
        s.name,
        s.exact,
        cosine_gap * new,
        bm25_share * new,
        np.float32(s.reach) * new,
        new,
        s.centroid,
        s.shrunk,
        s.shrunk - s.shrunk.max(),
        s.vote,
        s.nearest,
        np.log1p(s.count),
        s.interaction,
        interaction_gap,
        interaction_gap * new,
        s.cross,
        s.cross - s.cross.max(),
        np.log(success / (1.0 - success)),
        s.same_domain,
    )
    return np.stack([np.broadcast_to(c, (k,)) for c in columns], axis=1).astype(np.float32)

"""Judged: one subgoal's candidates, best first, before a menu is made of them, with what the judging left behind."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from data.context import Caller, Subgoal
from serving.retrieval import in_turns, serving_any
from serving.slice import Abstention, Degradation, StageRecord


class Run:
    """What one decision leaves behind: times, the record of its stages, what degraded."""

    def __init__(self) -> None:
        self.timings: dict[str, float] = {}
        self.record: list[StageRecord] = []
        self.degradations: list[Degradation] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.timings[name] = (time.perf_counter() - started) * 1000

    def note(
        self, stage: str, kept: int, dropped: Mapping[str, str] | None = None, scores: Mapping[str, float] | None = None
    ) -> None:
        self.record.append(StageRecord(stage=stage, kept=kept, dropped=dict(dropped or {}), scores=dict(scores or {})))

    def degrade(self, stage: str, what: str, kind: Literal["failed", "late", "standing"] = "failed") -> None:
        self.degradations.append(Degradation(stage=stage, what=what, kind=kind))


@dataclass(frozen=True, eq=False)
class Judged:
    """One subgoal judged: candidates as catalog rows, best first, with their relevance (NaN without a trained head).

    `allowed` and `permitted` are bool (n,) by catalog row: past the mask, and past the request filter too. So is
    `needed`: the candidates that a menu with a guarantee needs, None where a menu is as long as it may be.
    """

    goal: Subgoal
    query: str
    who: Caller
    caller_key: str
    rows: NDArray[np.int64]
    relevant: NDArray[np.float64]
    stance: Abstention
    allowed: NDArray[np.bool_]
    permitted: NDArray[np.bool_]
    run: Run
    needed: NDArray[np.bool_] | None = None

    @property
    def stands(self) -> bool:
        """Whether the candidates are to be shown."""
        return self.stance.outcome in ("menu", "widen")


def named(ids: Sequence[str], rows: NDArray[np.int64], scores: NDArray[np.floating]) -> dict[str, float]:
    """Scores of catalog rows by tool id, as a record has them."""
    return {ids[row]: round(float(score), 6) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)}


def merged(judged: Sequence[Judged], n: int) -> NDArray[np.int64]:
    """Candidates of several subgoals in one order: the best of each, then all others by the chance to serve any.

    Rows of a catalog of `n`; for one subgoal its own order.
    """
    if len(judged) == 1:
        return judged[0].rows
    rankings = [one.rows for one in judged]
    best = in_turns([rows[:1] for rows in rankings], n)
    rest = serving_any(rankings, [one.relevant for one in judged], n)
    return np.concatenate([best, rest[~np.isin(rest, best)]])

"""Slice: the resolved menu of one decision, with its record; immutable and comparable byte for byte."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from pydantic import Field

from data.cards import Frozen
from data.catalog import content_hash
from data.context import Subgoal
from data.traces import ErrorClass

Verdict = Literal["allow", "confirm", "dry_run", "deny"]
Outcome = Literal["menu", "ask", "widen", "missing_capability"]


class MenuEntry(Frozen):
    """One tool on the menu. `position` is its place in the emitted (registry) order, `rank` its place by relevance.

    `relevance` is the calibrated probability in [0, 1] that the tool serves the subgoal, None for a tool that is
    on the menu without having been scored (core, already used). `propensity` is the exact chance, over request
    ids, that this request shows the tool.
    """

    tool_id: str
    position: int
    rank: int | None = None
    relevance: float | None = None
    propensity: float = Field(default=1.0, gt=0.0, le=1.0)
    explored: bool = False
    reason: Literal["ranked", "core", "used", "explored"] = "ranked"
    verdict: Verdict = "confirm"
    rule: str = ""


class Abstention(Frozen):
    """Whether anything fits. `fit`: the probability that some tool does; `outcome` "menu": the menu stands.

    `missing_connections`: where nothing fits, those that the caller lacks, may be told of, and would be served by.
    """

    outcome: Outcome = "menu"
    fit: float | None = None
    threshold: float | None = None
    advice: str = ""
    missing_connections: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)


class StageRecord(Frozen):
    """What one stage did: how many tools it left, and which it dropped by which rule. Operators only.

    Slices share records: `dropped` and `scores` are for reading.
    """

    stage: str
    kept: int
    dropped: dict[str, str] = Field(default_factory=dict)
    scores: dict[str, float] = Field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """The hash of this record's JSON, made once: a caller's mask may have dropped ten thousand tools."""
        return content_hash([self.model_dump_json()])


class Degradation(Frozen):
    """Something that did not run as configured, and what stood in for it.

    `kind`: a model `failed`; the answer was `late` and its time budget ended; or it is `standing`, a property of what
    is loaded and configured, which every such request meets.
    """

    stage: str
    what: str
    kind: Literal["failed", "late", "standing"] = "failed"


class Part(Frozen):
    """One subgoal of a decision on several: its own candidates, best first, and whether anything fits it.

    `relevance` is that of its candidates which are on the menu, for this subgoal; empty without a trained head.
    """

    subgoal: Subgoal
    query: str
    menu: tuple[str, ...] = ()
    relevance: dict[str, float] = Field(default_factory=dict)
    ranking: tuple[str, ...] = ()
    abstention: Abstention = Abstention()


class Failure(Frozen):
    """One call that was refused or failed, of a tool that the caller may see."""

    tool_id: str
    error_class: ErrorClass


class Recovery(Frozen):
    """What a slice after a failed call adds: how often this step was tried, what failed, and what to do now.

    `near_misses` and `missing_connections` are there where nothing fits: tools that come nearest, and connections that
    the caller lacks and may be told of. `final`: it is no use to ask again for this step.
    """

    tries: int
    failed: tuple[Failure, ...] = ()
    advice: str = ""
    near_misses: tuple[str, ...] = ()
    missing_connections: tuple[str, ...] = ()
    final: bool = False


class Slice(Frozen):
    """The decision. Everything but `timings_ms` is a function of versions, caller, subgoal and request id."""

    slice_id: str = ""
    request_id: str
    catalog_version: str
    bundle_version: str
    policy_version: str
    caller_key: str
    subgoal: Subgoal
    query: str
    menu: tuple[MenuEntry, ...]
    ranking: tuple[str, ...] = ()
    abstention: Abstention = Abstention()
    degradations: tuple[Degradation, ...] = ()
    record: tuple[StageRecord, ...] = ()
    parts: tuple[Part, ...] = Field(default=(), exclude_if=lambda parts: not parts)
    """Where the decision is on several subgoals: each of them. Written only then."""
    recovery: Recovery | None = Field(default=None, exclude_if=lambda recovery: recovery is None)
    """Where the decision follows a failed call. Written only then."""
    timings_ms: dict[str, float] = Field(default_factory=dict)

    def canonical(self) -> str:
        """The slice as JSON without its timings: equal decisions give equal text."""
        return self.model_dump_json(exclude={"timings_ms", "slice_id"})

    def digest(self) -> str:
        """The hash of all that does not follow from the request id: equal for equal decisions on different requests."""
        rest = self.model_dump_json(exclude={"timings_ms", "slice_id", "request_id", "record"})
        return content_hash([rest, *(stage.digest for stage in self.record)])

    def sealed(self) -> Slice:
        """This slice with its id, which follows from its request id and its digest."""
        return self.model_copy(update={"slice_id": slice_id(self.request_id, self.digest())})

    def public(self) -> Slice:
        """What the caller may see: no stage record, so nothing about tools that were withheld, and no timings."""
        return self.model_copy(update={"record": (), "timings_ms": {}})


def slice_id(request_id: str, digest: str) -> str:
    """The first 16 hexadecimal digits of the hash over a request id and the digest of its decision."""
    return content_hash([request_id, digest])[:16]

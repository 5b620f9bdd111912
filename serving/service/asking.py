"""What an agent asks for, as nouns without a door: the ask, the call that failed before it, the answer."""

from __future__ import annotations

from dataclasses import dataclass

from data.context import Caller, Subgoal
from data.traces import ErrorClass
from serving.slice import Degradation, Slice


@dataclass(frozen=True)
class Failed:
    """A call that was refused or failed: the slice that offered the tool, and how it failed."""

    slice_id: str
    tool_id: str
    error_class: ErrorClass


@dataclass(frozen=True)
class Ask:
    """A menu is wanted for `subgoals`, by `who`; or, with `after`, a new one for the step whose call failed.

    `whole`: what the subgoals were split from. `request` is the whole request in words, for the trace; `trace_id` and
    `step` tie the decision to the agent's run. `degradations`: what did not run as configured before the ask was made;
    the decision's record has them too.
    """

    who: Caller
    subgoals: tuple[Subgoal, ...]
    request_id: str
    after: Failed | None = None
    request: str = ""
    trace_id: str = ""
    step: int = 0
    degradations: tuple[Degradation, ...] = ()
    whole: Subgoal | None = None


@dataclass(frozen=True)
class Decided:
    """The answer to an ask. `cached`: it was known already; `recorded`: it is kept, and survives a crash."""

    found: Slice
    cached: bool
    recorded: bool = False

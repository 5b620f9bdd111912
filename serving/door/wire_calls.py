"""Wire models of calls: the gate before one, what became of it, and its result."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from data.traces import ErrorClass, Outcome
from serving.door.narrowing import CallerBody
from serving.door.wire_fields import STORABLE, WHOLE, Answer, Body, CallVerdict, Count, Id, IdOrNone, ToolId


class CheckBody(Body):
    """A call that the model proposes. `ticket` is what an earlier check gave for this very call."""

    slice_id: Id
    tool_id: ToolId
    arguments: dict[str, Any] = Field(default_factory=dict)
    ticket: Id | None = None
    caller: CallerBody | None = None


class ArgumentProblem(Answer):
    """One thing that is wrong with the arguments: where (a JSON path), what, and what to do."""

    path: str
    code: str
    message: str
    hint: str


class CheckAnswer(Answer):
    """The verdict on the call; `message` and `hint` are written for the model and may be handed to it as they are.

    `available`: the tools that the menu still offers, where this one it does not; `available_wire_names`: their names
    in the formats of the model APIs, in the same order.
    """

    verdict: CallVerdict
    rule: str
    message: str
    hint: str
    errors: list[ArgumentProblem]
    available: list[str]
    available_wire_names: list[str]
    ticket: str | None
    expires: str | None


class ConfirmBody(Body):
    """What a person decided about a call that waits for it."""

    ticket: Id
    decision: Literal["approve", "refuse"]
    note: Annotated[str, Field(max_length=2_000)] = ""
    caller: CallerBody | None = None


class ConfirmAnswer(Answer):
    """The state of the ticket after the decision."""

    state: Literal["approved", "refused"]
    tool_id: str
    expires: str


class OutcomeBody(Body):
    """What became of one call, or of a decision to call nothing (`tool_id` null).

    `key` makes the report idempotent: the first with a key counts, the same one again changes nothing.
    """

    key: Id
    slice_id: Id
    tool_id: ToolId | None
    outcome: Outcome
    error_class: ErrorClass = "none"
    arguments: dict[str, Any] | None = None
    latency_ms: float | None = Field(default=None, ge=0, le=1e9, allow_inf_nan=False)
    cost_usd: float | None = Field(default=None, ge=0, le=1e9, allow_inf_nan=False)
    task_success: bool | None = None
    dry_run: bool = False
    ticket: Id | None = None
    trace_id: IdOrNone = ""
    step: Count | None = None


class OutcomesBody(Body):
    """One outcome, or up to 256."""

    outcomes: list[OutcomeBody] = Field(min_length=1, max_length=256)
    caller: CallerBody | None = None


class StoredOutcome(Answer):
    """Where an outcome has been kept: it survives a crash of the service from here on."""

    key: str
    stored: Literal["database", "spool"]


class OutcomesAnswer(Answer):
    """One line an outcome, in the order given."""

    results: list[StoredOutcome]


class ObservationBody(Body):
    """A tool's result, kept whole so that the model gets a part of it and a handle to the rest."""

    slice_id: Id
    tool_id: ToolId
    content: JsonValue
    media_type: Annotated[str, Field(max_length=128, pattern=STORABLE)] = "text/plain"
    cap_characters: Annotated[int, Field(ge=64, le=100_000), WHOLE] | None = None
    caller: CallerBody | None = None


class ObservationAnswer(Answer):
    """The capped text; `size` is that of the whole, in characters."""

    handle: str
    text: str
    size: int
    truncated: bool


class RangeAnswer(Answer):
    """Characters `start` to `end` (exclusive) of a kept result."""

    handle: str
    text: str
    start: int
    end: int
    size: int
    media_type: str

"""Wire models: what each route takes and gives, with the bounds of every field."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator
from pydantic.config import JsonDict

from data.traces import ErrorClass, Outcome
from serving.disclosure import Format, Level
from serving.door.narrowing import CallerBody
from serving.several import MAX_SUBGOALS
from serving.slice import Verdict

_STORABLE = r"^[^\x00]*$"
"""No database keeps a NUL in a name."""

Id = Annotated[str, Field(min_length=1, max_length=256, pattern=_STORABLE)]
IdOrNone = Annotated[str, Field(max_length=256, pattern=_STORABLE)]
ToolId = Annotated[str, Field(min_length=1, max_length=512, pattern=_STORABLE)]
Goal = Annotated[str, Field(min_length=1, max_length=20_000, json_schema_extra={"pattern": r"\S"})]
"""What is blank is refused by the decision, with the better words."""
Text = Annotated[str, Field(max_length=20_000)]


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""JSON has one kind of number: 3.0 is as whole as 3."""
Count = Annotated[int, Field(ge=0, le=1_000_000), WHOLE]
MenuVerdict = Literal["allow", "confirm", "dry_run", "deny"]
CallVerdict = Literal["allow", "confirm", "dry_run", "deny", "invalid"]
Failing = Literal[
    "validation", "auth", "timeout", "unavailable", "rate_limited", "tool_error", "empty_result", "wrong_tool"
]


class Body(BaseModel):
    """A request's body: unknown fields are refused, and nothing is read as what it is not."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Answer(BaseModel):
    """A response."""

    model_config = ConfigDict(frozen=True)


# select


class SubgoalBody(Body):
    """One step that a tool should serve. `mutation`: true writes, false only reads, absent is not known."""

    goal: Goal
    operations: list[Id] = Field(default_factory=list, max_length=32)
    entities: list[Id] = Field(default_factory=list, max_length=32)
    mutation: bool | None = None
    required_access: list[Id] = Field(default_factory=list, max_length=32)


class MessageBody(Body):
    """One turn of the conversation, as text."""

    role: Literal["system", "user", "assistant", "tool"]
    content: Text


class StateBody(Body):
    """Task state: the open step of the plan, and the tools used last, oldest first."""

    plan: Text = ""
    tools: list[ToolId] = Field(default_factory=list, max_length=64)


class FailedCall(Body):
    """A call that was refused or failed: the slice that offered the tool, and how it failed."""

    slice_id: Id
    tool_id: ToolId
    error_class: Failing


class SearchBody(Body):
    """The arguments of the search tool, as the model wrote them."""

    query: Goal
    mutation: bool | None = None


_ASKED = {"goal": "string", "subgoals": "array", "messages": "array", "search": "object", "after": "object"}
"""What tools may be asked for by, and its JSON type."""
_SAYS_SOMETHING: JsonDict = {"type": "object", "properties": {"content": {"pattern": r"\S"}}}


def _given(name: str, kind: str) -> JsonDict:
    return {"required": [name], "properties": {name: {"type": kind}}}


class SelectBody(Body):
    """What to choose tools for: exactly one of `goal`, `subgoals`, `messages`, `search` and `after`.

    `after` asks again for the step of a slice whose call failed. `split` lets a text of several steps be split.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": [_given(*one) for one in _ASKED.items()]})

    goal: Goal | None = None
    subgoals: list[SubgoalBody] | None = Field(default=None, min_length=1, max_length=MAX_SUBGOALS)
    messages: list[MessageBody] | None = Field(
        default=None, min_length=1, max_length=256, json_schema_extra={"contains": _SAYS_SOMETHING}
    )
    search: SearchBody | None = None
    state: StateBody | None = None
    after: FailedCall | None = None
    split: bool = False
    mutation: bool | None = None
    caller: CallerBody | None = None
    level: Level = "selection"
    format: Format = "text"
    request_id: IdOrNone = ""
    trace_id: IdOrNone = ""
    step: Count = 0

    @model_validator(mode="after")
    def _one_request(self) -> SelectBody:
        if sum(getattr(self, name) is not None for name in _ASKED) != 1:
            raise ValueError("give exactly one of goal, subgoals, messages, search and after")
        if self.messages is not None and not any(message.content.strip() for message in self.messages):
            raise ValueError("none of the messages says anything")
        return self


class Shown(Answer):
    """One tool of the menu. `wire_name` is its name in the formats of the model APIs."""

    tool_id: str
    wire_name: str
    position: int
    rank: int | None
    relevance: float | None
    reason: Literal["ranked", "core", "used", "explored"]
    verdict: MenuVerdict
    rule: str


class Advice(Answer):
    """Whether anything fits (`menu`: it does), how sure that is, and what to do when nothing does."""

    outcome: Literal["menu", "ask", "widen", "missing_capability"]
    fit: float | None = None
    advice: str = ""


class Recovered(Answer):
    """After a failed call: how often the step was tried, what to do now, and what is near where nothing fits.

    `final`: it is no use to ask again for this step.
    """

    tries: int
    advice: str
    near_misses: list[str]
    missing_connections: list[str]
    final: bool


class Step(Answer):
    """One of several steps: its text, and its tools, best first."""

    goal: str
    tools: list[str]
    abstention: Advice


class Versions(Answer):
    """What the decision was made with."""

    catalog: str
    bundle: str
    policy: str


class Degraded(Answer):
    """Something that did not run as configured, and what stood in for it."""

    stage: str
    what: str


class MenuParts(Answer):
    """The menu as the model gets it: what stays the same from turn to turn, then what this turn adds."""

    prefix: JsonValue
    turn: JsonValue


class SelectAnswer(Answer):
    """The slice, as the caller may see it. `recorded`: the decision is in the trace store or its spool."""

    slice_id: str
    request_id: str
    versions: Versions
    query: str
    menu: list[Shown]
    rendered: MenuParts
    abstention: Advice
    parts: list[Step]
    recovery: Recovered | None
    degradations: list[Degraded]
    timings_ms: dict[str, float]
    cached: bool
    recorded: bool


# describe, check, confirm


class DescribeBody(Body):
    """A tool that a slice has shown, and how much of it is wanted."""

    slice_id: Id
    tool_id: ToolId
    level: Literal["selection", "invocation"] = "invocation"
    format: Format = "text"
    caller: CallerBody | None = None


class DescribeAnswer(Answer):
    """The tool's detail in the form asked for."""

    tool_id: str
    wire_name: str
    level: Literal["selection", "invocation"]
    format: Format
    content: JsonValue


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
    """The verdict on the call; `message` and `hint` are written for the model and may be handed to it as they are."""

    verdict: CallVerdict
    rule: str
    message: str
    hint: str
    errors: list[ArgumentProblem]
    available: list[str]
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


# outcomes


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


# observations


class ObservationBody(Body):
    """A tool's result, kept whole so that the model gets a part of it and a handle to the rest."""

    slice_id: Id
    tool_id: ToolId
    content: JsonValue
    media_type: Annotated[str, Field(max_length=128, pattern=_STORABLE)] = "text/plain"
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


# operators


class StageFate(Answer):
    """What one stage did to the tool."""

    stage: str
    fate: Literal["kept", "dropped", "not_reached"]
    rule: str = ""
    score: float | None = None


class ExplainAnswer(Answer):
    """Why the tool was or was not on the menu of the slice."""

    slice_id: str
    tool_id: str
    shown: bool
    verdict: Verdict | None
    rule: str
    stages: list[StageFate]
    summary: str
    versions: Versions


# rerank


class DocumentBody(Body):
    """A document given as an object."""

    text: Text


class RerankBody(Body):
    """Documents to order by a query, in the shape that rerank clients send."""

    query: str = Field(min_length=1, max_length=20_000)
    documents: list[Text | DocumentBody] = Field(min_length=1, max_length=256)
    top_n: Annotated[int, Field(ge=1, le=256), WHOLE] | None = None
    return_documents: bool = False
    model: Annotated[str, Field(max_length=256)] = ""


class RerankResult(Answer):
    """Place of a document in the request, and its relevance in [0, 1]."""

    index: int
    relevance_score: float
    document: dict[str, str] | None = None


class RerankAnswer(Answer):
    """Documents, best first."""

    id: str
    model: str
    results: list[RerankResult]

"""Wire models of menus: what to choose tools for, what was chosen, more about one, and why."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, JsonValue, model_validator
from pydantic.config import JsonDict

from data.context import MAX_SUBGOALS
from serving.disclosure import Format, Level
from serving.door.narrowing import CallerBody
from serving.door.wire_fields import Answer, Body, Count, Failing, Goal, Id, IdOrNone, MenuVerdict, Text, ToolId
from serving.slice import Verdict


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
    """Whether anything fits (`menu`: it does), how sure that is, and what to do when nothing does.

    `missing_connections`: where nothing fits, those that the caller lacks, may be told of, and would be served by.
    """

    outcome: Literal["menu", "ask", "widen", "missing_capability"]
    fit: float | None = None
    advice: str = ""
    missing_connections: list[str] = Field(default_factory=list)


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

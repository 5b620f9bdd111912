"""Events: what every foreign log is read into before it becomes traces."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it was logged, before its name meets the catalog and its outcome is judged.

    `server` is where the log says the tool lives. `offered` are names that the call itself found, where it is a search
    for tools. `answered` is whether the log holds a result, `flag` what the source says of it (True fine, False an
    error, None nothing), `error` the source's own error text, `status` its error code or type.
    """

    name: str
    arguments: Any = None
    server: str = ""
    call_id: str = ""
    answered: bool = False
    payload: Any = None
    flag: bool | None = None
    error: str = ""
    ts: datetime | None = None
    latency_ms: float | None = None
    cost_usd: float | None = None

    def with_result(self, result: Result) -> Call:
        """The call together with its result."""
        return replace(self, answered=True, payload=result.payload, flag=result.flag, error=result.error or self.error)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call, logged apart from it."""

    call_id: str
    payload: Any
    flag: bool | None = None
    error: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation. `searched` and `found` are a provider's own search for tools and its answer."""

    role: Role
    text: str = ""
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    searched: str = ""
    found: tuple[str, ...] | None = None
    ts: datetime | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """One step of an agent: what it wanted, what it could choose from, and the calls that it then made, if any.

    `said` are the model's own words just before, `searched` its search for a tool, `plan` the open step of its plan,
    `request` the user's last words, `hint` words that stand in where there are none of these: the goal is chosen among
    them. `offered` None = the log does not say.
    """

    trace_id: str
    request: str
    said: str = ""
    searched: str = ""
    plan: str = ""
    hint: str = ""
    offered: tuple[str, ...] | None = None
    calls: tuple[Call, ...] = ()
    step: int | None = None
    ts: datetime | None = None
    tenant: str = ""
    agent: str = ""
    task_success: bool | None = None
    where: str = field(default="", compare=False)

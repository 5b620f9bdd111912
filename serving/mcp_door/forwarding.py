"""Forwarding: one call to its server, and what became of it, by the rules that also judge logged calls.

| what happens | outcome, class |
|---|---|
| the server cannot be reached, or ends the connection | failure, `unavailable` |
| no answer within the tool's time | failure, `timeout` |
| the protocol's error "invalid params" / "method not found" | failure, `validation` / `unavailable` |
| any other error of the protocol, or an answer that is not the protocol's | by its text, else `tool_error` |
| an answer, also one that says it is an error | by `outcome_rules.yaml`, from its flag and its content |
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from data.invisible import escaped
from data.logs.events import Call
from data.logs.outcomes import Judge
from data.traces import ErrorClass, Outcome
from serving.mcp_door.credentials import Credentials
from serving.mcp_door.results import answer, cleaned
from serving.mcp_door.upstream import Progress, UpstreamDownError
from serving.mcp_door.upstreams import Route

_SOURCE = "mcp"
_SHOWN = 500
_BY_CODE: Mapping[int, ErrorClass] = {
    types.INVALID_PARAMS: "validation",
    types.METHOD_NOT_FOUND: "unavailable",
    types.REQUEST_TIMEOUT: "timeout",
    types.CONNECTION_CLOSED: "unavailable",
}


@cache
def built_in_judge() -> Judge:
    """The rules that come with toolcrib, read once."""
    return Judge()


@dataclass(frozen=True)
class Forwarded:
    """The answer, without credentials and not capped yet; how it is judged; how long it took, in ms."""

    result: types.CallToolResult
    outcome: Outcome
    error_class: ErrorClass
    latency_ms: float


async def forward(
    route: Route,
    arguments: Mapping[str, Any],
    credentials: Credentials,
    judge: Judge,
    progress: Progress | None = None,
) -> Forwarded:
    """Make the call. Nothing that a server does makes this raise; a cancelled call is cancelled there too."""
    started = time.perf_counter()
    outcome: Outcome = "failure"
    error_class: ErrorClass
    try:
        result = cleaned(await route.call(arguments, progress), credentials)
    except UpstreamDownError as error:
        result, error_class = answer(f"{error}; try again later, or another tool", error=True), "unavailable"
    except TimeoutError:
        said = f"the tool did not answer within {route.timeout_s:g} s; it may still have done its work"
        result, error_class = answer(said, error=True), "timeout"
    except Exception as error:  # whatever a foreign server makes the protocol's library raise
        said = escaped(credentials.hidden(str(error) or type(error).__name__))[:_SHOWN]
        result, error_class = (
            answer(f"the tool's server answered with an error: {said}", error=True),
            _class(error, said, judge),
        )
    else:
        raw = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        judged = judge.verdict(Call(route.tool, answered=True, payload=raw, flag=not result.is_error), _SOURCE)
        outcome, error_class = judged.outcome, judged.error_class
    return Forwarded(result, outcome, error_class, (time.perf_counter() - started) * 1000)


def _class(error: Exception, said: str, judge: Judge) -> ErrorClass:
    if isinstance(error, MCPError) and error.code in _BY_CODE:
        return _BY_CODE[error.code]
    found = judge.verdict(Call("", answered=True, flag=False, error=said), _SOURCE).error_class
    return "tool_error" if found == "none" else found

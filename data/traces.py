"""Trace: one call (or one decision to call nothing) and what became of it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from data.cards import Frozen, Instant

Outcome = Literal["success", "failure", "unknown"]
ErrorClass = Literal[
    "none",
    "validation",
    "auth",
    "timeout",
    "unavailable",
    "rate_limited",
    "tool_error",
    "empty_result",
    "wrong_tool",
]

SILENT_ERRORS: tuple[ErrorClass, ...] = ("auth", "timeout", "unavailable", "rate_limited")
"""Errors that say nothing of relevance: the right tool meets them as often as a wrong one, and cannot serve now."""
FAILING_ERRORS: tuple[ErrorClass, ...] = ("tool_error", "wrong_tool")
"""Errors that are the tool's own fault."""


class Shown(Frozen):
    """One entry of the menu that the agent saw. `propensity` is the chance that it was shown at all."""

    tool_id: str
    position: int = Field(ge=0)
    relevance: float | None = None
    propensity: float = Field(default=1.0, gt=0.0, le=1.0)
    explored: bool = False


class Trace(Frozen):
    """One line a call. Calls of one decision share `trace_id` and `goal`; `tool_id` None = nothing was called.

    `menu` None = the log does not say what was offered. `gold` is an optional human label.
    """

    trace_id: str = Field(min_length=1)
    step: int = 0
    ts: Instant | None = None
    tenant: str = ""
    request: str = ""
    goal: str
    mutation: bool | None = None
    tool_id: str | None = None
    arguments: dict[str, Any] | None = None
    caller: dict[str, Any] | None = None
    catalog_version: str = ""
    bundle_version: str = ""
    slice_id: str = ""
    retrieved: tuple[str, ...] | None = None
    filtered: tuple[str, ...] | None = None
    menu: tuple[Shown, ...] | None = None
    outcome: Outcome = "unknown"
    error_class: ErrorClass = "none"
    latency_ms: float | None = None
    cost_usd: float | None = None
    task_success: bool | None = None
    gold: tuple[str, ...] | None = None

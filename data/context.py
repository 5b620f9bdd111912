"""Subgoal and Caller: what is wanted, and who asks."""

from __future__ import annotations

from pydantic import Field

from data.cards import Frozen, Names

MAX_GOAL_CHARACTERS = 20_000
MAX_SUBGOALS = 8
"""More than this many steps are not one request: each deserves a menu of its own."""


class Subgoal(Frozen):
    """One step that a tool should serve. `mutation`: True writes, False only reads, None is not known."""

    goal: str = Field(max_length=MAX_GOAL_CHARACTERS)
    operations: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    mutation: bool | None = None
    required_access: tuple[str, ...] = ()


class Recent(Frozen):
    """Task state that gives a bare reply its meaning: the open plan step, the last turns, the last tools used."""

    plan: str = ""
    turns: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class Caller(Frozen):
    """Who asks and where. What is not granted is not held: no scopes means no tool that needs one.

    `allowed_tools` is the workflow's own restriction: None restricts nothing, an empty tuple allows nothing.
    """

    principal: str = "anonymous"
    tenant: str = ""
    scopes: Names = ()
    connections: Names = ()
    env: str = ""
    region: str = ""
    flags: Names = ()
    cost_ceiling_usd: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    roles: Names = ()
    allowed_tools: Names | None = None
    used_tools: tuple[str, ...] = ()
    recent: Recent = Recent()

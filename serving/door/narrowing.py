"""A request may narrow what its credential grants, and can never widen it.

| field of the body's `caller` | rule |
|---|---|
| `principal` | another than granted only with `may_act_for` |
| `tenant` | the granted one |
| `env`, `region` | one that the credential allows |
| `scopes`, `connections`, `flags` | some of those granted |
| `roles` | all of those granted, or left out |
| `cost_ceiling_usd`, `allowed_tools` | a bound of the request's own: the stricter of both bounds holds, tool by tool |
| `used_tools`, `recent` | free: they order the menu and open nothing |

Asking for more than is granted is refused, not trimmed: a client that believes it holds a scope would otherwise wonder
where its tools are. The refusal names the field and nothing of what is or is not granted.

Fewer roles are not less: a policy may deny to a role what it allows to everybody else, so whoever could leave out
`contractor` could shed the rule on contractors. The same holds for `env` and `region`, which cannot be emptied.
Scopes, connections and flags only ever open tools (`serving/mask.py`), so less of them is less.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from data.context import Caller, Recent
from serving.door.errors import NOT_PERMITTED, DoorError
from serving.door.granted import Identity
from serving.door.grants import MAX_NAMES, Name

Text = Annotated[str, Field(max_length=20_000)]
ToolId = Annotated[str, Field(max_length=512)]
NamesOrNone = Annotated[tuple[Name, ...], Field(max_length=MAX_NAMES)] | None


class _Given(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class RecentBody(_Given):
    """Task state: the open step of the plan, the last turns, the tools used last, oldest first."""

    plan: Text = ""
    turns: Annotated[tuple[Text, ...], Field(max_length=64)] = ()
    tools: Annotated[tuple[ToolId, ...], Field(max_length=256)] = ()


class CallerBody(_Given):
    """For whom, and within which bounds of its own, a request asks. What is left out or null is as granted."""

    principal: Name | None = None
    tenant: str | None = Field(default=None, max_length=256)
    env: str | None = Field(default=None, max_length=256)
    region: str | None = Field(default=None, max_length=256)
    scopes: NamesOrNone = None
    connections: NamesOrNone = None
    flags: NamesOrNone = None
    roles: NamesOrNone = None
    cost_ceiling_usd: float | None = Field(default=None, ge=0.0)
    allowed_tools: Annotated[tuple[ToolId, ...], Field(max_length=100_000)] | None = None
    used_tools: Annotated[tuple[ToolId, ...], Field(max_length=1024)] = ()
    recent: RecentBody = RecentBody()


def narrow(granted: Identity, body: CallerBody | None) -> Caller:
    """The caller of one request. Raises DoorError 403 that names the first field which asks for more than granted."""
    caller = granted.caller
    if body is None:
        return caller
    if body.principal is not None and body.principal != caller.principal and not granted.may_act_for:
        raise _refused("principal", "leave it out, or use a credential with 'may_act_for: true'")
    _within("tenant", body.tenant, (caller.tenant,))
    _within("env", body.env, (caller.env, *granted.envs))
    _within("region", body.region, (caller.region, *granted.regions))
    if body.roles is not None and set(body.roles) != set(caller.roles):
        raise _refused("roles", "leave them out: a credential's roles always hold, all of them")
    return Caller(
        principal=caller.principal if body.principal is None else body.principal,
        tenant=caller.tenant,
        env=caller.env if body.env is None else body.env,
        region=caller.region if body.region is None else body.region,
        scopes=_some_of("scopes", body.scopes, caller.scopes),
        connections=_some_of("connections", body.connections, caller.connections),
        flags=_some_of("flags", body.flags, caller.flags),
        roles=caller.roles,
        cost_ceiling_usd=_lower(caller.cost_ceiling_usd, body.cost_ceiling_usd),
        allowed_tools=_in_both(caller.allowed_tools, body.allowed_tools),
        used_tools=body.used_tools,
        recent=Recent(plan=body.recent.plan, turns=body.recent.turns, tools=body.recent.tools),
    )


def _within(field: str, asked: str | None, allowed: tuple[str, ...]) -> None:
    if asked is not None and asked not in allowed:
        raise _refused(field)


def _some_of(field: str, asked: tuple[str, ...] | None, granted: tuple[str, ...]) -> tuple[str, ...]:
    if asked is None:
        return granted
    if not set(asked) <= set(granted):
        raise _refused(field)
    return asked


def _lower(granted: float | None, asked: float | None) -> float | None:
    bounds = [bound for bound in (granted, asked) if bound is not None]
    return min(bounds) if bounds else None


def _in_both(granted: tuple[str, ...] | None, asked: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if granted is None or asked is None:
        return granted if asked is None else asked
    return tuple(set(granted) & set(asked))


def _refused(field: str, hint: str = "leave it out, or ask the operator for a credential that grants it") -> DoorError:
    return DoorError(
        403,
        NOT_PERMITTED,
        f"$.caller.{field}: the credential does not grant this",
        path=f"$.caller.{field}",
        hint=hint,
    )

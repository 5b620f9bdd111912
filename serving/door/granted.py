"""What a credential grants, whichever kind it is: a caller, and what the caller may do at the door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from data.context import Caller
from serving.door.errors import NOT_PERMITTED, DoorError
from serving.door.grants import MAX_NAME, MAX_NAMES, MAX_TENANT, Grant, JwtSettings, is_name


@dataclass(frozen=True)
class Identity:
    """Who asks. `name` is the credential's, fit for logs; `caller` is all that it grants, in its default place.

    `envs` and `regions` are the places that a request may choose instead of the caller's.
    """

    name: str
    caller: Caller
    may_act_for: bool = False
    operator: bool = False
    may_confirm: bool = False
    may_send_spans: bool = False
    envs: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()


def of_grant(name: str, grant: Grant, principal: str) -> Identity:
    """The identity that a grant of the file spells out."""
    caller = Caller(
        principal=principal,
        tenant=grant.tenant,
        scopes=grant.scopes,
        connections=grant.connections,
        env=_first(grant.envs),
        region=_first(grant.regions),
        flags=grant.flags,
        cost_ceiling_usd=grant.cost_ceiling_usd,
        roles=grant.roles,
        allowed_tools=grant.allowed_tools,
    )
    rights = grant.may_act_for, grant.operator, grant.may_confirm, grant.may_send_spans
    return Identity(name, caller, *rights, envs=grant.envs, regions=grant.regions)


def of_claims(claims: Mapping[str, object], settings: JwtSettings) -> Identity:
    """The identity of a good token: what it says of itself, and what its roles add.

    Raises DoorError 403 for a token that does not say whose it is, or says something in a form that cannot be read.
    """
    said = settings.claims
    roles = _names(claims, said.roles)
    held = [settings.roles[role] for role in roles if role in settings.roles]
    caller = Caller(
        principal=_required_name(claims, said.principal),
        tenant=settings.tenant if said.tenant is None else _required_name(claims, said.tenant, MAX_TENANT),
        scopes=(*_names(claims, said.scopes), *(name for role in held for name in role.scopes)),
        connections=(*_names(claims, said.connections), *(name for role in held for name in role.connections)),
        env=_first(settings.envs),
        region=_first(settings.regions),
        flags=tuple(name for role in held for name in role.flags),
        cost_ceiling_usd=settings.cost_ceiling_usd,
        roles=roles,
    )
    return Identity(
        "jwt",
        caller,
        may_act_for=any(role.may_act_for for role in held),
        operator=any(role.operator for role in held),
        may_confirm=any(role.may_confirm for role in held),
        may_send_spans=any(role.may_send_spans for role in held),
        envs=settings.envs,
        regions=settings.regions,
    )


def _claim(claims: Mapping[str, object], name: str) -> object:
    """A claim of that very name, else the one that the dotted name reaches, else None."""
    if name in claims:
        return claims[name]
    found: object = claims
    for part in name.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def _required_name(claims: Mapping[str, object], name: str, at_most: int = MAX_NAME) -> str:
    found = _claim(claims, name)
    if not isinstance(found, str) or not is_name(found) or len(found) > at_most:
        raise _unfit(name)
    return found


def _names(claims: Mapping[str, object], name: str | None) -> tuple[str, ...]:
    """A list of names, or one text with spaces between them; absent and null are none."""
    found = None if name is None else _claim(claims, name)
    if found is None or name is None:
        return ()
    listed = found.split() if isinstance(found, str) else found
    if not isinstance(listed, list) or len(listed) > MAX_NAMES:
        raise _unfit(name)
    names = tuple(entry for entry in listed if isinstance(entry, str) and is_name(entry))
    if len(names) < len(listed):
        raise _unfit(name)
    return names


def _unfit(claim: str) -> DoorError:
    return DoorError(
        403,
        NOT_PERMITTED,
        f"the token's claim '{claim}' is missing or not of the form that is expected",
        hint="ask the operator which claims a token needs here",
    )


def _first(places: tuple[str, ...]) -> str:
    return places[0] if places else ""

"""What the file says about who may do what: API keys, tokens of an identity provider, roles.

A name that is not granted is not held; there are no wildcards. Secrets are never in the file: of a key it has the hash.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from data.cards import Instant, Names

MAX_NAMES = 1024
MAX_NAME = 256
MAX_TENANT = 128
"""Characters in a tenant's name, as many as the trace store keys records by."""
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]  # public-key ones only: with a shared secret, whoever can check a token can make one


def is_name(text: str) -> bool:
    """Whether `text` can name a principal, a tenant or a scope: 1 to 256 characters, none of them a control."""
    return 0 < len(text) <= MAX_NAME and text.isprintable()


VISIBLE = r"^[^\x00-\x1f\x7f]*$"
"""As near as a document's pattern comes to what `is_name` asks for."""


def _name(value: object) -> object:
    if isinstance(value, str) and not is_name(value):
        raise ValueError("expected 1 to 256 printable characters")
    return value


def _one_or_more(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


Name = Annotated[
    str, BeforeValidator(_name), Field(json_schema_extra={"minLength": 1, "maxLength": MAX_NAME, "pattern": VISIBLE})
]
NameOrNone = Annotated[str, BeforeValidator(lambda value: value if value == "" else _name(value))]
NameList = Annotated[tuple[Name, ...], Field(max_length=MAX_NAMES)]
NameSet = Annotated[Names, Field(max_length=MAX_NAMES)]


class Part(BaseModel):
    """A part of the file: unknown keys are refused, and nothing is read as what it is not."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Rights(Part):
    """What a holder may do at the door beyond asking for tools.

    `may_act_for`: name another principal in the body, for a backend that serves many people. `operator`: read slices
    and explanations of everybody. `may_confirm`: decide about calls that wait for a person. `may_send_spans`: stream
    spans in, which become traces to learn from.
    """

    may_act_for: bool = False
    operator: bool = False
    may_confirm: bool = False
    may_send_spans: bool = False


class Place(Part):
    """Where a credential works. Of several `envs` or `regions` a body may choose one; the first is the default."""

    tenant: Annotated[NameOrNone, Field(max_length=MAX_TENANT)] = ""
    envs: NameList = ()
    regions: NameList = ()
    cost_ceiling_usd: float | None = Field(default=None, ge=0.0)


class Grant(Rights, Place):
    """A caller, spelled out. `allowed_tools`: None restricts nothing, an empty list allows nothing."""

    scopes: NameSet = ()
    connections: NameSet = ()
    flags: NameSet = ()
    roles: NameSet = ()
    allowed_tools: Annotated[Names, Field(max_length=100_000)] | None = None


class KeyGrant(Grant):
    """One API key: its name, the SHA-256 of the key, and what it grants. `principal` defaults to the name."""

    name: Name
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    principal: NameOrNone = ""
    expires: Instant | None = None


class RoleGrant(Rights):
    """What a role of a token adds to what the token itself says."""

    scopes: NameSet = ()
    connections: NameSet = ()
    flags: NameSet = ()


class Claims(Part):
    """Which claim of a token says what. A dotted name reaches inside (`realm_access.roles`) unless a claim has that
    very name. A claim that is not named here is not read; `principal` and `tenant`, where named, must be there."""

    principal: Name = "sub"
    tenant: Name | None = None
    scopes: Name | None = "scope"
    roles: Name | None = None
    connections: Name | None = None


class JwtSettings(Place):
    """Tokens of one issuer. The keys come from a file or an address, which is asked again after `refresh_seconds`.

    `require` lists claims that must be there besides `iss`, `aud` and `exp`; `nbf` is checked wherever it is. A token
    with a key id that nobody knows asks the address at once, at most every `refetch_seconds`. While the address does
    not answer, its last good keys hold for `stale_seconds`.
    """

    issuer: str = Field(min_length=1)
    audience: Annotated[tuple[Name, ...], BeforeValidator(_one_or_more), Field(min_length=1)]
    jwks_url: str | None = None
    jwks_file: str | None = None
    algorithms: tuple[Algorithm, ...] = Field(default=("RS256", "ES256", "EdDSA"), min_length=1)
    require: NameList = ()
    leeway_seconds: int = Field(default=30, ge=0, le=300)
    refresh_seconds: int = Field(default=300, ge=10)
    refetch_seconds: int = Field(default=30, ge=1)
    stale_seconds: int = Field(default=86_400, ge=0)
    timeout_seconds: float = Field(default=5.0, gt=0.0, le=60.0)
    claims: Claims = Claims()
    roles: dict[Name, RoleGrant] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_source_of_keys(self) -> Self:
        if (self.jwks_url is None) == (self.jwks_file is None):
            raise ValueError("give one of jwks_url and jwks_file")
        if self.jwks_url is not None:
            _check_address(self.jwks_url)
        if self.roles and self.claims.roles is None:
            raise ValueError("roles are granted, and no claim says who has them; name it in claims.roles")
        return self


class IdentitySettings(Part):
    """Who is let in. `dev` is what a caller without a credential gets under `--dev`, on this machine only."""

    keys: tuple[KeyGrant, ...] = ()
    jwt: JwtSettings | None = None
    dev: Grant = Grant(may_act_for=True, operator=True, may_confirm=True, may_send_spans=True)

    @model_validator(mode="after")
    def _keys_apart(self) -> Self:
        for field in ("name", "sha256"):
            places: dict[str, int] = {}
            for index, key in enumerate(self.keys):
                first = places.setdefault(getattr(key, field), index)
                if first != index:
                    raise ValueError(f"keys[{index}] has the {field} of keys[{first}]; each key needs its own")
        return self


def _check_address(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK_NAMES):
        raise ValueError("jwks_url must start with https:// (http:// only to this machine)")
    if parts.username is not None or parts.password is not None:
        raise ValueError("jwks_url must not hold a password")
    if not parts.hostname:
        raise ValueError("jwks_url names no host")

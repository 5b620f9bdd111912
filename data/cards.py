"""ToolCard: all that is known of one tool, indexed text and unindexed rules apart."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import IntEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, field_validator


def _sorted_unique(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


Names = Annotated[tuple[str, ...], AfterValidator(_sorted_unique)]
"""A set of names with one canonical form: sorted, without repeats."""


def _as_utc(value: datetime) -> datetime:
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("is outside the years 1 to 9999 in UTC") from error


Instant = Annotated[datetime, AfterValidator(_as_utc)]
"""A moment, kept in UTC; one given without a zone is taken as UTC, so that any two can be compared."""


class Risk(IntEnum):
    """What a call of the tool can do to the world; ordered, so that a bound is a comparison."""

    READ_ONLY = 0
    WRITE = 1
    DESTRUCTIVE = 2

    @property
    def word(self) -> str:
        return self.name.lower()


class Trust(IntEnum):
    """Whether the source's own claims about the tool are believed."""

    THIRD_PARTY = 0
    TRUSTED = 1

    @property
    def word(self) -> str:
        return self.name.lower()


class Frozen(BaseModel):
    """Base of the immutable nouns: strict about types, silent about unknown keys (loaders count those)."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="constants")


class Requires(Frozen):
    """What a caller must hold, all of it, before the tool exists for them."""

    connections: Names = ()
    scopes: Names = ()


def _parse_risk(value: object) -> Risk:
    if isinstance(value, Risk):
        return value
    if isinstance(value, str) and value.upper() in Risk.__members__:
        return Risk[value.upper()]
    raise ValueError("expected read_only, write or destructive")


def _parse_trust(value: object) -> Trust:
    if isinstance(value, Trust):
        return value
    if isinstance(value, str) and value.upper() in Trust.__members__:
        return Trust[value.upper()]
    raise ValueError("expected trusted or third_party")


RiskField = Annotated[Risk, BeforeValidator(_parse_risk), PlainSerializer(lambda r: r.word, return_type=str)]
TrustField = Annotated[Trust, BeforeValidator(_parse_trust), PlainSerializer(lambda t: t.word, return_type=str)]


class ToolCard(Frozen):
    """One tool. Text fields are indexed and shown; rule fields are only ever compared.

    A rule field that is not given means the careful reading: no risk given = destructive; no trust given =
    third_party; no cost given = unknown, which no cost ceiling admits.
    """

    # indexed
    tool_id: str = Field(min_length=1, max_length=512)
    name: str = Field(min_length=1, max_length=512)
    domain: str = ""
    server_description: str = Field(default="", exclude_if=lambda text: not text)
    """What the server says of itself. Searched, never shown; a card without it is written without it."""
    summary: str = ""
    description: str = ""
    capabilities: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    input_concepts: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    not_for: tuple[str, ...] = ()
    prefer_over: tuple[str, ...] = ()

    # not indexed
    requires: Requires = Requires()
    tenants: Names = ()
    envs: Names = ()
    regions: Names = ()
    flags: Names = ()
    risk: RiskField = Risk.DESTRUCTIVE
    dry_run: bool = False
    cost_usd: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    p50_ms: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    owner: str = ""
    schema_version: str = ""
    input_schema: dict[str, Any] = Field(default_factory=dict)
    core: bool = False
    trust: TrustField = Trust.THIRD_PARTY
    advertise: bool = False
    first_seen: Instant | None = None

    @field_validator("tool_id", "name")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Top-level parameter names of `input_schema`, in the schema's order."""
        properties = self.input_schema.get("properties")
        return tuple(properties) if isinstance(properties, dict) else ()

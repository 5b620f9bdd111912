"""The service's one YAML file (`--config service.yaml`), checked whole at start, all its problems at once.

Paths in it are relative to its folder. Secrets are never in it: it names environment variables, files, and hashes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError, model_validator

from data.errors import InputError
from data.strict_yaml import Lines, read_yaml
from serving.door.body import BodyLimits
from serving.door.grants import LOOPBACK_NAMES, IdentitySettings, Part
from serving.settings import SelectorSettings

P = TypeVar("P", bound=BaseModel)


class TraceSettings(Part):
    """Where decisions and outcomes are kept. `database`: a SQLite file or an address without a password; an address
    with one is read from the environment variable `database_env`. `queue`: records that may wait to be written.
    `keep_text: false` keeps salted hashes of what users wrote. `retention_days` None keeps everything."""

    database: str = "traces.db"
    database_env: str | None = None
    spool: str = "traces.spool"
    keep_text: bool = True
    retention_days: int | None = Field(default=None, ge=1)
    queue: int = Field(default=4096, ge=1, le=1_000_000)

    @model_validator(mode="after")
    def _one_database_without_password(self) -> Self:
        if self.database_env is not None and "database" in self.model_fields_set:
            raise ValueError("give one of database and database_env")
        if "://" in self.database and urlsplit(self.database).password is not None:
            raise ValueError("database must not hold a password; name a variable that holds the address: database_env")
        return self


class SplitterSettings(Part):
    """Who splits a request into steps. `remote`: any endpoint that speaks as OpenAI's does, under `base_url`; its key
    is in the environment variable `api_key_env`."""

    kind: Literal["none", "rules", "remote"] = "rules"
    base_url: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    timeout_seconds: float = Field(default=5.0, gt=0.0, le=120.0)

    @model_validator(mode="after")
    def _remote_has_an_address(self) -> Self:
        if self.kind != "remote":
            if self.model_fields_set - {"kind"}:
                raise ValueError(f"only kind: remote has further settings, not kind: {self.kind}")
            return self
        if self.base_url is None or self.model is None:
            raise ValueError("kind: remote needs base_url and model")
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("base_url must start with http:// or https:// and name a host")
        if parts.username is not None or parts.password is not None:
            raise ValueError("base_url must not hold a password; use api_key_env")
        if self.api_key_env is not None and parts.scheme == "http" and parts.hostname not in LOOPBACK_NAMES:
            raise ValueError("base_url must start with https:// where a key is sent (http:// only to this machine)")
        return self


class PoolSettings(Part):
    """Threads that encode, requests that may wait for one, and how long they may be expected to wait, in ms."""

    workers: int = Field(default=1, ge=1, le=256)
    queue: int = Field(default=64, ge=0, le=100_000)
    max_wait_ms: float = Field(default=250.0, ge=0.0)


class CacheSettings(Part):
    """Sizes of the caches; 0 keeps nothing. `slices`: entries, about 110 bytes each. `embeddings`: bytes."""

    slices: int = Field(default=2_000_000, ge=0)
    embeddings: int = Field(default=67_108_864, ge=0)


class ConfirmationSettings(Part):
    """How long an approval may be waited for and used, in seconds."""

    ttl_seconds: int = Field(default=900, ge=1, le=86_400)


class ObservationSettings(Part):
    """How long a stored result is kept, in seconds, and how much of it is shown at once, in characters."""

    ttl_seconds: int = Field(default=86_400, ge=1)
    cap_characters: int = Field(default=4_000, ge=64, le=100_000)


class ShutdownSettings(Part):
    """For how many seconds after SIGTERM requests are still taken, while `/readyz` says 503."""

    linger_seconds: float = Field(default=5.0, ge=0.0, le=300.0)


class OtlpSettings(Part):
    """Spans that agents stream in (`POST /v1/traces`), where `enabled`. `redact`, `mapping` and `rules` are those of
    `toolcrib traces import`.

    A trace is made `settle_seconds` after its last span once its root is there, `idle_seconds` after it without a root,
    and at the latest `age_seconds` after its first; its spans are kept for `remember_seconds` more, so that late and
    repeated ones are known. Bounds: bytes of one request, as sent and unpacked; spans and bytes of one trace; bytes of
    all that is kept of one sender's spans.
    """

    enabled: bool = False
    redact: bool = False
    mapping: str | None = None
    rules: str | None = None
    settle_seconds: float = Field(default=10.0, ge=0.0, le=3_600.0)
    idle_seconds: float = Field(default=120.0, gt=0.0, le=86_400.0)
    age_seconds: float = Field(default=3_600.0, gt=0.0, le=604_800.0)
    remember_seconds: float = Field(default=600.0, ge=0.0, le=604_800.0)
    request_bytes: int = Field(default=20_971_520, ge=1_024, le=268_435_456)
    trace_spans: int = Field(default=10_000, ge=1, le=100_000)
    trace_bytes: int = Field(default=67_108_864, ge=1_024, le=1_073_741_824)
    waiting_bytes: int = Field(default=1_073_741_824, ge=1_024)


class ServiceSettings(Part):
    """The whole file. Without one, the defaults hold and nobody is let in but by `--dev`."""

    identity: IdentitySettings = IdentitySettings()
    limits: BodyLimits = BodyLimits()
    traces: TraceSettings = TraceSettings()
    splitter: SplitterSettings = SplitterSettings()
    pool: PoolSettings = PoolSettings()
    cache: CacheSettings = CacheSettings()
    confirmation: ConfirmationSettings = ConfirmationSettings()
    selector: SelectorSettings = SelectorSettings()
    observations: ObservationSettings = ObservationSettings()
    otlp: OtlpSettings = OtlpSettings()
    shutdown: ShutdownSettings = ShutdownSettings()


def load_settings(path: Path | str) -> ServiceSettings:
    """Read the file. Raises InputError that lists every problem with its line."""
    path = Path(path)
    document, lines = document_of(path)
    settings = checked(ServiceSettings, document, path, lines)
    traces = settings.traces
    if "://" not in traces.database:
        traces = traces.model_copy(update={"database": _beside(path, traces.database)})
    traces = traces.model_copy(update={"spool": _beside(path, traces.spool)})
    files = {name: _beside(path, found) for name in ("mapping", "rules") if (found := getattr(settings.otlp, name))}
    parts = {"traces": traces, "identity": _located(settings.identity, path)}
    return settings.model_copy(update={**parts, "otlp": settings.otlp.model_copy(update=files)})


def load_identity(path: Path | str) -> IdentitySettings:
    """The file's `identity` alone: what is wrong in its other parts shuts nobody out. Raises InputError."""
    path = Path(path)
    document, lines = document_of(path)
    identity = document.get("identity", {})
    return _located(checked(IdentitySettings, identity, path, lines, ("identity",)), path)


def _located(identity: IdentitySettings, path: Path) -> IdentitySettings:
    if identity.jwt is None or identity.jwt.jwks_file is None:
        return identity
    found = identity.jwt.model_copy(update={"jwks_file": _beside(path, identity.jwt.jwks_file)})
    return identity.model_copy(update={"jwt": found})


def _beside(path: Path, written: str) -> str:
    return str(path.parent / written)


def document_of(path: Path, example: str = "docs/identity.md") -> tuple[Mapping[str, Any], Lines]:
    """The keys and values of a YAML file, and their lines; `example` is the page that shows a whole one."""
    document, lines = read_yaml(path)
    if document is None:
        return {}, lines
    if not isinstance(document, dict):
        raise InputError("expected keys and values", source=str(path), hint=f"see {example} for a whole file")
    return document, lines


def checked(model: type[P], value: object, path: Path, lines: Lines, above: tuple[str, ...] = ()) -> P:
    """The value as a part of the file, at the path of keys `above`. Raises InputError that lists every problem."""
    try:
        return model.model_validate_json(json.dumps(value), strict=True)  # as JSON: a list is fit for a tuple
    except ValidationError as error:
        problems = [_problem(found, lines, above) for found in error.errors(include_url=False, include_input=False)]
    listed = "\n".join(f"  - {problem}" for problem in dict.fromkeys(problems))
    raise InputError(f"the settings cannot be used:\n{listed}", source=str(path))


def _problem(found: Any, lines: Lines, above: tuple[str, ...]) -> str:
    """One problem as `line 3, pool.workers: what`; values are not repeated, one may be a secret in the wrong place."""
    place = (*above, *found["loc"])
    known = next(place[:size] for size in range(len(place), -1, -1) if place[:size] in lines or not size)
    line = f"line {lines[known]}, " if known in lines else ""
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
    if found["type"] == "extra_forbidden":
        said = "unknown key; check its spelling"
    elif found["type"] == "model_type":
        said = "expected keys and values"
    else:
        said = found["msg"].removeprefix("Value error, ")
    return f"{line}{where or 'the file'}: {said}"

"""The file that names the upstream servers (`--upstreams upstreams.yaml`), checked whole at start.

Credentials are never in it: it names environment variables, and entries of a secrets file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator

from data.cards import Trust, TrustField
from data.importers.terms import Terms
from serving.door.grants import Name, NameOrNone, Part
from serving.door.settings import checked, document_of

_EXAMPLE = "docs/mcp.md"


class Taken(Part):
    """Where a value comes from: an environment variable, an entry of the secrets file, or, if it is none, the file."""

    env: Name | None = None
    secret: Name | None = None
    value: str | None = None
    prefix: str = ""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if sum(place is not None for place in (self.env, self.secret, self.value)) != 1:
            raise ValueError("give one of env, secret and value")
        return self


def _one_or_more(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


class ToolSettings(Part):
    """One tool by the name that its server gives it. `dry_run_argument` is the argument that makes a call a dry run."""

    timeout_seconds: float | None = Field(default=None, gt=0.0, le=3600.0)
    dry_run_argument: Name | None = None


class UpstreamSettings(Part):
    """One server: a `url` (streamable HTTP) or a `command` (stdio), and the terms that its tools were imported on.

    `url` is an address, or where an address that holds a credential comes from. A started server sees of this process's
    environment what a shell needs, and `environment`.
    """

    url: str | Taken | None = None
    command: Annotated[tuple[str, ...], BeforeValidator(_one_or_more)] = ()
    headers: dict[Name, Taken] = Field(default_factory=dict)
    environment: dict[Name, Taken] = Field(default_factory=dict)
    tenant: NameOrNone = ""
    trust: TrustField = Trust.THIRD_PARTY
    timeout_seconds: float = Field(default=30.0, gt=0.0, le=3600.0)
    tools: dict[Name, ToolSettings] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if (self.url is None) == (not self.command):
            raise ValueError("give one of url and command")
        if self.command and self.headers:
            raise ValueError("headers are for a url; a command takes environment")
        if self.url is not None and self.environment:
            raise ValueError("environment is for a command; a url takes headers")
        if isinstance(self.url, str):
            parts = urlsplit(self.url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("url must start with http:// or https:// and name a host")
            if parts.username is not None or parts.password is not None or parts.query:
                raise ValueError("url must hold no password and no query; take such an address from env or secret")
        return self

    def terms(self, server: str) -> Terms:
        """The terms under which the server's tools get their ids and their risk."""
        return Terms(server=server, tenant=self.tenant, trust=self.trust, skip_bad=True)

    def timeout_of(self, tool: str) -> float:
        """Seconds that a call of the tool may take."""
        own = self.tools.get(tool, ToolSettings()).timeout_seconds
        return self.timeout_seconds if own is None else own


class UpstreamsFile(Part):
    """The whole file. `check_seconds`: how often a server is asked for its tools without having said that they changed.

    `secrets_file` is beside this file unless its path is absolute.
    """

    upstreams: dict[Name, UpstreamSettings] = Field(min_length=1)
    secrets_file: str | None = None
    check_seconds: float = Field(default=60.0, gt=0.0, le=86_400.0)

    @model_validator(mode="after")
    def _ids_apart(self) -> Self:
        """No tool of one server may bear an id that could be another's."""
        for one, its in self.upstreams.items():
            for other, whose in self.upstreams.items():
                if one != other and its.tenant == whose.tenant and other.startswith(f"{one}."):
                    raise ValueError(f"upstreams '{one}' and '{other}' could have tools of one id; rename one")
        return self


def load_upstreams(path: Path | str) -> UpstreamsFile:
    """Read the file. Raises InputError that lists every problem with its line."""
    path = Path(path)
    document, lines = document_of(path, _EXAMPLE)
    found = checked(UpstreamsFile, document, path, lines)
    if found.secrets_file is None:
        return found
    return found.model_copy(update={"secrets_file": str(path.parent / found.secrets_file)})

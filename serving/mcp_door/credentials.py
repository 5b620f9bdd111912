"""Credentials for upstream servers: read where the file says they are, and taken out of whatever leaves."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote, urlsplit

from data.errors import InputError
from data.importers.live import Server
from data.strict_yaml import read_yaml
from serving.mcp_door.settings import Taken, UpstreamSettings, UpstreamsFile

HIDDEN = "[credential]"
_SHORTEST = 4
"""Characters; a shorter value is in many words, and is no credential that could be kept."""


class Credentials:
    """Reads values, and knows every one that it has read. Threads may share it."""

    def __init__(self, secrets_file: str | None, environment: Mapping[str, str] | None = None) -> None:
        self._file = None if secrets_file is None else Path(secrets_file)
        self._environment = os.environ if environment is None else environment
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._lock = Lock()

    def server(self, settings: UpstreamSettings) -> Server:
        """Where an upstream is reached, with its credentials as they are now. InputError for one that is not there."""
        secrets = self._secrets()
        url = (
            settings.url if isinstance(settings.url, str) or settings.url is None else self._read(settings.url, secrets)
        )
        if isinstance(settings.url, Taken) and settings.url.value is None:
            self._know(_parts_of(url or ""))
        return Server(
            url=url or "",
            command=settings.command,
            headers={name: self._read(taken, secrets) for name, taken in settings.headers.items()},
            environment={name: self._read(taken, secrets) for name, taken in settings.environment.items()},
            timeout_s=settings.timeout_seconds,
        )

    def hidden(self, text: str) -> str:
        """The text with every credential in it taken out."""
        pattern = self._pattern
        return text if pattern is None else pattern.sub(HIDDEN, text)

    def hidden_json(self, value: Any) -> Any:
        """A JSON value with every credential taken out of its texts and keys."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.hidden(value)
        if isinstance(value, dict):
            return {self.hidden(str(key)): self.hidden_json(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.hidden_json(item) for item in value]
        return value

    def _read(self, taken: Taken, secrets: Mapping[str, str]) -> str:
        if taken.value is not None:
            return taken.prefix + taken.value
        if taken.env is not None:
            found = self._environment.get(taken.env)
            where = f"the environment variable {taken.env}"
        else:
            found = secrets.get(str(taken.secret))
            where = f"the entry '{taken.secret}' of the secrets file"
        if not found:
            raise InputError(f"{where} is not set", source="the upstreams", hint="set it, or correct its name")
        self._know([found])
        return taken.prefix + found

    def _know(self, values: list[str]) -> None:
        with self._lock:
            self._known.update(value for value in values if len(value) >= _SHORTEST)
            forms = {form for value in self._known for form in (value, quote(value, safe=""))}
            longest_first = sorted(forms, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def _secrets(self) -> dict[str, str]:
        if self._file is None:
            return {}
        document, _ = read_yaml(self._file)
        if document is None:
            return {}
        if not isinstance(document, dict) or not all(isinstance(value, str) for value in document.values()):
            raise InputError("expected names and texts", source=str(self._file), hint="one `name: value` a line")
        return document


def _parts_of(url: str) -> list[str]:
    """What may be the credential in an address: its query, each value of it, its password, the last of its path."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return [url]
    values = [pair.partition("=")[2] for pair in parts.query.split("&")]
    return [url, parts.query, *values, parts.password or "", parts.path.rpartition("/")[2]]


def check_credentials(found: UpstreamsFile, credentials: Credentials) -> None:
    """Read every credential once. Raises InputError that lists all that are not there."""
    problems = list(dict.fromkeys(_problems(found, credentials)))
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise InputError(f"credentials are missing:\n{listed}", source="the upstreams")


def _problems(found: UpstreamsFile, credentials: Credentials) -> Iterator[str]:
    for name, settings in found.upstreams.items():
        try:
            credentials.server(settings)
        except InputError as error:
            yield f"{name}: {error.problem}"

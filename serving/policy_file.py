"""Policy files: YAML in, a checked policy or all that is wrong with it out; reloaded when the file changes."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from pydantic import ValidationError

from data.errors import InputError, PolicyError
from data.strict_yaml import Lines, read_yaml
from serving.policy import DEFAULT_RULE, Condition, RiskPolicy

_LOG = logging.getLogger("toolcrib.policy")
_SETTLED_NS = 100_000_000
"""A file changed less than this before it was read may change again and keep its time stamp."""


def load_policy(path: Path | str) -> RiskPolicy:
    """Read a policy from YAML. Raises PolicyError that lists every problem of the file at once, each with its line."""
    try:
        loaded, lines = read_yaml(Path(path))
    except InputError as error:
        raise PolicyError(f"the policy cannot be used: {error}") from error
    try:
        policy = RiskPolicy.model_validate(loaded)
    except ValidationError as error:
        raise PolicyError(listed(path, described(error, lines))) from error
    problems = _contradictions(policy, lines)
    if problems:
        raise PolicyError(listed(path, problems))
    return policy


def policy_json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a policy file, for editors and other checkers."""
    schema = RiskPolicy.model_json_schema(mode="validation")
    for model in [schema, *schema["$defs"].values()]:
        for name, field in model.get("properties", {}).items():
            model["properties"][name] = _without_null(field)
    schema["properties"]["rules"]["minItems"] = 1
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


class _Stamp(NamedTuple):
    """What tells one state of a file from another without reading it."""

    modified_ns: int
    size: int
    inode: int


class PolicyFile:
    """A policy that follows its file. Threads may share it.

    Raises PolicyError if the file is not usable at first. A later change that is not usable is refused and logged, and
    the policy before it stays.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._lock = Lock()
        self._policy = load_policy(self.path)
        self._digest = ""
        self._stamp: _Stamp | None = None  # never equal to a file's: the first look makes sure of what was read
        self.refused = 0

    @property
    def current(self) -> RiskPolicy:
        """The policy to go by at this moment; costs a look at the file's time stamp while nothing changes."""
        stamp = self._looked_at()
        if stamp is None or stamp != self._stamp:
            with self._lock:
                if stamp is None or stamp != self._stamp:
                    self._follow(stamp)
        return self._policy

    def _looked_at(self) -> _Stamp | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return _Stamp(found.st_mtime_ns, found.st_size, found.st_ino)

    def _follow(self, stamp: _Stamp | None) -> None:
        digest = self._hash()
        if digest != self._digest:
            self._digest = digest
            try:
                policy = load_policy(self.path)
            except PolicyError as error:
                self.refused += 1
                _LOG.error("the policy before it stays in force: %s", error)
            else:
                if policy.version != self._policy.version:
                    _LOG.info("policy %s replaces %s", policy.version, self._policy.version)
                self._policy = policy
        settled = stamp is not None and time.time_ns() - stamp.modified_ns > _SETTLED_NS
        self._stamp = stamp if settled else None

    def _hash(self) -> str:
        try:
            return hashlib.sha256(self.path.read_bytes()).hexdigest()
        except OSError as error:
            return f"unreadable: {error.strerror}"


def _contradictions(policy: RiskPolicy, lines: Lines) -> list[str]:
    """What is well formed and still cannot be meant."""
    problems: list[str] = []
    if not policy.rules:
        problems.append("rules: there are none, so everything would be denied; write at least one")
    seen: dict[str, int] = {}
    for index, rule in enumerate(policy.rules):
        where = f"{_line(lines, ('rules', index))}rules[{index}] '{rule.name}'"
        if rule.name in seen:
            problems.append(
                f"{where}: rules[{seen[rule.name]}] has the same name; names go into the log, keep them apart"
            )
        seen.setdefault(rule.name, index)
        if rule.name == DEFAULT_RULE:
            problems.append(f"{where}: the name is taken by the verdict on what no rule matches; choose another")
        if rule.verdict == "dry_run" and rule.when.dry_run_supported is not True:
            problems.append(f"{where}: only tools that can run dry may be told to; add 'dry_run_supported: true'")
        if rule.verdict != "dry_run" and rule.after_dry_run is not None:
            problems.append(f"{where}: 'after_dry_run' belongs to the verdict dry_run; leave it out")
        if rule.when == Condition() and index < len(policy.rules) - 1:
            problems.append(f"{where}: matches everything, so no rule after it is reached; move it to the end")
    return problems


def described(error: ValidationError, lines: Lines) -> list[str]:
    """Each problem that pydantic found in a YAML document, as `line N, field: message`."""
    found: list[str] = []
    for problem in error.errors(include_url=False):
        path: tuple[str | int, ...] = problem["loc"]
        where = ""
        for part in path:
            where += f"[{part}]" if isinstance(part, int) else f".{part}" if where else str(part)
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            message = "unknown key; check its spelling"
        elif problem["type"] == "model_type":
            where, message = where or "the file", "expected keys and values"
        found.append(f"{_line(lines, path)}{where}: {message}")
    return found


def listed(path: Path | str, problems: list[str], what: str = "the policy") -> str:
    """All the problems of a file as one message, each once."""
    told = "\n".join(f"  - {problem}" for problem in dict.fromkeys(problems))
    return f"{path}: {what} cannot be used:\n{told}"


def _line(lines: Lines, path: tuple[str | int, ...]) -> str:
    """`line N, ` for the nearest part of the path that is in the document."""
    for end in range(len(path), 0, -1):
        if path[:end] in lines:
            return f"line {lines[path[:end]]}, "
    return ""


def _without_null(field: dict[str, Any]) -> dict[str, Any]:
    """A condition is left out or has a value: a written null, which a default of None would admit, is neither."""
    rest = {key: value for key, value in field.items() if key != "default"}
    kinds = [kind for kind in rest.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == len(rest.get("anyOf", ())):
        return rest
    without = {key: value for key, value in rest.items() if key != "anyOf"}
    return {**without, **kinds[0]} if len(kinds) == 1 else {**without, "anyOf": kinds}

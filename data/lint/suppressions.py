"""Suppressions: findings that somebody has looked at and given a reason for."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import ConfigDict, Field, ValidationError

from data.cards import Frozen
from data.errors import InputError
from data.findings import RULES, Finding
from data.lint.texts import finding
from data.strict_yaml import read_yaml


class Suppression(Frozen):
    """Findings of `rule` about the tools that `tools` matches (`*` as in file names), in `field` where it is given."""

    model_config = ConfigDict(extra="forbid")

    rule: str
    tools: str = "*"
    field: str = "*"
    reason: str = Field(min_length=1)

    def covers(self, found: Finding) -> bool:
        """Whether the finding is one of those."""
        if found.rule != self.rule:
            return False
        return fnmatchcase(found.tool_id, self.tools) and fnmatchcase(found.field, self.field)


def read_suppressions(path: Path) -> list[Suppression]:
    """The list in a YAML file. Raises InputError that names every line that is no suppression with a known rule."""
    document, lines = read_yaml(path)
    if not isinstance(document, list) or not document:
        hint = "each '- rule: ..., tools: ..., reason: ...'"
        raise InputError("expected a list of suppressions", source=str(path), hint=hint)
    found: list[Suppression] = []
    problems: list[str] = []
    for number, entry in enumerate(document):
        where = f"line {lines[number,]}"
        try:
            one = Suppression.model_validate(entry, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            unknown = "is no field of a suppression" if first["type"] == "extra_forbidden" else first["msg"]
            problems.append(f"{where}: {field}: {unknown}" if field else f"{where}: expected an object")
            continue
        if one.rule not in RULES:
            problems.append(f"{where}: rule: there is no rule '{one.rule}'")
        elif not one.reason.strip():
            problems.append(f"{where}: reason: is blank; say why the findings are right as they are")
        else:
            found.append(one)
    if problems:
        listed = "\n".join(f"  - {one}" for one in problems)
        raise InputError(f"the suppressions cannot be used:\n{listed}", source=str(path))
    return found


def suppressed(found: Sequence[Finding], suppressions: Sequence[Suppression]) -> list[Finding]:
    """The findings, those that are covered with the reason; a suppression that covers none is a finding of its own."""
    used: set[int] = set()
    marked: list[Finding] = []
    for one in found:
        number = next((n for n, suppression in enumerate(suppressions) if suppression.covers(one)), None)
        if number is None:
            marked.append(one)
        else:
            used.add(number)
            marked.append(one.model_copy(update={"suppressed": suppressions[number].reason}))
    for number, suppression in enumerate(suppressions):
        if number not in used:
            message = f"no finding of '{suppression.rule}' is about '{suppression.tools}' any more"
            marked.append(finding("suppression-unused", None, "suppressions", message))
    return marked

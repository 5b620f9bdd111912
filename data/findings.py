"""Findings of the catalog lint: the rules, and a report as text, JSON or SARIF."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from data.cards import Frozen

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""From the gravest down."""

_COUNTED_FROM = 20


class Rule(NamedTuple):
    """How grave a finding is, what it means, and what to do about it."""

    severity: Severity
    meaning: str
    remedy: str


RULES: dict[str, Rule] = {
    "invisible-text": Rule(
        "error",
        "Text that a model reads holds characters that a person cannot see",
        "Remove the characters at the source; if you did not put them there, find out who did.",
    ),
    "mixed-scripts": Rule(
        "error",
        "A name or a word mixes letters of alphabets that look alike",
        "Write it in the letters of one alphabet.",
    ),
    "out-of-sight": Rule(
        "error",
        "A text goes on after a gap so wide that a reader takes it for the end",
        "Read what stands behind the gap, and close it.",
    ),
    "encoded-text": Rule(
        "warning",
        "A text holds a long code that a model may decode and a person does not read",
        "Take it out, or say in words what it is.",
    ),
    "instructs-the-model": Rule(
        "warning",
        "A text speaks to the model instead of describing the tool",
        "Say what the tool does; leave when to call what, and what to tell whom, to the agent.",
    ),
    "names-another-server": Rule(
        "warning",
        "A text mentions a tool of another server",
        "A tool has no business with another server's; a rival of your own goes into not_for or prefer_over.",
    ),
    "name-shadows": Rule(
        "warning",
        "A third party's tool has the name of a trusted one, or of toolcrib itself",
        "Reject the tool, or have its server rename it.",
    ),
    "name-looks-alike": Rule(
        "error",
        "A name is made of other letters than it seems, and looks like another tool's or server's",
        "Reject the tool until you know who named it so.",
    ),
    "name-shared": Rule(
        "info",
        "Several servers have a tool of this name",
        "Nothing, if each description says whose things it is about; else add that to the summary.",
    ),
    "name-cryptic": Rule(
        "info",
        "The name does not say what the tool does",
        "Rename it verb first (list_invoices), or give it aliases.",
    ),
    "read-only-destroys": Rule(
        "error",
        "The tool counts as read-only and its words say that it destroys",
        "Set its risk to destructive, in an overlay if the source is not yours.",
    ),
    "read-only-writes": Rule(
        "warning",
        "The tool counts as read-only and its words say that it changes something",
        "Set its risk to write, or rename it.",
    ),
    "write-destroys": Rule(
        "warning",
        "The tool counts as one that writes and its words say that it destroys",
        "Set its risk to destructive, or suppress this with the reason why it can be undone.",
    ),
    "description-missing": Rule(
        "warning", "There is nothing but the name to find the tool by", "Write a summary in a user's words."
    ),
    "description-placeholder": Rule(
        "warning", "The description is what a template left there", "Write a summary in a user's words."
    ),
    "description-short": Rule(
        "info", "The description says little more than the name", "Say what for, and with what result."
    ),
    "description-long": Rule(
        "info",
        "The description costs many tokens wherever it is shown",
        "Put what the tool is for into the first two sentences, and the manual elsewhere.",
    ),
    "description-repeated": Rule(
        "warning",
        "Several tools have the same description, so that nothing tells them apart",
        "Say in each what only it does.",
    ),
    "description-boilerplate": Rule(
        "info",
        "Most of what the tools of a server say is the same sentence",
        "Leave it out: it makes every tool of the server look alike to a search.",
    ),
    "near-duplicate": Rule(
        "warning",
        "Two tools say nearly the same, and neither says when to take which",
        "Retire one, or say in not_for or prefer_over of one what the other is for.",
    ),
    "catch-all": Rule(
        "warning",
        "A tool that can be asked for anything competes with every dedicated one",
        "Say what it is for, and put what others do better into not_for.",
    ),
    "schema-invalid": Rule(
        "error",
        "The input schema is none, so that no argument can be checked against it",
        "Correct the schema at the source.",
    ),
    "schema-cyclic": Rule(
        "info",
        "The input schema refers to itself",
        "Bound the nesting if your model's maker refuses recursive schemas.",
    ),
    "required-unknown": Rule(
        "warning",
        "A required parameter is not among the properties",
        "Declare it, or do not require it.",
    ),
    "parameter-undocumented": Rule(
        "info", "A required parameter has no description", "Say what goes there, with an example of its form."
    ),
    "parameter-untyped": Rule("info", "A parameter has no type", "Give it one."),
    "enum-without-meaning": Rule(
        "info", "The values of a parameter are codes, and nothing says for what", "Say it in the description."
    ),
    "owner-missing": Rule(
        "info", "Nobody is named to ask about the tools", "Name one, in an overlay for many at once."
    ),
    "not-found-by-its-words": Rule(
        "warning",
        "A search with the tool's own examples or summary does not bring it back",
        "Look at what stands above it: sharpen the summary, add examples, or set not_for on the other.",
    ),
    "suppression-unused": Rule(
        "info", "A suppression covers no finding any more", "Remove it, so that it does not cover a new one."
    ),
}
"""Every rule by its id. The page on lint says of each what it finds and what it does not."""

_SARIF_LEVEL: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_RULE_INDEX = {name: number for number, name in enumerate(RULES)}
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class Finding(Frozen):
    """One thing to look at. `field` is where in the card; `tool_id` is empty for the catalog as a whole.

    `suppressed` is the reason somebody gave for leaving it as it is. All texts are safe to show: invisible characters
    are escaped.
    """

    rule: str
    severity: Severity
    tool_id: str
    field: str
    message: str
    suppressed: str = ""


def fails(findings: Iterable[Finding], fail_on: Severity) -> bool:
    """Whether a finding that nobody has suppressed is at least as grave as `fail_on`."""
    grave = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    return any(finding.severity in grave and not finding.suppressed for finding in findings)


def to_text(findings: Sequence[Finding]) -> str:
    """One finding a line, then the counts by rule where there are many, and by severity."""
    shown = [finding for finding in findings if not finding.suppressed]
    lines = [f"{f.severity:<7} {f.rule}: {f.tool_id or 'catalog'} ({f.field}): {f.message}" for f in shown]
    if len(shown) > _COUNTED_FROM:
        by_rule = Counter((SEVERITIES.index(finding.severity), finding.rule) for finding in shown)
        lines += ["", *(f"{by_rule[key]:>7} {key[1]}" for key in sorted(by_rule))]
    counts = _counts(shown)
    total = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count) or "nothing to report"
    hidden = len(findings) - len(shown)
    return "\n".join([*lines, f"{total} ({hidden} suppressed)" if hidden else total])


def to_json(findings: Sequence[Finding]) -> str:
    """One JSON object: the findings, and the counts by severity of those that are not suppressed."""
    shown = [finding for finding in findings if not finding.suppressed]
    found = [finding.model_dump(mode="json") for finding in findings]
    return json.dumps({"findings": found, "counts": _counts(shown)}, indent=2)


def to_sarif(findings: Sequence[Finding], source: str = "catalog.jsonl", lines: Mapping[str, int] | None = None) -> str:
    """SARIF 2.1.0 with `source` as the file of every result, and `lines[tool_id]` as its line, else the first."""
    rules = [
        {
            "id": name,
            "shortDescription": {"text": rule.meaning},
            "help": {"text": rule.remedy},
            "defaultConfiguration": {"level": _SARIF_LEVEL[rule.severity]},
        }
        for name, rule in RULES.items()
    ]
    run = {
        "tool": {"driver": {"name": "toolcrib", **_version(), "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, source, (lines or {}).get(finding.tool_id, 1)) for finding in findings],
    }
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _counts(findings: Iterable[Finding]) -> dict[str, int]:
    counts = Counter(finding.severity for finding in findings)
    return {severity: counts[severity] for severity in SEVERITIES}


def _version() -> dict[str, str]:
    try:
        return {"version": version("toolcrib")}
    except PackageNotFoundError:  # run from a source tree
        return {}


def _uri(source: str) -> str:
    """A path as the standard has it: a relative one without a scheme, an absolute one with."""
    return Path(source).as_uri() if Path(source).is_absolute() else quote(Path(source).as_posix())


def _result(finding: Finding, source: str, line: int) -> dict[str, Any]:
    physical = {"artifactLocation": {"uri": _uri(source)}, "region": {"startLine": line}}
    logical = {"fullyQualifiedName": f"{finding.tool_id or 'catalog'}/{finding.field}"}
    result = {
        "ruleId": finding.rule,
        "ruleIndex": _RULE_INDEX[finding.rule],
        "level": _SARIF_LEVEL[finding.severity],
        "message": {"text": f"{finding.tool_id or 'catalog'}: {finding.message}"},
        "locations": [{"physicalLocation": physical, "logicalLocations": [logical]}],
    }
    if finding.suppressed:
        result["suppressions"] = [{"kind": "external", "justification": finding.suppressed}]
    return result

"""Findings of the catalog lint: the rules, and a report as text, JSON or SARIF."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from data.cards import Frozen

Severity = Literal["error", "warning", "info"]

RULES: dict[str, tuple[Severity, str]] = {
    "invisible-text": ("error", "Text that a model reads holds characters that a person cannot see"),
    "mixed-scripts": ("error", "A name mixes letters of scripts that look alike"),
    "instructs-the-model": ("warning", "A text speaks to the model instead of describing the tool"),
    "names-another-server": ("warning", "A text mentions a tool of another server"),
    "read-only-destroys": ("error", "The tool counts as read-only and its name says that it destroys"),
    "read-only-writes": ("warning", "The tool counts as read-only and its name says that it changes something"),
    "description-missing": ("warning", "There is nothing but the name to find the tool by"),
    "description-short": ("info", "The description says little more than the name"),
    "description-long": ("info", "The description costs many tokens wherever it is shown"),
    "description-repeated": ("warning", "Several tools have the same description, so that nothing tells them apart"),
    "parameter-undocumented": ("info", "A required parameter has no description"),
    "catch-all": ("warning", "A tool that claims to do anything competes with every dedicated one"),
    "owner-missing": ("info", "Nobody is named to ask about the tools"),
}
"""Every rule with its severity and what it means."""

_SARIF_LEVEL: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class Finding(Frozen):
    """One thing to look at. `field` is where in the card; `tool_id` is empty for the catalog as a whole.

    All texts are safe to show: invisible characters are escaped.
    """

    rule: str
    severity: Severity
    tool_id: str
    field: str
    message: str


def to_text(findings: Sequence[Finding]) -> str:
    """One finding a line, then the counts by severity."""
    lines = [f"{f.severity:<7} {f.rule}: {f.tool_id or 'catalog'} ({f.field}): {f.message}" for f in findings]
    counts = Counter(finding.severity for finding in findings)
    total = ", ".join(f"{counts[severity]} {severity}" for severity in _SARIF_LEVEL if counts[severity])
    return "\n".join([*lines, total or "nothing to report"])


def to_json(findings: Sequence[Finding]) -> str:
    """One JSON object: the findings, and their counts by severity."""
    counts = Counter(finding.severity for finding in findings)
    found = [finding.model_dump(mode="json") for finding in findings]
    return json.dumps(
        {"findings": found, "counts": {severity: counts[severity] for severity in _SARIF_LEVEL}}, indent=2
    )


def to_sarif(findings: Sequence[Finding], source: str = "catalog.jsonl", lines: Mapping[str, int] | None = None) -> str:
    """SARIF 2.1.0 with `source` as the file of every result, and `lines[tool_id]` as its line where it is given."""
    rules = [
        {
            "id": rule,
            "shortDescription": {"text": meaning},
            "defaultConfiguration": {"level": _SARIF_LEVEL[severity]},
        }
        for rule, (severity, meaning) in RULES.items()
    ]
    run = {
        "tool": {"driver": {"name": "toolcrib", "rules": rules}},
        "results": [_result(finding, source, (lines or {}).get(finding.tool_id)) for finding in findings],
    }
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _result(finding: Finding, source: str, line: int | None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": source}}
    if line is not None:
        physical["region"] = {"startLine": line}
    logical = {"fullyQualifiedName": f"{finding.tool_id or 'catalog'}/{finding.field}"}
    return {
        "ruleId": finding.rule,
        "ruleIndex": list(RULES).index(finding.rule),
        "level": _SARIF_LEVEL[finding.severity],
        "message": {"text": f"{finding.tool_id or 'catalog'}: {finding.message}"},
        "locations": [{"physicalLocation": physical, "logicalLocations": [logical]}],
    }

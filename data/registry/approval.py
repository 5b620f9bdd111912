"""Approval: what speaks against showing a card to a model, and which sources need no person to say yes."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import ConfigDict, Field, ValidationError

from data.cards import Frozen, Risk, RiskField, ToolCard, Trust
from data.errors import InputError
from data.findings import Finding
from data.lint import lint_card
from data.lint.names import lint_mentions, lint_shadows, owners_of_names
from data.lint.texts import model_texts
from data.strict_yaml import read_yaml

BLOCKING = frozenset(
    {
        *("invisible-text", "mixed-scripts", "out-of-sight", "encoded-text", "instructs-the-model"),
        *("names-another-server", "name-shadows", "name-looks-alike", "read-only-destroys", "schema-invalid"),
    }
)
"""Rules of lint whose findings a person has to overrule with a reason; no rule of approval does."""


def objections(cards: Iterable[ToolCard], approved: Iterable[ToolCard]) -> dict[str, list[Finding]]:
    """Blocking findings by tool id, of cards as they would stand beside the approved ones."""
    proposed = {card.tool_id: card for card in cards}
    together = {card.tool_id: card for card in approved} | proposed
    owners = owners_of_names(together.values())
    found: dict[str, list[Finding]] = {}
    for card in proposed.values():
        own = [*lint_card(card), *lint_mentions(card, list(model_texts(card)), owners)]
        found[card.tool_id] = [finding for finding in own if finding.rule in BLOCKING]
    # findings name a tool by its escaped id
    shown = {finding.tool_id: finding.tool_id for findings in found.values() for finding in findings}
    for finding in lint_shadows(together.values()):
        if finding.rule in BLOCKING:
            tool = finding.tool_id if finding.tool_id in found else shown.get(finding.tool_id, "")
            if tool in found:
                found[tool].append(finding)
    return found


class AutoRule(Frozen):
    """Versions that need no person: of sources that `source` matches, of tools that `tools` matches, of a risk of at
    most `max_risk`; with `new_tools` false only changes of tools that a person has approved before."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1)
    source: str = Field(min_length=1)
    tools: str = "*"
    max_risk: RiskField = Risk.READ_ONLY
    new_tools: bool = True


class AutoApproval(Frozen):
    """The rules in their order; none of them approves a third party's card or one with a blocking finding."""

    model_config = ConfigDict(extra="forbid")

    auto_approve: tuple[AutoRule, ...] = ()

    def rule_for(self, card: ToolCard, source: str, known: bool, against: list[Finding]) -> AutoRule | None:
        """The first rule that approves the card; `known` says that a version of it was approved before."""
        if card.trust is not Trust.TRUSTED or against:
            return None
        for rule in self.auto_approve:
            fits = fnmatchcase(source, rule.source) and fnmatchcase(card.tool_id, rule.tools)
            if fits and card.risk <= rule.max_risk and (known or rule.new_tools):
                return rule
        return None


def read_auto_approval(path: Path) -> AutoApproval:
    """The rules in a YAML file, under `auto_approve`. Raises InputError that lists all that is wrong."""
    document, _ = read_yaml(path)
    if not isinstance(document, dict):
        raise InputError("expected 'auto_approve' with a list of rules", source=str(path))
    try:
        return AutoApproval.model_validate(document)
    except ValidationError as error:
        listed = [
            f"  - {'.'.join(str(part) for part in one['loc'])}: {one['msg'].removeprefix('Value error, ')}"
            for one in error.errors(include_url=False)
        ]
        raise InputError("the rules cannot be used:\n" + "\n".join(listed), source=str(path)) from error

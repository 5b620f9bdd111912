"""Catalog lint: what a reviewer should see before tools are shown to a model."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from data.cards import Risk, ToolCard
from data.catalog import Catalog
from data.findings import RULES, Finding, to_json, to_sarif, to_text
from data.invisible import escaped, invisible_characters, mixed_scripts
from data.risk import verb_risk
from data.words import split_identifier

__all__ = ["RULES", "Finding", "lint_catalog", "model_texts", "to_json", "to_sarif", "to_text"]

SHORT_DESCRIPTION = 15
"""Fewer characters than this say little more than the name."""
LONG_DESCRIPTION = 2_000
"""More characters than this cost tokens on every menu; the encoders read the first 300."""

_INSTRUCTIONS = (
    # order of calls, dictated by the tool itself
    re.compile(r"\b(always|must|first)\b[^.]{0,40}\b(call|use|run|invoke)\s+this\s+(tool|function|first)\b", re.I),
    re.compile(r"\bbefore\s+(using|calling|any)\s+(any\s+)?other\s+(tools?|functions?)", re.I),
    # secrecy
    re.compile(r"\b(do\s+not|don't|never)\s+(tell|inform|mention|show|reveal|notify)\b[^.]{0,40}\buser", re.I),
    # the model's own orders
    re.compile(r"\b(ignore|disregard|forget)\b[^.]{0,30}\b(instructions?|rules|prompts?)\b", re.I),
    re.compile(r"<\s*/?\s*(important|system|instructions?|secret)\s*>|<!--", re.I),
    # secrets of the host
    re.compile(r"(?<![\w.])(~/|/home/\w+/|/root/)?\.(ssh|aws|env|netrc)\b|\bid_rsa\b|/etc/passwd", re.I),
)
_CATCH_ALL = re.compile(
    r"\b(any(thing|\s+(task|code|command|request|action|question)s?)|does\s+everything|all\s+kinds\s+of\s+tasks)\b",
    re.I,
)
_MENTION = re.compile(r"[\w.\-]+")
_PROSE = frozenset({"summary", "description", "examples", "not_for"})


def lint_catalog(catalog: Catalog) -> list[Finding]:
    """All findings, in the catalog's order; those about several tools last."""
    foreign = _owners_of_names(catalog)
    findings = [finding for card in catalog for finding in _lint_card(card, foreign)]
    return [*findings, *_lint_together(catalog)]


def model_texts(card: ToolCard) -> Iterator[tuple[str, str]]:
    """(field, text) of everything of a card that can reach a model: words, examples, and the schema's texts."""
    for name in ("tool_id", "name", "domain", "summary", "description"):
        yield name, getattr(card, name)
    for name in ("capabilities", "entities", "input_concepts", "aliases", "examples", "not_for", "prefer_over"):
        for text in getattr(card, name):
            yield name, text
    yield from _schema_texts(card.input_schema, "input_schema")


def _schema_texts(value: Any, field: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield field, key
            yield from _schema_texts(inner, f"{field}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _schema_texts(inner, field)


def _finding(rule: str, card: ToolCard | None, field: str, message: str) -> Finding:
    shown = {"tool_id": card.tool_id if card else "", "field": field, "message": message}
    # folded, so that a text with line ends cannot pass for lines of the report
    safe = {name: " ".join(escaped(text).split()) for name, text in shown.items()}
    return Finding(rule=rule, severity=RULES[rule][0], **safe)


def _lint_card(card: ToolCard, owners: dict[str, set[str]]) -> Iterator[Finding]:
    for field, text in model_texts(card):
        hidden = invisible_characters(text)
        if hidden:
            points = ", ".join(f"U+{ord(character):04X}" for character in hidden[:8])
            yield _finding("invisible-text", card, field, f"holds {points}: {_cut(escaped(text))}")
        order = next((match for pattern in _INSTRUCTIONS if (match := pattern.search(text))), None)
        if order:
            yield _finding("instructs-the-model", card, field, f"says '{_cut(order.group())}'")
        if field.rpartition(".")[2] in _PROSE:
            yield from _mentions(card, field, text, owners)
    for field in ("tool_id", "name", "domain"):
        scripts = mixed_scripts(getattr(card, field))
        if scripts:
            yield _finding("mixed-scripts", card, field, f"mixes {' and '.join(scripts)} letters")
    if card.risk is Risk.READ_ONLY and (verb := verb_risk(card.name)) not in {None, Risk.READ_ONLY}:
        rule = "read-only-destroys" if verb is Risk.DESTRUCTIVE else "read-only-writes"
        yield _finding(rule, card, "risk", f"'{card.name}' does not sound read_only")
    yield from _lint_description(card)
    yield from _lint_parameters(card)


def _lint_description(card: ToolCard) -> Iterator[Finding]:
    said = " ".join(part for part in (card.summary, card.description) if part.strip()).strip()
    if not said:
        yield _finding("description-missing", card, "description", "has no summary and no description")
    elif len(said) < SHORT_DESCRIPTION or split_identifier(said) == split_identifier(card.name):
        yield _finding("description-short", card, "description", f"says only '{said}'")
    elif len(said) > LONG_DESCRIPTION:
        yield _finding("description-long", card, "description", f"is {len(said)} characters long")
    claim = _CATCH_ALL.search(said)
    if claim and len(card.parameter_names) <= 1:
        yield _finding("catch-all", card, "description", f"claims '{claim.group()}'")


def _lint_parameters(card: ToolCard) -> Iterator[Finding]:
    properties, required = card.input_schema.get("properties"), card.input_schema.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return
    for name in required:
        schema = properties.get(name) if isinstance(name, str) else None
        if isinstance(schema, dict) and not str(schema.get("description", "")).strip():
            field = f"input_schema.properties.{name}"
            yield _finding("parameter-undocumented", card, field, f"required parameter '{name}' has no description")


def _owners_of_names(catalog: Catalog) -> dict[str, set[str]]:
    """Domains by the ids and the names of their tools; a name that is not plainly an identifier is no mention."""
    owners: defaultdict[str, set[str]] = defaultdict(set)
    for card in catalog:
        if card.domain:
            owners[card.tool_id].add(card.domain)
            if "_" in card.name or (card.name.isalpha() and len(split_identifier(card.name)) > 1):
                owners[card.name].add(card.domain)
    return owners


def _mentions(card: ToolCard, field: str, text: str, owners: dict[str, set[str]]) -> Iterator[Finding]:
    for word in dict.fromkeys(match.strip(".-") for match in _MENTION.findall(text)):
        domains = owners.get(word)
        if domains and card.domain not in domains:
            yield _finding("names-another-server", card, field, f"mentions '{word}' of '{sorted(domains)[0]}'")


def _lint_together(catalog: Catalog) -> Iterator[Finding]:
    same: defaultdict[str, list[ToolCard]] = defaultdict(list)
    for card in catalog:
        said = " ".join(f"{card.summary} {card.description}".split())
        if said:
            same[said].append(card)
    for cards in same.values():
        if len(cards) > 1:
            others = ", ".join(card.tool_id for card in cards[1:4]) + (", ..." if len(cards) > 4 else "")
            message = f"{len(cards)} tools have this description; also {others}"
            yield _finding("description-repeated", cards[0], "description", message)
    unowned = sum(not card.owner.strip() for card in catalog)
    if unowned:
        yield _finding("owner-missing", None, "owner", f"{unowned} of {len(catalog)} tools name no owner")


def _cut(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."

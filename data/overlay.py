"""Overlay: what owners add to tools that they do not write, in a YAML file beside the source.

A key is a tool id, or `<prefix>.*` for every tool whose id begins with `<prefix>.`; the tool's own entry comes last.
Lists are added to the card's, other fields replace the card's. What limits who may see or call a tool can be made
narrower only, and so can the risk of a third party's tool: lower needs a trusted source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, ValidationError

from data.cards import Frozen, Names, Requires, RiskField, ToolCard, Trust
from data.catalog import Catalog
from data.errors import InputError
from data.strict_yaml import Lines, read_yaml

_ADDED = frozenset({"capabilities", "entities", "input_concepts", "aliases", "examples", "not_for", "prefer_over"})
_LIMITS = frozenset({"tenants", "envs", "regions"})
"""Empty means everybody, so a list added to an empty one narrows, and one that is longer than the card's widens."""
_DEMANDS = frozenset({"flags"})


class RequiresMore(Frozen):
    """Connections and scopes demanded besides the card's own."""

    model_config = ConfigDict(extra="forbid")

    connections: Names = ()
    scopes: Names = ()


class Entry(Frozen):
    """What may be added to a tool. A field that is not given leaves the card's as it is."""

    model_config = ConfigDict(extra="forbid")

    server_description: str | None = None
    summary: str | None = None
    capabilities: tuple[str, ...] | None = None
    entities: tuple[str, ...] | None = None
    input_concepts: tuple[str, ...] | None = None
    aliases: tuple[str, ...] | None = None
    examples: tuple[str, ...] | None = None
    not_for: tuple[str, ...] | None = None
    prefer_over: tuple[str, ...] | None = None
    requires: RequiresMore | None = None
    tenants: Names | None = None
    envs: Names | None = None
    regions: Names | None = None
    flags: Names | None = None
    risk: RiskField | None = None
    dry_run: bool | None = None
    cost_usd: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    p50_ms: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    owner: str | None = None
    core: bool | None = None
    advertise: bool | None = None


@dataclass(frozen=True)
class Overlay:
    """The entries of a file by key, in its order, and the line of each field for what turns out wrong later."""

    source: str
    entries: Mapping[str, Entry]
    lines: Lines

    def apply(self, catalog: Catalog) -> tuple[Catalog, tuple[str, ...]]:
        """The catalog with every entry added, and the keys that fit no tool of it.

        Raises InputError that lists everything at once that would lower a risk or widen who may see a tool.
        """
        used: set[str] = set()
        problems: list[str] = []
        cards = []
        patterns = [key for key in self.entries if key.endswith(".*")]
        for card in catalog:
            own = card
            for key in [*(p for p in patterns if card.tool_id.startswith(p[:-1])), card.tool_id]:
                if key in self.entries:
                    used.add(key)
                    own = self._added(own, key, problems)
            cards.append(own)
        if problems:
            raise _refused(self.source, list(dict.fromkeys(problems)))
        return Catalog(cards), tuple(key for key in self.entries if key not in used)

    def _added(self, card: ToolCard, key: str, problems: list[str]) -> ToolCard:
        entry = self.entries[key]
        changes: dict[str, Any] = {}
        for name in entry.model_fields_set:
            value, old = getattr(entry, name), getattr(card, name)
            if name in _ADDED:
                changes[name] = tuple(dict.fromkeys((*old, *value)))
            elif name in _DEMANDS:
                changes[name] = tuple(sorted({*old, *value}))
            elif name == "requires":
                changes[name] = Requires(
                    connections=(*old.connections, *value.connections), scopes=(*old.scopes, *value.scopes)
                )
            else:
                problem = _widened(card, name, value, old)
                if problem:
                    problems.append(f"line {self.lines[key, name]}: {card.tool_id}.{name}: {problem}")
                changes[name] = value
        return card.model_copy(update=changes)


def read_overlay(path: Path) -> Overlay:
    """The overlay in a YAML file. Raises InputError that lists, with its line, everything that is not an entry."""
    source = str(path)
    document, lines = read_yaml(path)
    if not isinstance(document, dict) or not document:
        raise InputError("expected tool ids, each with what is added to the tool", source=source)
    entries: dict[str, Entry] = {}
    problems: list[str] = []
    for key, fields in document.items():
        if isinstance(fields, dict):
            empty = [name for name, value in fields.items() if value is None]
            problems += [f"line {lines[key, name]}: {key}.{name}: is empty; give a value" for name in empty]
        try:
            # through JSON, where a list is a tuple and "3" is still no number
            entries[key] = Entry.model_validate_json(json.dumps(fields), strict=True)
        except ValidationError as error:
            for found in error.errors(include_url=False):
                problems.append(f"line {_line(lines, (key, *found['loc']))}: {_said(key, found)}")
    if problems:
        raise _refused(source, problems)
    return Overlay(source, entries, lines)


def _widened(card: ToolCard, name: str, value: Any, old: Any) -> str:
    """What forbids the change, or nothing."""
    if name == "risk" and value < old and card.trust is not Trust.TRUSTED:
        return f"{value.word} is below {old.word}, and the source is a third party: import it as trusted, or leave it"
    if name in _LIMITS and old and not (value and set(value) <= set(old)):
        return f"the source allows only {', '.join(old)}; an overlay may narrow that, not widen it"
    return ""


def _said(key: str, problem: Any) -> str:
    where = ".".join(str(part) for part in (key, *problem["loc"]))
    if problem["type"] == "extra_forbidden":
        return f"{where}: is not a field that an overlay may add"
    if problem["type"] in {"model_type", "dict_type"}:
        return f"{where}: expected fields and their values"
    return f"{where}: {problem['msg'].removeprefix('Value error, ')}"


def _line(lines: Lines, path: tuple[str | int, ...]) -> int:
    while path not in lines:
        path = path[:-1]
    return lines[path]


def _refused(source: str, problems: list[str]) -> InputError:
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    listed = "\n".join(f"  - {one}" for one in problems)
    return InputError(f"the overlay cannot be used, {count}:\n{listed}", source=source)

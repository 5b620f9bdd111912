"""One JSON document of tools: read whole, its list found, its definitions made into cards one by one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.cards import ToolCard
from data.catalog import Catalog, card_json
from data.errors import InputError
from data.importers.report import ImportReport
from data.importers.terms import Terms
from data.plain import Place

MAX_CARD_CHARACTERS = 262_144
"""A definition longer than this is no description of a tool; it would fill a model's context many times over."""
_SHOWN_PROBLEMS = 5


@dataclass
class Gathering:
    """What an import has met besides tools: reasons for skipping, unread keys, sentences for a person."""

    skipped: Counter[str] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def pass_over(self, definition: Mapping[str, Any], known: frozenset[str]) -> None:
        """Count the keys of a definition that are not read."""
        self.ignored.update(key for key in definition if key not in known)


Definitions = list[tuple[Any, Place]]
ToCard = Callable[[Mapping[str, Any], Place, Gathering], ToolCard | None]


def read_document(path: Path) -> Any:
    """The JSON value of a whole file. Raises InputError for a missing file, no UTF-8, broken JSON (with its line)."""
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror or error}", source=str(path), hint="check the path and its permissions"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 (byte {error.start + 1})", source=str(path), hint="save it as UTF-8") from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"broken JSON: {error.msg} at column {error.colno}",
            source=str(path),
            line=error.lineno,
            hint="the file holds one JSON document",
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"broken JSON: {error}", source=str(path)) from error


def definitions(tools: Any, place: Place) -> Definitions:
    """The entries of a list, each with its place. Raises InputError for anything but a list."""
    if not isinstance(tools, list):
        raise place.error("expected a list of tools")
    prefix = f"{place.prefix}." if place.prefix else ""
    return [(definition, place._replace(prefix=f"{prefix}{number}")) for number, definition in enumerate(tools)]


def gather(
    found: Definitions, to_card: ToCard, source: str, format: str, seen: Gathering, terms: Terms
) -> tuple[Catalog, ImportReport]:
    """A catalog of the definitions; `to_card` gives None for one that it has counted as skipped.

    A repeated tool, an oversized one and whatever else `to_card` refuses is an InputError, or with
    `terms.skip_bad` a count and, for the first few, a note. Raises InputError if no tool is left.
    """
    cards: dict[str, ToolCard] = {}
    problems: list[InputError] = []
    for definition, place in found:
        try:
            if not isinstance(definition, dict):
                raise place.error("expected an object that defines a tool")
            card = to_card(definition, place, seen)
            if card is None:
                continue
            check_size(card, place)
            if card.tool_id in cards:
                hint = "a name may be given once; remove one"
                raise place.error(f"'{_cut(card.tool_id)}' was defined already", "name", hint)
        except InputError as error:
            if not terms.skip_bad:
                raise
            problems.append(error)
        else:
            cards[card.tool_id] = card
    if problems:
        seen.skipped["not usable"] += len(problems)
        seen.notes += [str(problem) for problem in problems[:_SHOWN_PROBLEMS]]
    if not cards:
        first = f"; the first of {len(problems)} problems: {problems[0]}" if problems else ""
        hint = f"is it in the {format} form?"
        raise InputError(f"there is no tool to import{first}", source=source, hint=hint)
    report = ImportReport(
        source=source,
        format=format,
        read=len(found),
        imported=len(cards),
        skipped=dict(seen.skipped),
        ignored=dict(sorted(seen.ignored.items())),
        notes=tuple(seen.notes),
    )
    return Catalog(cards.values()), report


def check_size(card: ToolCard, place: Place) -> None:
    """Raise InputError, with the longest field's name, for a card of more than MAX_CARD_CHARACTERS."""
    length = len(card_json(card))
    if length > MAX_CARD_CHARACTERS:
        sizes = {name: len(str(getattr(card, name))) for name in type(card).model_fields}
        longest = max(sizes, key=sizes.__getitem__)
        problem = f"the tool is {length:,} characters long, {sizes[longest]:,} of them here"
        raise place.error(problem, longest, f"at most {MAX_CARD_CHARACTERS:,}; shorten it at its source")


def text_of(definition: Mapping[str, Any], key: str, place: Place) -> str:
    """A text that must be there and not be blank."""
    value = definition.get(key)
    if not isinstance(value, str) or not value.strip():
        raise place.error("is missing" if value is None else "expected a text that is not blank", key)
    return value


def title_and_description(info: object) -> str:
    """What an object says of itself under these two keys, as one text; "" for nothing."""
    said = [info.get("title"), info.get("description")] if isinstance(info, dict) else []
    return ". ".join(text.strip() for text in said if isinstance(text, str) and text.strip())


def _cut(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."

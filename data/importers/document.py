"""One JSON document of tools: read whole, its list found, its definitions made into cards one by one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.cards import ToolCard
from data.catalog import Catalog
from data.errors import InputError
from data.importers.report import ImportReport
from data.plain import Place


@dataclass
class Gathering:
    """What an import has met besides tools: reasons for skipping, unread keys, sentences for a person."""

    skipped: Counter[str] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def pass_over(self, definition: Mapping[str, Any], known: frozenset[str]) -> None:
        """Count the keys of a definition that are not read."""
        self.ignored.update(key for key in definition if key not in known)


Definitions = list[tuple[Mapping[str, Any], Place]]
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
    """The objects of a list, each with its place. Raises InputError for anything else."""
    if not isinstance(tools, list):
        raise place.error("expected a list of tools")
    found: Definitions = []
    for number, definition in enumerate(tools):
        here = place._replace(prefix=f"{place.prefix}.{number}" if place.prefix else str(number))
        if not isinstance(definition, dict):
            raise here.error("expected an object that defines a tool")
        found.append((definition, here))
    return found


def gather(
    found: Definitions, to_card: ToCard, path: Path, format: str, seen: Gathering
) -> tuple[Catalog, ImportReport]:
    """A catalog of the definitions; `to_card` gives None for one that it has counted as skipped.

    Raises InputError for a repeated tool and if no tool is left.
    """
    cards: dict[str, ToolCard] = {}
    for definition, place in found:
        card = to_card(definition, place, seen)
        if card is None:
            continue
        if card.tool_id in cards:
            raise place.error(f"'{card.tool_id}' was defined already", "name", "a name may be given once; remove one")
        cards[card.tool_id] = card
    if not cards:
        raise InputError("there is no tool to import", source=str(path), hint=f"is it a file in the {format} form?")
    report = ImportReport(
        source=str(path),
        format=format,
        read=len(found),
        imported=len(cards),
        skipped=dict(seen.skipped),
        ignored=dict(sorted(seen.ignored.items())),
        notes=tuple(seen.notes),
    )
    return Catalog(cards.values()), report


def text_of(definition: Mapping[str, Any], key: str, place: Place) -> str:
    """A text that must be there and not be blank."""
    value = definition.get(key)
    if not isinstance(value, str) or not value.strip():
        raise place.error("is missing" if value is None else "expected a text that is not blank", key)
    return value

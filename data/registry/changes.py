"""Changes between two versions of a card, field by field, with every hidden character written out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from data.cards import ToolCard
from data.invisible import escaped


@dataclass(frozen=True)
class Change:
    """A field, or a place in one, before and after; None where it was not there. Both texts are safe to show."""

    field: str
    before: str | None
    after: str | None


def changes(before: ToolCard | None, after: ToolCard) -> list[Change]:
    """What differs, in the fields' order; against nothing, all that is not as in an empty card."""
    old = before.model_dump(mode="json") if before is not None else {}
    new = after.model_dump(mode="json")
    found: list[Change] = []
    for name, value in new.items():
        if before is None and value in ("", [], {}, None, False):
            continue
        found += _compared(name, old.get(name), value, name in old)
    return found


def _compared(field: str, old: Any, new: Any, known: bool) -> list[Change]:
    if known and _canonical(old) == _canonical(new):
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in dict.fromkeys((*old, *new)):
            here = f"{field}.{escaped(key)}"
            if key not in new:
                found.append(Change(here, _shown(old[key]), None))
            else:
                found += _compared(here, old.get(key), new[key], key in old)
        return found
    return [Change(field, _shown(old) if known else None, _shown(new))]


def _canonical(value: Any) -> str:
    """JSON tells apart what Python does not: 1, 1.0 and true are equal there."""
    return json.dumps(value, sort_keys=True)


def _shown(value: Any) -> str:
    return escaped(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))

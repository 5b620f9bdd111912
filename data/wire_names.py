"""Wire names: a name for every tool id that the model APIs accept, reversible and never shared by two tools.

OpenAI and Anthropic take `^[a-zA-Z0-9_-]{1,64}$`. An id of that form keeps its spelling; a dot is written as two
underscores (`forge.list_issues` -> `forge__list_issues`). Any id for which that would be ambiguous or too long gets a
readable stem and a hash. The name of a tool depends on its id alone, so that it never changes when others come or go.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from data.errors import InputError

MAX_CHARACTERS = 64
_HASH_DIGITS = 16
_DOT = "__"
# Single separators only: neither "__" nor a dot beside an underscore, which would read as another split of the id.
_PLAIN = re.compile(r"(?!.*(?:__|_\.|\._|\.\.))[a-zA-Z0-9_.-]+")
_HASHED = re.compile(rf".*--[0-9a-f]{{{_HASH_DIGITS}}}")


def wire_name(tool_id: str) -> str:
    """The name of one tool on the wire. Plain ids never take the form of hashed ones, so the two cannot meet."""
    name = tool_id.replace(".", _DOT)
    if _PLAIN.fullmatch(tool_id) and not _HASHED.fullmatch(name) and len(name) <= MAX_CHARACTERS:
        return name
    digest = hashlib.sha256(tool_id.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
    stem = re.sub(r"[^a-zA-Z0-9]+", "_", tool_id).strip("_")[: MAX_CHARACTERS - _HASH_DIGITS - 2]
    return f"{stem}--{digest}"


def wire_names(tool_ids: Iterable[str]) -> dict[str, str]:
    """Tool id -> wire name, one to one: the reverse is `{name: tool_id for tool_id, name in names.items()}`.

    Raises InputError if two ids should ever share a name (two equal 64-bit hashes).
    """
    names = {tool_id: wire_name(tool_id) for tool_id in tool_ids}
    owner: dict[str, str] = {}
    for tool_id, name in names.items():
        if owner.setdefault(name, tool_id) != tool_id:
            raise InputError(
                f"tools '{owner[name]}' and '{tool_id}' have the same name on the wire, '{name}'",
                field="tool_id",
                hint="rename one of them",
            )
    return names

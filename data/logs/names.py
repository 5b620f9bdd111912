"""Names: what a log calls a tool, resolved to the id that the catalog has for it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from data.catalog import Catalog
from data.errors import InputError
from data.logs.distinct import KEPT, Counted
from data.logs.user_file import read_user_file
from data.wire_names import wire_name
from data.words import split_identifier

_LONG = 1_000
"""Characters; what is longer is looked up anew each time, so that what is remembered stays small."""

_JOINTS = ("__", ".", "-", "_", "/", ":", "::")
_VERSION = re.compile(r"(?:[@_\-. ]v?\d+(?:[._]\d+)*|#\d+|V\d+)$")


class Wrapper(BaseModel):
    """A tool that calls others: which of its arguments hold the name, the arguments and the server of the real one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "name"
    arguments: str = "arguments"
    server: str = ""


class Mapped(BaseModel):
    """A mapping file.

    tools     logged name -> tool id, or null: calls of it are not a tool's and are left out
    searches  logged name of a search for tools -> its argument that holds the words
    wrappers  logged name of a tool that calls others -> where the real call is
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tools: dict[str, str | None] = Field(default_factory=dict)
    searches: dict[str, str] = Field(default_factory=dict)
    wrappers: dict[str, Wrapper] = Field(default_factory=dict)


def load_mapping(path: Path, catalog: Catalog) -> Mapped:
    """A mapping file. Raises InputError that lists what is wrong in it, tools that the catalog lacks included."""
    mapped = read_user_file(Mapped, path, "names of a mapping")
    unknown = sorted({tool for tool in mapped.tools.values() if tool is not None and tool not in catalog})
    if unknown:
        raise InputError(
            f"these tools are not in the catalog: {', '.join(unknown[:10])}", source=str(path), field="tools"
        )
    return mapped


@dataclass(frozen=True, slots=True)
class Resolved:
    """`tool_id` None: `how` is unknown, ambiguous (then `candidates` are the tools it may be) or left_out."""

    tool_id: str | None
    how: str
    candidates: tuple[str, ...] = ()


@dataclass
class Names:
    """Resolves names and counts how. Up to `kept` are remembered, and counted each where they stand for no tool."""

    catalog: Catalog
    mapped: Mapped = field(default_factory=Mapped)
    how: Counter[str] = field(default_factory=Counter)
    candidates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    kept: int = KEPT

    def __post_init__(self) -> None:
        self._tiers = _tiers(self.catalog)
        self._domains = {card.tool_id: _normal(card.domain) for card in self.catalog}
        self._known: dict[tuple[str, str], Resolved] = {}
        self._failed = {how: Counted(self.kept) for how in ("unknown", "ambiguous")}

    @property
    def unresolved(self) -> Counter[tuple[str, str]]:
        """Names without a tool, as (how, name), and how often each came."""
        return Counter({(how, name): n for how, counted in self._failed.items() for name, n in counted.each.items()})

    @property
    def distinct(self) -> int:
        """How many different names stand for no tool; about, beyond `kept` of them."""
        return sum(counted.distinct for counted in self._failed.values())

    @property
    def beyond(self) -> int:
        """How often names without a tool came that are not counted each."""
        return sum(counted.beyond for counted in self._failed.values())

    def resolve(self, name: str, server: str = "", *, count: bool = True) -> Resolved:
        """The tool that `name` (of `server`, where the log says so) stands for.

        Tried in order: the mapping; the tool id; its name on the wire; server and name joined in the usual ways
        (`mcp__server__tool`, `server-tool`, `server.tool`); the bare name; an alias; the same without regard to case
        and punctuation; the same without a version at its end. The first way that finds a tool decides; where it
        finds several, the server does, and otherwise the name is ambiguous.
        """
        key = (name, server)
        resolved = self._known.get(key)
        if resolved is None:
            resolved = self._resolve(name, server)
            if len(self._known) < self.kept and len(name) + len(server) < _LONG:
                self._known[key] = resolved
        if count:
            self._count(name, server, resolved)
        return resolved

    def nearest(self, name: str, limit: int = 3) -> tuple[str, ...]:
        """The tool ids that look most like a name that is none, best first."""
        words, normal = set(split_identifier(name)), _normal(name)
        scored = []
        for tool_id in self.catalog.ids:
            shared = len(words & set(split_identifier(tool_id)))
            if shared or normal[:3] in _normal(tool_id):
                likeness = SequenceMatcher(None, normal, _normal(tool_id)).ratio()
                scored.append((-shared / (len(words) or 1) - likeness, tool_id))
        return tuple(tool_id for _, tool_id in sorted(scored)[:limit])

    def _resolve(self, name: str, server: str) -> Resolved:
        joined = f"{server}.{name}" if server else name
        for spelled in dict.fromkeys((joined, name)):
            if spelled in self.mapped.tools:
                tool_id = self.mapped.tools[spelled]
                return Resolved(tool_id, "mapping" if tool_id is not None else "left_out")
        for how, index in self._tiers:
            for spelled in dict.fromkeys((joined, name)):
                found = index.get(_FORM.get(how, str)(spelled), ())
                if server and len(found) > 1:
                    found = tuple(t for t in found if self._domains[t] == _normal(server)) or found
                if len(found) == 1:
                    return Resolved(found[0], how)
                if found:
                    return Resolved(None, "ambiguous", found)
        return self._of_another_server(name) or Resolved(None, "unknown")

    def _of_another_server(self, name: str) -> Resolved | None:
        """A joined name whose server the catalog calls by another name, where only one tool is called like that."""
        bare = re.split(r"__|[./:]", name)[-1]
        found = dict(self._tiers)["name"].get(bare, ()) if bare != name else ()
        return Resolved(found[0], "name behind another server") if len(found) == 1 else None

    def _count(self, name: str, server: str, resolved: Resolved) -> None:
        self.how[resolved.how] += 1
        if resolved.how in {"unknown", "ambiguous"}:
            shown = self._failed[resolved.how].add(f"{server}.{name}" if server else name)
            if resolved.candidates and len(self.candidates) < self.kept:
                self.candidates.setdefault(shown, resolved.candidates[:5])


def _tiers(catalog: Catalog) -> list[tuple[str, Mapping[str, tuple[str, ...]]]]:
    """The ways to name a tool, firmest first, each an index from the spelling to the tools that have it."""
    ways: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for card in catalog:
        tool_id = card.tool_id
        whole = [f"{card.domain}{joint}{card.name}" for joint in _JOINTS] if card.domain else []
        ways["tool id"].append((tool_id, tool_id))
        ways["wire name"].append((wire_name(tool_id), tool_id))
        ways["server and name"] += [(spelled, tool_id) for spelled in whole]
        if card.domain:
            ways["server and name"].append((f"mcp__{card.domain}__{card.name}", tool_id))
        ways["name"].append((card.name, tool_id))
        ways["alias"] += [(alias, tool_id) for alias in card.aliases]
        spellings = [tool_id, wire_name(tool_id), *whole[:1]]
        ways["case and punctuation"] += [(_normal(spelled), tool_id) for spelled in spellings]
        ways["name, case and punctuation"] += [(_normal(spelled), tool_id) for spelled in (card.name, *card.aliases)]
        ways["version"] += [(_unversioned(spelled), tool_id) for spelled in spellings]
        ways["name, version"].append((_unversioned(card.name), tool_id))
    return [(how, _index(pairs)) for how, pairs in ways.items()]


def _index(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    index: dict[str, dict[str, None]] = defaultdict(dict)
    for spelled, tool_id in pairs:
        index[spelled][tool_id] = None
    return {spelled: tuple(tools) for spelled, tools in index.items()}


def _normal(name: str) -> str:
    """Words without case or punctuation, and without the `mcp` that some hosts put before."""
    return "_".join(split_identifier(re.sub(r"^mcp__", "", name)))


def _unversioned(name: str) -> str:
    return _normal(_VERSION.sub("", name))


_FORM = {
    "case and punctuation": _normal,
    "name, case and punctuation": _normal,
    "version": _unversioned,
    "name, version": _unversioned,
}

"""Menus: which menu last showed a tool to a caller, so that a call need not name its menu."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from data.context import Caller
from data.wire_names import wire_name
from serving.lru import Lru
from serving.slice import Slice

_PER_CALLER = 32
_CALLERS = 10_000


@dataclass(frozen=True)
class Place:
    """A menu, and the id of the tool that was meant."""

    slice_id: str
    tool_id: str


class Menus:
    """Remembers the latest menus of the latest callers; it forgets without harm, since a call may name its menu."""

    def __init__(self) -> None:
        self._shown: Lru[tuple[str, str], deque[tuple[str, dict[str, str]]]] = Lru(_CALLERS)

    def remember(self, who: Caller, found: Slice) -> None:
        """A menu was given to the caller."""
        names = {}
        for entry in found.menu:
            names[wire_name(entry.tool_id)] = entry.tool_id
        names |= {entry.tool_id: entry.tool_id for entry in found.menu}
        key = (who.tenant, who.principal)
        kept = self._shown.get(key) or deque(maxlen=_PER_CALLER)
        kept.append((found.slice_id, names))
        self._shown.put(key, kept)

    def place(self, who: Caller, tool: str, slice_id: str | None) -> Place:
        """Where the tool, by its id or its wire name, was shown: on this menu, or on the caller's latest that has it.

        A tool that is on none is looked for on the latest menu; what is said of it there, the gate says.
        """
        kept = self._shown.get((who.tenant, who.principal)) or deque[tuple[str, dict[str, str]]]()
        for shown, names in reversed(kept):
            if (slice_id is None or shown == slice_id) and tool in names:
                return Place(shown, names[tool])
        latest = kept[-1][0] if kept else ""
        return Place(latest if slice_id is None else slice_id, tool)

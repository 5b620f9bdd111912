"""Exposure: the tools that a caller has by name, the door's own and the core tools; who is told when they change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import anyio
import mcp_types as types

from data.cards import ToolCard
from data.context import Caller
from data.wire_names import wire_name
from serving.mcp_door.own_tools import OWN_TOOLS, definition
from serving.search_tool import SEARCH_TOOLS_ID
from serving.selector import Selector

_MAX_LISTENERS = 10_000
_PATIENCE_S = 1.0


def core_tools(selector: Selector, who: Caller) -> dict[str, ToolCard]:
    """The core tools that exist for the caller now, by the names that they are passed through by, in registry order.

    A tool keeps its server's name for it, unless two of them, or the door's own, have that name: then each bears its
    wire name. Only tools that the caller may see count, so that no name speaks of another's.
    """
    allowed = selector.index.mask.apply(who, selector.unavailable).allowed
    cards = [
        card
        for row, card in enumerate(selector.catalog.cards)
        if card.core and allowed[row] and card.tool_id != SEARCH_TOOLS_ID
    ]
    times: dict[str, int] = dict.fromkeys(OWN_TOOLS, 1)
    for card in cards:
        times[card.name] = times.get(card.name, 0) + 1
    return {card.name if _plain(card) and times[card.name] == 1 else wire_name(card.tool_id): card for card in cards}


def _plain(card: ToolCard) -> bool:
    """Whether the server's name is one that the model APIs take as it is."""
    return wire_name(card.name) == card.name


def exposed(selector: Selector, who: Caller) -> list[types.Tool]:
    """What is listed for the caller: the door's own tools, then the core tools."""
    own = [definition(card, name) for name, card in OWN_TOOLS.items()]
    return own + [definition(card, name) for name, card in core_tools(selector, who).items()]


Seen = tuple[tuple[str, ToolCard], ...]
"""The core tools as a caller has them."""


@dataclass
class _Listener:
    who: Caller
    seen: Seen
    tell: Callable[[], Awaitable[None]]


class Listeners:
    """Who is told that the list has changed: each only where the list is another for them. `key` names a connection."""

    def __init__(self) -> None:
        self._all: dict[object, _Listener] = {}

    def __len__(self) -> int:
        return len(self._all)

    def listen(self, key: object, who: Caller, selector: Selector, tell: Callable[[], Awaitable[None]]) -> None:
        """Tell from now on. A connection that listens already is told of changes since this moment; the one that was
        heard of longest ago makes room where there are too many."""
        self._all.pop(key, None)
        self._all[key] = _Listener(who, _seen(selector, who), tell)
        while len(self._all) > _MAX_LISTENERS:
            self._all.pop(next(iter(self._all)))

    def forget(self, key: object) -> None:
        """Tell no more."""
        self._all.pop(key, None)

    async def tell(self, selector: Selector) -> None:
        """Tell those for whom something has changed; a connection that cannot be told any more is forgotten."""
        now: dict[Caller, Seen] = {}
        for key, listener in list(self._all.items()):
            if listener.who not in now:
                now[listener.who] = _seen(selector, listener.who)
            if now[listener.who] == listener.seen:
                continue
            listener.seen = now[listener.who]
            try:
                with anyio.fail_after(_PATIENCE_S):
                    await listener.tell()
            except Exception:  # a connection ends as it likes
                self.forget(key)


def _seen(selector: Selector, who: Caller) -> Seen:
    return tuple(core_tools(selector, who).items())


def names_at_hand(found: Mapping[str, ToolCard], tool_ids: frozenset[str]) -> list[str]:
    """The names of the core tools among `tool_ids`."""
    return [name for name, card in found.items() if card.tool_id in tool_ids]

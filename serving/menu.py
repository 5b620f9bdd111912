"""The menu: the few tools that are shown, chosen by rank inside a token budget and emitted in registry order.

Admission, each tool once, whatever does not fit being skipped for a smaller one:

1. core tools, in registry order;
2. the best-ranked tool that fits (of each subgoal, where there are several), so that a long session cannot crowd out
   what is asked for now;
3. tools already used in the session, the most recent first;
4. everything else in rank order; where a menu has a guarantee, only what that needs.

Then exploration may give one slot to an under-observed candidate: a free one if some eligible tool fits there, else
that of the lowest-ranked tool. Core tools, used tools and the best-ranked tools never lose their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from data.errors import InputError
from serving.explore import Exploration, draw, shares
from serving.slice import MenuEntry

MAX_TOOLS = 12
"""No menu is longer, whatever is configured: models choose worse from longer ones."""

_Reason = Literal["ranked", "core", "used", "explored"]


@dataclass(frozen=True)
class MenuLimits:
    """How much may be shown: `token_budget` in tokens of the tools' rendered form, `max_tools` in 1..12."""

    token_budget: int
    max_tools: int = MAX_TOOLS

    def __post_init__(self) -> None:
        if not 1 <= self.max_tools <= MAX_TOOLS:
            raise InputError(f"max_tools is {self.max_tools}", field="max_tools", hint=f"choose 1 to {MAX_TOOLS}")
        if self.token_budget < 0:
            raise InputError(f"token_budget is {self.token_budget}", field="token_budget", hint="choose 0 or more")


@dataclass(frozen=True, eq=False)
class Slot:
    """A place that goes with probability `rate` to one of the rows `tried`, otherwise to row `displaced` or nobody.

    `share` (k,) of each of `tried` in the rate; they sum to 1.
    """

    rate: float
    tried: NDArray[np.intp]
    share: NDArray[np.float64]
    displaced: int | None

    @property
    def chance(self) -> NDArray[np.float64]:
        """(k,): the exact chance that each of `tried` gets the place."""
        chances: NDArray[np.float64] = self.rate * self.share
        return chances


@dataclass(frozen=True)
class Menu:
    """`entries` in registry order, without verdicts; `tokens` they take; `left_out`: tool id -> the limit it met.

    `slot`: the place that was open to exploration, where one was, whether or not the draw took it.
    """

    entries: tuple[MenuEntry, ...]
    tokens: int
    left_out: dict[str, str]
    slot: Slot | None = field(default=None, compare=False)

    def chances(self, tool_ids: Sequence[str]) -> dict[str, float]:
        """tool id -> the exact chance, over request ids, that such a request shows it; absent: it never is shown."""
        chances = {entry.tool_id: entry.propensity for entry in self.entries}
        if self.slot is not None:
            tried = zip(self.slot.tried.tolist(), self.slot.chance.tolist(), strict=True)
            chances |= {tool_ids[row]: chance for row, chance in tried}
            if self.slot.displaced is not None:
                chances[tool_ids[self.slot.displaced]] = 1.0 - self.slot.rate
        return {tool: chance for tool, chance in chances.items() if chance > 0.0}


@dataclass
class _Board:
    """The menu while it is being filled: admitted rows with their reason, in order of admission."""

    limits: MenuLimits
    tokens: NDArray[np.integer]
    admitted: dict[int, _Reason] = field(default_factory=dict)
    left_out: dict[int, str] = field(default_factory=dict)
    spent: int = 0

    @property
    def left(self) -> int:
        return self.limits.token_budget - self.spent

    @property
    def full(self) -> bool:
        return len(self.admitted) >= self.limits.max_tools

    def admit(self, rows: Iterable[int], reason: _Reason, at_most: int = MAX_TOOLS) -> None:
        """Take up to `at_most` of `rows`, in order, that fit; note the limit that each of the others met."""
        for row in rows:
            if at_most == 0:
                return
            if row in self.admitted:
                continue
            if self.full:
                self.left_out[row] = "max_tools"
            elif int(self.tokens[row]) > self.left:
                self.left_out[row] = "token_budget"
            else:
                self.left_out.pop(row, None)
                self.admitted[row] = reason
                self.spent += int(self.tokens[row])
                at_most -= 1

    def remove(self, row: int) -> None:
        del self.admitted[row]
        self.spent -= int(self.tokens[row])


def build_menu(
    tool_ids: Sequence[str],
    tokens: NDArray[np.integer],
    allowed: NDArray[np.bool_],
    *,
    core: Sequence[int],
    used: Sequence[int],
    ranked: Sequence[int],
    relevance: Sequence[float],
    limits: MenuLimits,
    exploration: Exploration | None = None,
    ahead: int = 1,
    needed: NDArray[np.bool_] | None = None,
) -> Menu:
    """Choose the menu.

    `tool_ids`, `tokens` and `allowed` (n,) are by catalog row. `core`, `used` (oldest first) and `ranked` (best first)
    are catalog rows, `relevance` belongs to `ranked`. A row that is not allowed is passed over wherever it stands.
    `ahead`: how many of `ranked` come before the used tools. `needed`, bool (n,) by catalog row: of what else is ranked
    only these are admitted, where it is given. A core or used tool that was also ranked keeps its
    relevance and rank (0 = best). Core tools that meet a limit are in `left_out` like any other: the caller of this
    function says so to the operator.
    """
    board = _Board(limits, tokens)
    ranked_allowed = [int(row) for row in ranked if allowed[row]]
    board.admit((int(row) for row in sorted(core) if allowed[row]), "core")
    board.admit(ranked_allowed, "ranked", at_most=ahead)
    board.admit((int(row) for row in reversed(used) if allowed[row]), "used")
    # Used and best-ranked at once: it was asked for again, and it belongs to the session's stable part.
    for row in board.admitted.keys() & set(used):
        if board.admitted[row] == "ranked":
            board.admitted[row] = "used"
    board.admit((row for row in ranked_allowed if needed is None or needed[row]), "ranked")
    if needed is not None:
        board.left_out |= {row: "not_needed" for row in ranked_allowed if not needed[row] and row not in board.admitted}
    best = frozenset([row for row in ranked_allowed if row in board.admitted][:ahead])
    slot = _open_slot(board, allowed, exploration, best) if exploration is not None else None
    propensity = _explore(board, slot, exploration) if slot is not None and exploration is not None else {}

    rank = {row: place for place, row in reversed(list(enumerate(ranked)))}
    entries = tuple(
        MenuEntry(
            tool_id=tool_ids[row],
            position=position,
            rank=rank.get(row),
            relevance=float(relevance[rank[row]]) if row in rank else None,
            propensity=propensity.get(row, 1.0),
            explored=board.admitted[row] == "explored",
            reason=board.admitted[row],
        )
        for position, row in enumerate(sorted(board.admitted))
    )
    return Menu(entries, board.spent, {tool_ids[row]: limit for row, limit in board.left_out.items()}, slot)


def _open_slot(
    board: _Board, allowed: NDArray[np.bool_], exploration: Exploration, best: frozenset[int]
) -> Slot | None:
    """The place of `board` that exploration may fill, None where there is none or nobody to try in it."""
    open_to_try = exploration.eligible & allowed
    open_to_try[list(board.admitted)] = False
    if exploration.rate == 0.0 or not open_to_try.any():
        return None
    last = next((row for row, reason in reversed(board.admitted.items()) if reason == "ranked"), None)
    displaced: int | None = None
    tried = np.flatnonzero(open_to_try & (board.tokens <= board.left)) if not board.full else np.empty(0, np.intp)
    if not len(tried) and last is not None and last not in best:
        displaced = last
        tried = np.flatnonzero(open_to_try & (board.tokens <= board.left + int(board.tokens[displaced])))
    if not len(tried):
        return None
    rate, share = shares(exploration, tried, displaced)
    return Slot(rate, tried[share > 0.0], share[share > 0.0], displaced) if rate > 0.0 else None


def _explore(board: _Board, slot: Slot, exploration: Exploration) -> dict[int, float]:
    """Let the draw fill the slot; the propensities, by row, of the tools it concerns."""
    choice = draw(exploration.request_id, slot.rate, slot.share)
    if choice is None:
        return {} if slot.displaced is None else {slot.displaced: 1.0 - slot.rate}
    if slot.displaced is not None:
        board.remove(slot.displaced)
        board.left_out[slot.displaced] = "explored"
    explored = int(slot.tried[choice])
    board.left_out.pop(explored, None)
    board.admit([explored], "explored")
    return {explored: float(slot.chance[choice])}

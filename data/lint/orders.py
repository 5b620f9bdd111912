"""Texts that speak to the model instead of describing the tool."""

from __future__ import annotations

import re
from collections.abc import Iterator

from data.cards import ToolCard
from data.findings import Finding
from data.lint.order_patterns import PATTERNS, WAVED_OFF
from data.lint.texts import cut, finding

# no text of one or two words gives an order; the few that hold a path or a tag are found by what every path or tag has
_SHORT = 12
_NOT = re.compile(r"\b(?:not|never|cannot|can't|mustn't|won't|don't)\b[^.!?]*$", re.I)
_MARKS = frozenset("<~/.$[")


def lint_orders(card: ToolCard, texts: list[tuple[str, str]]) -> Iterator[Finding]:
    """What of a card's texts gives the model an order, asks it to keep quiet, or poses as somebody else."""
    for field, text in texts:
        if len(text) < _SHORT and _MARKS.isdisjoint(text):
            continue
        for kind, pattern in PATTERNS.items():
            order = next((match for match in pattern.finditer(text) if not _is_forbidden(text, match, kind)), None)
            if order:
                yield finding("instructs-the-model", card, field, f"{kind}: '{cut(order.group().strip())}'")
                break


def _is_forbidden(text: str, order: re.Match[str], kind: str) -> bool:
    """Whether the sentence says not to: 'never go on without the user's approval' waves nothing off."""
    return kind == WAVED_OFF and _NOT.search(text[max(0, order.start() - 80) : order.start()]) is not None

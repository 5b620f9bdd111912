"""Suggestions for an overlay: a tool's summary, examples and not_for, out of the card, the log and the neighbours.

Nothing is made up: every text is somebody's sentence, or part of one. The words people really used make a tool found
that its author describes in other words.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from data.atomic import replacing
from data.card_text import query_text, shorten
from data.cards import ToolCard
from data.catalog import Catalog
from data.invisible import invisible_characters
from data.lint.duplicates import lexical_pairs, words_of
from data.lint.orders import lint_orders
from data.lint.texts import share_callers
from data.traces import Trace
from data.words import split_identifier

MAX_EXAMPLES = 5
ALIKE = 0.6
"""Jaccard similarity of two tools' words from which on each should say what the other is for."""
_AMBIGUOUS = 3
"""A request that so many tools served says nothing about one of them."""
_EXAMPLE_WORDS = range(3, 41)
_SUMMARY_CHARACTERS = 160
_NEIGHBOURS = 2
# an address, a number that is somebody's, a link: of one request, and of no use in a card
_PRIVATE = re.compile(r"\S@\S|\d{5,}|https?://|\+\d[\d\s()-]{6,}")
_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\n")


Suggested = dict[str, dict[str, Any]]
"""By tool id, the fields that an overlay could add."""


def suggest(catalog: Catalog, traces: Iterable[Trace] = (), max_examples: int = MAX_EXAMPLES) -> Suggested:
    """What could be added to each tool; tools that nothing can be added to are left out.

    A trace gives its goal where its call succeeded; one tenant's words are never proposed for a card that others see.
    """
    said = _requests(catalog, traces)
    near = _neighbours(catalog.cards)
    found: Suggested = {}
    for row, card in enumerate(catalog):
        fields = {
            "summary": _summary(card),
            "examples": _examples(card, said.get(card.tool_id, Counter()), max_examples),
            "not_for": [_for_what(catalog.cards[other]) for other in near[row][:_NEIGHBOURS]],
        }
        kept = {name: value for name, value in fields.items() if value}
        if kept:
            found[card.tool_id] = kept
    return found


def write_overlay(path: Path, found: Suggested) -> None:
    """Write suggestions as an overlay for review, atomically."""
    with replacing(path) as fresh, fresh.open("w", encoding="utf-8", newline="\n") as out:
        out.write("# Suggestions, to be read before they are used: keep what is right, delete the rest.\n")
        yaml.safe_dump(found, out, allow_unicode=True, sort_keys=False, width=120)


def _requests(catalog: Catalog, traces: Iterable[Trace]) -> dict[str, Counter[str]]:
    """By tool id, how often each request was served by it, each once a trace; what several tools served is left out."""
    seen: set[tuple[str, str, str]] = set()
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    served: defaultdict[str, set[str]] = defaultdict(set)
    for trace in traces:
        if trace.outcome != "success" or trace.tool_id is None or trace.tool_id not in catalog:
            continue
        goal = query_text(trace.goal)
        served[goal.casefold()].add(trace.tool_id)
        card = catalog[trace.tool_id]
        shared = not trace.tenant or set(card.tenants) == {trace.tenant}
        key = (trace.trace_id, trace.tool_id, goal)
        if shared and key not in seen and _is_example(card, goal):
            seen.add(key)
            counts[trace.tool_id][goal] += 1
    for several in counts.values():
        for goal in [goal for goal in several if len(served[goal.casefold()]) >= _AMBIGUOUS]:
            del several[goal]
    return counts


def _is_example(card: ToolCard, goal: str) -> bool:
    """Whether a request may stand in a card: of a plain length, nobody's private matter, no order to a model."""
    if len(split_identifier(goal)) not in _EXAMPLE_WORDS or _PRIVATE.search(goal) or invisible_characters(goal):
        return False
    return not any(lint_orders(card, [("examples", goal)]))


def _examples(card: ToolCard, said: Counter[str], count: int) -> list[str]:
    """Of the requests, those that add most words to what the card and the chosen ones have, the frequent first."""
    known = set(words_of(card)) | {word for example in card.examples for word in split_identifier(example)}
    waiting = {goal: (set(split_identifier(goal)), times) for goal, times in said.items() if goal not in card.examples}
    chosen: list[str] = []
    while waiting and len(chosen) < count - len(card.examples):
        best = min(waiting, key=lambda goal: (-len(waiting[goal][0] - known) * waiting[goal][1], goal))
        words, _ = waiting.pop(best)
        if words <= known and chosen:
            break
        known |= words
        chosen.append(best)
    return chosen


def _summary(card: ToolCard) -> str:
    """The first sentence of a description that has more, for a card without a summary."""
    text = card.description.strip()
    first = _SENTENCE.split(text, maxsplit=1)[0].strip()
    usable = not card.summary and len(first) < len(text) and len(split_identifier(first)) > 2
    return first if usable and len(first) <= _SUMMARY_CHARACTERS else ""


def _neighbours(cards: Sequence[ToolCard]) -> defaultdict[int, list[int]]:
    """By row, the rows of the tools most like it that neither speaks of, nearest first."""
    found: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
    for one, other, share in lexical_pairs([words_of(card) for card in cards], ALIKE):
        apart = any(cards[b].name in text for a, b in ((one, other), (other, one)) for text in cards[a].not_for)
        if not apart and share_callers(cards[one], cards[other]):
            found[one].append((-share, other))
            found[other].append((-share, one))
    return defaultdict(list, {row: [other for _, other in sorted(several)] for row, several in found.items()})


def _for_what(card: ToolCard) -> str:
    said = _SENTENCE.split((card.summary or card.description).strip(), maxsplit=1)[0]
    return f"{card.name}: {shorten(said, _SUMMARY_CHARACTERS)}" if said else card.name

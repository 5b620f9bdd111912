"""Prompts of a session in several layouts, and how much of each prompt is known from the turn before.

A prompt is a row of segments. A provider's cache knows a prompt up to the first segment that differs from those of the
prompt before, so that what counts is where the changing parts stand:

- `front`: core tools, the session's tools, system prompt, conversation, and at the end this turn's tools, which are
  gone in the next turn. The service's `rendered.prefix`, then the rest, then `rendered.turn`.
- `end`: the same, with the session's tools at the end too.
- `references`: as Anthropic's API has it: core and session's tools, system prompt, conversation; this turn's tools come
  in as references to deferred definitions, which are expanded where they stand, and stay in the conversation.
- `list`: as OpenAI's API has it: all tools in one list before everything else, the stable ones first.
- `anew`, the baseline: the same tools as whole schemas in such a list, best first, made anew each turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Literal

Layout = Literal["front", "end", "references", "list", "anew"]
LAYOUTS: tuple[Layout, ...] = ("front", "end", "references", "list", "anew")


@dataclass(frozen=True)
class Segment:
    """A piece of a prompt and what it costs, in tokens. The same text in the same place is known to a cache."""

    text: str
    tokens: int


@dataclass(frozen=True)
class Shown:
    """What a turn puts into a prompt: tools in several roles, one segment each, and the words of the turn.

    `ranked`: all tools of the menu as whole schemas, best first. `described`: the tool that is called, in full, where
    the menu did not have it so. `answered`: the call and its result.
    """

    core: tuple[Segment, ...]
    session: tuple[Segment, ...]
    turn: tuple[Segment, ...]
    ranked: tuple[Segment, ...]
    asked: Segment
    described: tuple[Segment, ...]
    answered: tuple[Segment, ...]


def prompts(layout: Layout, system: Segment, turns: Sequence[Shown]) -> list[list[Segment]]:
    """The prompt of each turn, its step asked for and not yet answered."""
    made, talk = list[list[Segment]](), list[Segment]()
    for shown in turns:
        talk.append(shown.asked)
        match layout:
            case "front":
                made.append([*shown.core, *shown.session, system, *talk, *shown.turn])
            case "end":
                made.append([*shown.core, system, *talk, *shown.session, *shown.turn])
            case "references":
                talk.extend(shown.turn)
                made.append([*shown.core, *shown.session, system, *talk])
            case "list":
                made.append([*shown.core, *shown.session, *shown.turn, system, *talk])
            case "anew":
                made.append([*shown.ranked, system, *talk])
        talk.extend((*shown.answered,) if layout == "anew" else (*shown.described, *shown.answered))
    return made


def tool_tokens(layout: Layout, shown: Shown) -> int:
    """Tokens of tools that a turn brings: stable ones, its own, and the full description of the one it calls."""
    if layout == "anew":
        return cost(shown.ranked)
    return cost((*shown.core, *shown.session, *shown.turn, *shown.described))


def known_share(rows: Sequence[Sequence[Segment]]) -> float:
    """Share of the tokens of all prompts but the first that the prompt before began with."""
    known = total = 0
    for before, now in pairwise(rows):
        same = takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False))
        known += cost([segment for segment, _ in same])
        total += cost(now)
    return known / total


def cost(segments: Sequence[Segment]) -> int:
    """Tokens of some segments."""
    return sum(segment.tokens for segment in segments)

"""Names: those of other servers' tools in a text, those that pass for another tool's, and those that say nothing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from data.cards import ToolCard, Trust
from data.findings import Finding
from data.invisible import skeleton
from data.lint.texts import PROSE, finding, share_callers
from data.words import split_identifier

OWN_TOOLS = frozenset({"search_tools", "describe_tool", "call_tool"})
"""What an agent calls toolcrib itself by: no tool of a server may bear these names."""

_COMMON_PARAMETER = 3
_MENTION = re.compile(r"[\w.\-/]+")
_SAYS_NOTHING = frozenset(
    {
        *("action", "api", "call", "do", "endpoint", "exec", "execute", "func", "function", "go", "handler", "helper"),
        *("item", "main", "method", "misc", "object", "op", "process", "run", "test", "thing", "tool", "util"),
    }
)
_VOWELS = re.compile(r"[aeiouyAEIOUY]")


def owners_of_names(cards: Iterable[ToolCard]) -> dict[str, list[ToolCard]]:
    """Tools by their ids and names. Left out: a name that is a plain word, or that several servers call a parameter
    by, as saying it is no mention of a tool."""
    cards = list(cards)
    parameters: defaultdict[str, set[str]] = defaultdict(set)
    for card in cards:
        for name in card.parameter_names:
            parameters[name].add(card.domain)
    owners: defaultdict[str, list[ToolCard]] = defaultdict(list)
    for card in cards:
        if card.domain:
            owners[card.tool_id].append(card)
            common = len(parameters.get(card.name, ())) >= _COMMON_PARAMETER
            if card.name != card.tool_id and _is_identifier(card.name) and not common:
                owners[card.name].append(card)
    return owners


def lint_mentions(card: ToolCard, texts: list[tuple[str, str]], owners: dict[str, list[ToolCard]]) -> Iterator[Finding]:
    """Tools of other servers that a card's sentences name."""
    named: set[str] = set()
    for field, text in texts:
        if field.rpartition(".")[2] not in PROSE:
            continue
        for word in dict.fromkeys(match.strip(".-/") for match in _MENTION.findall(text)):
            tools = owners.get(word)
            if not tools or word in named or any(tool.domain == card.domain for tool in tools):
                continue
            others = [tool for tool in tools if share_callers(card, tool)]
            if others and word not in {card.name, card.tool_id, *card.parameter_names}:
                named.add(word)
                yield finding("names-another-server", card, field, f"mentions '{word}' of '{others[0].domain}'")


def lint_name(card: ToolCard) -> Iterator[Finding]:
    """A name that tells nobody anything."""
    if card.name in OWN_TOOLS:
        yield finding("name-shadows", card, "name", f"'{card.name}' is what toolcrib itself is called by")
    words = [word for word in split_identifier(card.name) if not word.isdigit()]
    said_nothing = not words or all(word in _SAYS_NOTHING or len(word) == 1 for word in words)
    letters = "".join(words)
    # no vowel in small letters is no word; in capitals it is an abbreviation that some know
    unspoken = letters.isascii() and len(letters) > 3 and not card.name.isupper() and not _VOWELS.search(letters)
    if said_nothing or unspoken:
        yield finding("name-cryptic", card, "name", f"'{card.name}' does not say what the tool does")


def lint_shadows(cards: Iterable[ToolCard]) -> Iterator[Finding]:
    """Names that two servers share, and names that only look the same."""
    by_look: defaultdict[str, list[ToolCard]] = defaultdict(list)
    for card in cards:
        by_look[skeleton(card.name)].append(card)
    for alike in by_look.values():
        if len(alike) > 1:
            yield from _shadows(alike)
    servers: defaultdict[str, list[ToolCard]] = defaultdict(list)
    for first in {card.domain: card for cards in by_look.values() for card in cards if card.domain}.values():
        servers[skeleton(first.domain)].append(first)
    for alike in servers.values():
        for card in alike[1:]:
            if card.domain.casefold() != alike[0].domain.casefold():
                message = f"the server '{card.domain}' looks like '{alike[0].domain}'"
                yield finding("name-looks-alike", card, "domain", message)


def _shadows(alike: list[ToolCard]) -> Iterator[Finding]:
    """Of tools whose names look alike: each that passes for an earlier or a more trusted one of another server."""
    first = max(alike, key=lambda card: card.trust)
    accused = False
    for card in alike:
        if card is first or card.domain == first.domain or not share_callers(card, first):
            continue
        if card.name.casefold() != first.name.casefold():
            message = f"'{card.name}' looks like '{first.name}' of '{first.domain}'"
            yield finding("name-looks-alike", card, "name", message)
            # between equals, which of the two is the impostor is for a person to say
            if card.trust is first.trust and not accused:
                accused = True
                message = f"'{first.name}' looks like '{card.name}' of '{card.domain}'"
                yield finding("name-looks-alike", first, "name", message)
        elif card.trust is Trust.THIRD_PARTY and first.trust is Trust.TRUSTED:
            yield finding("name-shadows", card, "name", f"has the name of the trusted '{first.tool_id}'")
    together = [card for card in alike if card.name == first.name and share_callers(card, first)]
    same = list(dict.fromkeys(card.domain for card in together))
    if len(same) > 1 and first.trust is Trust.THIRD_PARTY and _is_identifier(first.name):
        others = ", ".join(f"'{domain}'" for domain in same[1:4]) + (", ..." if len(same) > 4 else "")
        message = f"'{first.name}' is a tool of {len(same)} servers: also of {others}"
        yield finding("name-shared", first, "name", message)


def _is_identifier(name: str) -> bool:
    return "_" in name or (name.isalpha() and len(split_identifier(name)) > 1)

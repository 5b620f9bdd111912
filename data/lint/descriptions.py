"""Descriptions that do not describe: missing, thin, endless, left over from a template, or of everything."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from data.cards import ToolCard
from data.findings import Finding
from data.lint.texts import cut, finding, said
from data.words import split_identifier

SHORT_DESCRIPTION = 15
"""Fewer characters than this say little more than the name."""
LONG_DESCRIPTION = 2_000
"""More characters than this cost tokens on every menu; the encoders read the first 300."""
_SHARED_SENTENCE = 8
"""A sentence of this many tools of one server is its boilerplate."""

_CATCH_ALL = re.compile(
    r"\b((anything|whatever)\s+(you|the\s+user)\s+(needs?|asks?|wants?\s+(done|it\s+to\s+do))|"
    r"(does|handles|performs|runs|executes|answers)\s+(just\s+|nearly\s+|almost\s+)?"
    r"(anything|everything|any\s+(task|code|command|request|action|question|operation)s?)|"
    r"all\s+kinds\s+of\s+tasks|any\s+(task|request)\s+at\s+all|general[\s-]purpose\s+tool)\b",
    re.I,
)
_RUNS = frozenset({"run", "execute", "exec", "eval", "evaluate", "bash", "shell"})
_ANY_PROGRAM = frozenset({"code", "script", "command", "cmd", "shell", "program", "python_code", "js_code"})
_COMMANDS = frozenset({"command", "cmd"})
_PLACEHOLDER = re.compile(
    r"^\W*(todo|tbd|fixme|n/?a|none|null|undefined|description|no description( (provided|available|yet))?|test|string|"
    r"lorem ipsum.*|(insert|add) description.*|placeholder.*|"
    r"(an?|the|this|my) (tool|function|api|endpoint|method))\W*$",
    re.I | re.S,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_FILLER = frozenset(
    {
        *("a", "an", "the", "this", "that", "of", "for", "to", "in", "on", "by", "with", "and", "or", "it", "is"),
        *("tool", "function", "api", "method", "endpoint"),
    }
)


def lint_description(card: ToolCard) -> Iterator[Finding]:
    """What is wrong with one card's summary and description."""
    text = said(card)
    if not text:
        yield finding("description-missing", card, "description", "has no summary and no description")
    elif _PLACEHOLDER.match(text):
        yield finding("description-placeholder", card, "description", f"is a placeholder: '{cut(text)}'")
    elif _letters(text) < SHORT_DESCRIPTION or _adds_nothing(text, card.name):
        yield finding("description-short", card, "description", f"says only '{cut(text)}'")
    elif len(text) > LONG_DESCRIPTION:
        yield finding("description-long", card, "description", f"is {len(text)} characters long")
    claim = _CATCH_ALL.search(text)
    if claim and len(card.parameter_names) <= 2:
        yield finding("catch-all", card, "description", f"claims '{claim.group()}'")
    elif taken := _any_program(card):
        yield finding("catch-all", card, "name", f"takes any {taken}, and so can do what other tools do")


def lint_shared_texts(cards: Iterable[ToolCard]) -> Iterator[Finding]:
    """Descriptions that several tools have, and sentences that a server writes under everything."""
    same: defaultdict[str, list[ToolCard]] = defaultdict(list)
    servers: defaultdict[str, list[ToolCard]] = defaultdict(list)
    for card in cards:
        if said(card):
            same[said(card)].append(card)
            servers[card.domain].append(card)
    for alike in same.values():
        if len(alike) > 1:
            others = ", ".join(card.tool_id for card in alike[1:4]) + (", ..." if len(alike) > 4 else "")
            message = f"{len(alike)} tools have this description; also {others}"
            yield finding("description-repeated", alike[0], "description", message)
    for own in servers.values():
        yield from _boilerplate(own)


def _boilerplate(own: list[ToolCard]) -> Iterator[Finding]:
    """Of one server's tools: a sentence that many share and that is most of what each of them says."""
    sentences = {id(card): [s.strip() for s in _SENTENCE.split(card.description) if s.strip()] for card in own}
    counts = Counter(sentence for mine in sentences.values() for sentence in set(mine))
    reported: set[str] = set()
    for card in own:
        mine = sentences[id(card)]
        if len(mine) < 2:
            continue
        shared = [sentence for sentence in mine if counts[sentence] >= _SHARED_SENTENCE]
        longest = max(shared, key=len, default="")
        if sum(map(len, shared)) * 2 > len(card.description) and longest not in reported:
            reported.add(longest)
            message = f"{counts[longest]} tools of '{card.domain}' say '{cut(longest)}'"
            yield finding("description-boilerplate", card, "description", message)


def _any_program(card: ToolCard) -> str:
    """The parameter that holds a program where the tool runs one, else nothing. A command is one unless the name says
    whose it is: a robot's does what a robot does."""
    words = {*split_identifier(card.name)}
    programs = sorted(_ANY_PROGRAM.intersection(card.parameter_names))
    if _RUNS.isdisjoint(words):
        return ""
    if words - _RUNS - _ANY_PROGRAM - {*split_identifier(card.domain)}:
        programs = [name for name in programs if name not in _COMMANDS]
    return programs[0] if programs else ""


def _letters(text: str) -> int:
    """A text's length in Latin letters: a sign of Chinese, Japanese or Korean says as much as three."""
    return len(text) + 2 * sum(ord(character) >= 0x2E80 for character in text)


def _adds_nothing(text: str, name: str) -> bool:
    words = [word for word in split_identifier(text) if word not in _FILLER]
    named = {_stem(word) for word in split_identifier(name)}
    return {_stem(word) for word in words} <= named


def _stem(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > 3 else word

"""Splitting: a request of several steps becomes the texts of its steps, by rules.

Cuts, each only where it is safe:

1. items of a list, whether one a line or numbered inside a line;
2. sentences;
3. inside a sentence: before "then", "after that", "finally", "also"; between two questions; between imperatives
   ("find X and email Y", "read X, plot it, and save it"), where what stands on both sides begins with a verb.

What is quoted, code or in brackets is never looked into, nor what an artefact or a person is to do ("a script to read X
and print Y", "remind me to call X and buy Y"). A sentence that only tells of circumstances goes with the request that
follows it. A short step that points back is given what it points at: "send it to Ann (the sales report)".

Only texts come out: nothing here says what a step may do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from data.context import MAX_SUBGOALS
from data.words import split_identifier
from serving.imperatives import (
    HIDDEN,
    I_ASK,
    REACH,
    YOU_DO,
    asks_question,
    leads,
    opens_request,
    opens_with_verb,
    requests,
    says_more_than_politeness,
    without_verb,
    words_of,
)

_CONTEXT_WORDS = 8
_OWN_WORDS = 4
"""A step with more words than this beside its pronoun is found by these."""
_HEADER_CHARACTERS = 160

_OPAQUE = re.compile(
    r"```.*?(?:```|\Z)"
    r"|`[^`\n]{1,300}`"
    r'|"[^"\n]{1,400}"'
    r"|“[^”\n]{1,400}”|«[^»\n]{1,400}»|「[^」\n]{1,400}」|『[^』\n]{1,400}』|《[^》\n]{1,400}》"
    r"|(?<!\w)'[^'\n]{1,200}'(?!\w)"
    r"|‘[^’\n]{1,200}’(?!\w)"
    r"|\([^()\n]{1,400}\)|\[[^\[\]\n]{1,400}\]|\{[^{}\n]{1,400}\}",
    re.DOTALL,
)
_BULLET = re.compile(r"[ \t]*(?:[-*•◦▪–—]|\(?\d{1,2}[.):]|\(?[a-zA-Z]\)|(?i:step)\s+\d{1,2}\s*[:.)-])[ \t]+(?=\S)")
_INLINE = re.compile(r"(?<!\S)\(?(\d{1,2})[.)][ \t]+(?=\S)")
_SENTENCE_END = re.compile(r"[.!?…]{1,8}[\"'”’)\]]{0,3}(?=\s)|[。！？]{1,8}")
_NEVER_ENDS = re.compile(r"(?<![^\W_])(?:e\.g|i\.e|vs|cf|approx|incl|mr|mrs|ms|dr|prof|sr|jr|st)\.$", re.IGNORECASE)
_SELDOM_ENDS = re.compile(
    r"(?<![^\W_])(?:etc|resp|no|nr|vol|fig|eq|sec|ch|pp?|ed|al|inc|ltd|co|corp|dept|est|max|tel|ext|jan|feb|mar|apr|jun"
    r"|jul|aug|sept?|oct|nov|dec|[a-z]|(?:[a-z]\.)+[a-z])\.$",
    re.IGNORECASE,
)
"""Abbreviations: a sentence ends there only if what follows opens a step."""
_ABBREVIATION_REACH = 12

_LINK = (
    r"(?:then|next|finally|lastly|last|also|additionally|furthermore|moreover|besides|afterwards?|subsequently"
    r"|thereafter|later|first(?:ly)?(?: of all)?|second(?:ly)?|third(?:ly)?|fourth(?:ly)?|to (?:begin|start) with"
    r"|in addition(?: to (?:that|this))?|on top of that|after (?:that|this|which)|following (?:that|this)|as well as"
    r"|(?:once|when|after) (?:that|this|it)(?:['’]s| is) (?:done|finished|complete|ready)|upon completion|at the end)"
)
_LINKS = re.compile(rf"\s*(?:(?:and|but|plus|&|{_LINK})(?:\s*[,:]\s*|\s+)|[,;:\-–—]\s+){{1,4}}", re.IGNORECASE)
"""What ties a step to the one before it."""
_JOINT = re.compile(
    rf"(?P<semicolon>\s*;\s+)|(?P<linked>,?\s+(?:(?:and|but|&)\s+)?(?={_LINK}\b))|(?P<plain>,?\s+(?:and|but|&)\s+|,\s+)",
    re.IGNORECASE,
)
"""Where a sentence may part."""
_ASKED_ANEW = re.compile(
    rf"(?:please|{YOU_DO}|{I_ASK}|(?:let|tell|show|give|send|help) (?:me|us))\b|if\b[^.!?\n]{{1,120}}?,", re.IGNORECASE
)
_EMBEDS = re.compile(
    r"\b(?:how (?:to|i can|we can)|ways? to|(?:remind|ask|teach|instruct|order|invite|tell)s? \w+(?: \w+)? to"
    r"|(?:script|function|program|code|query|test|app|application|regex|macro|workflow|bot|class|command|pipeline|job"
    r"|rule|cron|button|page|form)\b[^.,;\n]{0,40}?\b(?:to|that|which)"
    r"|saying|(?:that|which) (?:says?|reads?)|with the (?:text|message|subject|title|body|caption)"
    r"|if|unless|whenever)\b",
    re.IGNORECASE,
)
"""From here on the rest of a sentence is part of one step, however many verbs it has."""
_CONDITIONS = ("if", "unless", "whenever")

_PLEASANT = frozenset(
    split_identifier(
        "hi hello hey dear thanks thank you so very much many in advance please cheers good morning afternoon evening "
        "there regards best kind everyone team a lot for your help time"
    )
)
_GENERIC = frozenset(
    split_identifier(
        "do this the following steps step tasks task things thing these for me please i need want you to help with "
        "would like can could here are is what my list of and a plan in order as follows below"
    )
)
_POINTS_BACK = re.compile(
    r"\b(?:it|its|them|they|their|this|these|those"
    r"|the (?:results?|output|findings|summary|same|top one|first one|file))\b",
    re.IGNORECASE,
)
_ELABORATES = re.compile(r"(?:the|this|that|these|those|it|they|please note|note|keep|both)\b", re.IGNORECASE)
_PHRASE_ENDS = re.compile(
    r"[,;:!?()\n]|\s(?:and|then|that|which|who|whose|where|so|because|to|using|including|by|with|as)(?=\s)",
    re.IGNORECASE,
)


class _Span(NamedTuple):
    """A stretch of the text, and what the list that it belongs to said of its items."""

    start: int
    end: int
    header: str = ""


def split(text: str, at_most: int = MAX_SUBGOALS) -> tuple[str, ...]:
    """The steps of a request, in its order; a request of one step comes back as it is. Never empty.

    Pure; its time grows in line with the text. Beyond `at_most` (at least 1) steps, the last one holds the rest.
    """
    if not text.strip():
        return (text,)
    plain = _plain_space(text)
    shadow = _OPAQUE.sub(lambda found: HIDDEN * len(found.group()), plain)
    spans = [
        clause
        for block in _blocks(shadow)
        for sentence in _sentences(shadow, block)
        for clause in _clauses(shadow, sentence)
    ]
    steps = _gathered(plain, shadow, spans)
    if len(steps) < 2 or at_most < 2:
        return (text,)
    if len(steps) > at_most:
        steps = [*steps[: at_most - 1], " ".join(steps[at_most - 1 :])]
    return tuple(steps)


def _plain_space(text: str) -> str:
    """The text without long runs of white space, over which patterns would be slow; blank lines stay."""
    for run, instead in ((r"[^\S\n]+", " "), (r" ?\n ?", "\n"), (r"\n{2,}", "\n\n")):
        text = re.sub(run, instead, text)
    return text


def _blocks(shadow: str) -> Iterator[_Span]:
    """Items of lists, and the paragraphs between them; a line that ends in ":" before a list is its header."""
    parts: list[tuple[int, int, bool]] = []  # where it begins, where its text begins, whether it is an item
    position, fresh = 0, True
    for line in shadow.splitlines(keepends=True):
        bullet = _BULLET.match(line)
        if bullet is not None:
            parts.append((position, position + bullet.end(), True))
        elif fresh or not line.strip():
            parts.append((position, position, False))
        fresh = not line.strip()
        position += len(line)
    parts = [
        part
        for part, after in zip(parts, [*parts[1:], (position, position, False)], strict=True)
        if shadow[part[0] : after[0]].strip()
    ]
    header = ""
    for (begin, start, item), (end, _, next_is_item) in zip(
        parts, [*parts[1:], (position, position, False)], strict=True
    ):
        if item:
            inline = list(_numbered(shadow, begin, end))  # a line of its own may hold the whole list
            yield from inline if len(inline) > 1 else [_Span(start, end, header)]
            continue
        header = ""
        if next_is_item and shadow[start:end].rstrip().endswith(":"):
            header = f"{start}:{end}"
        else:
            yield from _numbered(shadow, start, end)


def _numbered(shadow: str, start: int, end: int) -> Iterator[_Span]:
    """A paragraph, parted at "1. ... 2. ... 3. ..." where it counts like that."""
    items: list[re.Match[str]] = []
    for found in _INLINE.finditer(shadow, start, end):
        if int(found[1]) == len(items) + 1:
            items.append(found)
    if len(items) < 2:
        yield _Span(start, end)
        return
    before = shadow[start : items[0].start()].rstrip()
    header = f"{start}:{items[0].start()}" if before.endswith(":") else ""
    if before and not header:
        yield _Span(start, items[0].start())
    for item, stop in zip(items, [*(found.start() for found in items[1:]), end], strict=True):
        yield _Span(item.end(), stop, header)


def _sentences(shadow: str, block: _Span) -> Iterator[_Span]:
    start = block.start
    for found in _SENTENCE_END.finditer(shadow, block.start, block.end):
        end = found.end()
        before = shadow[max(start, end - _ABBREVIATION_REACH) : end]
        after = shadow[end : end + 80].lstrip()
        if not after or _NEVER_ENDS.search(before):
            continue
        if (_SELDOM_ENDS.search(before) or after[0].islower()) and not _opens_step(after):
            continue
        yield _Span(start, end, block.header)
        start = end
    if shadow[start : block.end].strip():
        yield _Span(start, block.end, block.header)


def _clauses(shadow: str, sentence: _Span) -> Iterator[_Span]:
    """The parts of a sentence that are steps of their own."""
    start = sentence.start
    opening = _after_links(shadow, sentence.start, sentence.end)
    embeds = _EMBEDS.search(shadow, opening, sentence.end)
    if embeds is not None and not shadow[opening : embeds.start()].strip() and embeds[0].lower() in _CONDITIONS:
        embeds = _EMBEDS.search(shadow, embeds.end(), sentence.end)
    last = embeds.start() if embeds is not None else sentence.end
    for joint in _JOINT.finditer(shadow, sentence.start, last):
        if joint.start() <= start:
            continue
        right_start = _after_links(shadow, joint.end(), sentence.end)
        right = shadow[right_start : min(right_start + REACH, sentence.end)]
        left_start = _after_links(shadow, start, joint.start())
        left = shadow[left_start : min(left_start + REACH, joint.start())]
        if _parts(left, shadow[max(left_start, joint.start() - 40) : joint.start()], joint, right):
            yield _Span(start, joint.start(), sentence.header)
            start = joint.end()
    yield _Span(start, sentence.end, sentence.header)


def _parts(left: str, left_end: str, joint: re.Match[str], right: str) -> bool:
    """Whether what stands on the two sides of a joint are steps; `left_end` is the last of what is on the left."""
    if joint["semicolon"]:
        return opens_request(right)
    if joint["linked"] or _ASKED_ANEW.match(right):
        return opens_request(right) and says_more_than_politeness(left)
    if asks_question(right):
        return asks_question(left) and opens_request(right)
    return opens_with_verb(right) and leads(left, left_end)


def _opens_step(text: str) -> bool:
    return opens_request(text[_after_links(text, 0, len(text)) :])


def _after_links(shadow: str, start: int, end: int) -> int:
    found = _LINKS.match(shadow, start, end)
    return found.end() if found is not None else start


def _gathered(text: str, shadow: str, spans: list[_Span]) -> list[str]:
    """The spans as texts: pleasantries gone, circumstances with their request, what points back told at what."""
    steps: list[str] = []
    waiting: list[str] = []  # circumstances, for the request that follows
    subject = ""
    for span in spans:
        start = _after_links(shadow, span.start, span.end)
        said = " ".join(text[start : span.end].split()).strip(" ,;")
        content = [word for word in words_of(said) if word.lower() not in _PLEASANT]
        if not content:
            continue
        if not span.header and not requests(said):
            if steps and not waiting and _ELABORATES.match(said):
                steps[-1] = f"{steps[-1]} {said}"
            else:
                waiting.append(said)
            continue
        if subject and not waiting and _says_little(said):
            said = f"{said.rstrip('.')} ({subject})"
        steps.append(" ".join([*waiting, _under(text, span.header, said)]))
        waiting = []
        subject = _object_of(said) or subject
    if waiting:
        if not steps:
            return [" ".join(waiting)]
        steps[-1] = " ".join([steps[-1], *waiting])
    return steps


def _says_little(said: str) -> bool:
    """Whether a step points back and has too few words of its own to be understood alone."""
    return bool(_POINTS_BACK.search(said)) and len(words_of(_POINTS_BACK.sub(" ", said))) <= _OWN_WORDS


def _under(text: str, header: str, said: str) -> str:
    """An item with what the list's header adds to it."""
    if not header:
        return said
    start, end = map(int, header.split(":"))
    adds = " ".join(text[start:end].split()).rstrip(": ")[-_HEADER_CHARACTERS:]
    if all(word.lower() in _GENERIC for word in words_of(adds)):
        return said
    return f"{adds}: {said}"


def _object_of(said: str) -> str:
    """What a step is about: the phrase after its verb, at most `_CONTEXT_WORDS` words; "" if it only points back."""
    rest = without_verb(said).rstrip(".")
    ends = _PHRASE_ENDS.search(rest)
    phrase = " ".join((rest if ends is None else rest[: ends.start()]).split()[:_CONTEXT_WORDS])
    return "" if _POINTS_BACK.match(phrase) else phrase

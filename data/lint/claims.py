"""Claims about risk that the tool's own words contradict."""

from __future__ import annotations

from collections.abc import Iterator

from data.cards import Risk, ToolCard
from data.findings import Finding
from data.lint.texts import cut, finding, said
from data.risk import WRITE_VERBS_OR_NOUNS, sentence_risk, verb_risk
from data.words import split_identifier


def lint_claims(card: ToolCard) -> Iterator[Finding]:
    """A tool that counts as less than its name, or where that has no verb, its first sentence speaks of."""
    verb, words = verb_risk(_deeds(card)), card.name
    if verb is None:
        verb, words = sentence_risk(said(card)), said(card)
    if verb is None or verb <= card.risk:
        return
    if card.risk is Risk.WRITE:
        yield finding("write-destroys", card, "risk", f"'{cut(words)}' sounds destructive")
    else:
        rule = "read-only-destroys" if verb is Risk.DESTRUCTIVE else "read-only-writes"
        yield finding(rule, card, "risk", f"'{cut(words)}' does not sound read_only")


def _deeds(card: ToolCard) -> str:
    """The name without words that are as often a thing as a deed, unless one comes first in the name or in what the
    card says: `play-style-comment` neither plays nor comments, and `chat_post` whose text says "Posts ..." posts."""
    words = split_identifier(card.name)
    spoken = next(iter(split_identifier(said(card)[:80])), "")
    kept = [
        word
        for place, word in enumerate(words)
        if place == 0 or word not in WRITE_VERBS_OR_NOUNS or spoken in {word, f"{word}s", f"{word}es"}
    ]
    return " ".join(kept)

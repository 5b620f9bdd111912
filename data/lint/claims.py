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
    verb, words = verb_risk(_without_last_noun(card.name)), card.name
    if verb is None:
        verb, words = sentence_risk(said(card)), said(card)
    if verb is None or verb <= card.risk:
        return
    if card.risk is Risk.WRITE:
        yield finding("write-destroys", card, "risk", f"'{cut(words)}' sounds destructive")
    else:
        rule = "read-only-destroys" if verb is Risk.DESTRUCTIVE else "read-only-writes"
        yield finding(rule, card, "risk", f"'{cut(words)}' does not sound read_only")


def _without_last_noun(name: str) -> str:
    """The name without a last word that is as often a thing as a deed: `play-style-comment` comments on nothing."""
    words = split_identifier(name)
    return " ".join(words[:-1] if len(words) > 1 and words[-1] in WRITE_VERBS_OR_NOUNS else words)

"""Card text: the one form in which the encoders read a tool, in training and in serving alike."""

from __future__ import annotations

import re

from data.cards import ToolCard
from data.words import split_identifier

CARD_TEXT_VERSION = "1"
"""Changes whenever the text of an unchanged card changes; a bundle names the version that it was trained on."""

_SPACE = re.compile(r"\s+")
_DESCRIPTION_CHARACTERS = 300
_SERVER_CHARACTERS = 150


def card_text(card: ToolCard) -> str:
    """Server and tool name as words, what it does, its parameters' names; one line.

    `not_for` stays out: it names the rival tool and would draw the rival's queries here.
    """
    name = " ".join(split_identifier(card.name))
    domain = " ".join(split_identifier(card.domain))
    head = name if not domain or domain == name else f"{domain} {name}"
    said = shorten(" ".join(part for part in (card.summary, card.description) if part), _DESCRIPTION_CHARACTERS)
    extra = ", ".join((*card.aliases, *card.capabilities, *card.entities))
    parameters = " ".join(dict.fromkeys(word for p in card.parameter_names[:16] for word in split_identifier(p)))
    return ". ".join(part.rstrip(" .") for part in (head, said, extra, parameters) if part)


def server_text(card: ToolCard) -> str:
    """What the card's server is for, by its name and its own words; "" where it says nothing of itself."""
    said = shorten(card.server_description, _SERVER_CHARACTERS)
    return f"{' '.join(split_identifier(card.domain))}. {said}".lstrip(". ") if said else ""


def query_text(goal: str) -> str:
    """A goal as the encoders read it: white space folded, nothing else."""
    return _SPACE.sub(" ", goal).strip()


def shorten(text: str, characters: int) -> str:
    """Fold white space and cut at a word boundary after at most `characters` characters."""
    folded = _SPACE.sub(" ", text).strip()
    if len(folded) <= characters:
        return folded
    cut = folded[: characters + 1].rsplit(" ", 1)[0]
    return cut[:characters]

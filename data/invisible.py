"""Invisible text: characters that a model reads and a person does not see, found and made visible."""

from __future__ import annotations

import unicodedata

# format characters (Cf: zero-width, bidi, tags, soft hyphen), controls other than white space, private use, lone
# surrogates; and what has no ink though Unicode calls it a letter or a mark
_CATEGORIES = frozenset({"Cf", "Cc", "Co", "Cs"})
_WHITE_SPACE = frozenset("\t\n\r")
_NO_INK = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5").union(
    # variation selectors can spell a message; the last two, which choose how an emoji looks, are in plain use
    map(chr, range(0xFE00, 0xFE0E)),
    map(chr, range(0xE0100, 0xE01F0)),
)
# in an emoji sequence and in the scripts that need them, a joiner shapes what is seen; next to plain text it hides
_JOINERS = frozenset("\u200c\u200d")


def invisible_characters(text: str) -> list[str]:
    """The distinct characters of `text` that are not seen, in order of appearance.

    A joiner between two characters beyond Latin, Greek and Cyrillic (an emoji sequence, Persian, Indic scripts) is
    part of the writing and not counted.
    """
    found = [
        character
        for at, character in enumerate(text)
        if _is_hidden(character) and not (character in _JOINERS and _joins(text, at))
    ]
    return list(dict.fromkeys(found))


def escaped(text: str) -> str:
    """`text` with every invisible character as \\u{HEX}: what may be shown to a person, and nothing else."""
    return "".join(f"\\u{{{ord(character):04X}}}" if _is_hidden(character) else character for character in text)


def mixed_scripts(name: str) -> list[str]:
    """The scripts of a name's letters where Latin is mixed with look-alikes from Greek or Cyrillic; else nothing."""
    scripts = {unicodedata.name(letter, "").split(" ")[0] for letter in name if letter.isalpha()}
    mixed = scripts & {"LATIN", "GREEK", "CYRILLIC"}
    return sorted(script.capitalize() for script in mixed) if len(mixed) > 1 else []


def _is_hidden(character: str) -> bool:
    if character in _WHITE_SPACE:
        return False
    return character in _NO_INK or unicodedata.category(character) in _CATEGORIES


def _joins(text: str, at: int) -> bool:
    neighbours = text[at - 1 : at] + text[at + 1 : at + 2]
    return len(neighbours) == 2 and all(ord(one) >= 0x0530 and not _is_hidden(one) for one in neighbours)

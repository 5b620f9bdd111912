"""Deceptive characters: those that a model reads and a person does not see, and those that pass for others."""

from __future__ import annotations

import re
import sys
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


def _hidden_class() -> str:
    """A regular expression's class of every hidden character, so that long texts are searched at the speed of C."""
    ranges: list[tuple[int, int]] = []
    for point in range(sys.maxunicode + 1):
        character = chr(point)
        if character in _NO_INK or (character not in _WHITE_SPACE and unicodedata.category(character) in _CATEGORIES):
            if ranges and ranges[-1][1] == point - 1:
                ranges[-1] = (ranges[-1][0], point)
            else:
                ranges.append((point, point))
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


_HIDDEN = re.compile(f"[{_hidden_class()}]")
# in an emoji sequence and in the scripts that need them, a joiner shapes what is seen; next to plain text it hides
_JOINERS = frozenset("\u200c\u200d")

# letters of Cyrillic, Greek and Armenian that most fonts draw as a Latin one, and the Latin one
_LOOKS_LIKE = dict(
    zip(
        "аеорсухіјѕһԁԛԝѵӏАВЕКМНОРСТХІЈЅУΑΒΕΖΗΙΚΜΝΟΡΤΥΧοντυρօհոս",
        "aeopcyxijshdqwvlABEKMHOPCTXIJSYABEZHIKMNOPTYXovturohnu",
        strict=False,
    )
)
_SAME_LOOK = str.maketrans({**_LOOKS_LIKE, "0": "o", "1": "l", "I": "l", "i": "l", "|": "l", "5": "s"})
_WORD = re.compile(r"[^\W\d_]{3,}")


def invisible_characters(text: str) -> list[str]:
    """The distinct characters of `text` that are not seen, in order of appearance.

    A joiner between two characters beyond Latin, Greek and Cyrillic (an emoji sequence, Persian, Indic scripts) is
    part of the writing and not counted.
    """
    found = [
        match.group()
        for match in _HIDDEN.finditer(text)
        if not (match.group() in _JOINERS and _joins(text, match.start()))
    ]
    return list(dict.fromkeys(found))


def escaped(text: str) -> str:
    """`text` with every invisible character as \\u{HEX}: what may be shown to a person, and nothing else."""
    return _HIDDEN.sub(lambda match: f"\\u{{{ord(match.group()):04X}}}", text)


def mixed_scripts(name: str) -> list[str]:
    """The scripts of a name's letters where Latin is mixed with look-alikes from Greek or Cyrillic; else nothing."""
    scripts = {unicodedata.name(letter, "").split(" ")[0] for letter in name if letter.isalpha()}
    mixed = scripts & {"LATIN", "GREEK", "CYRILLIC"}
    return sorted(script.capitalize() for script in mixed) if len(mixed) > 1 else []


def look_alike_words(text: str) -> list[str]:
    """Words of a text in which a letter of another alphabet passes for a Latin one, or that are drawn in letters made
    for mathematics; each once, in order."""
    return [word for word in dict.fromkeys(_WORD.findall(text)) if _is_look_alike(word)]


def skeleton(name: str) -> str:
    """A name as the eye takes it: two names of equal skeletons look alike, whatever letters they are made of."""
    return unicodedata.normalize("NFKC", _HIDDEN.sub("", name)).translate(_SAME_LOOK).casefold().translate(_SAME_LOOK)


def _is_look_alike(word: str) -> bool:
    if word.isascii():
        return False
    if any(0x1D400 <= ord(letter) <= 0x1D7FF for letter in word):
        return True
    return any(letter.isascii() for letter in word) and any(letter in _LOOKS_LIKE for letter in word)


def _joins(text: str, at: int) -> bool:
    neighbours = text[at - 1 : at] + text[at + 1 : at + 2]
    return len(neighbours) == 2 and all(ord(one) >= 0x0530 and not _HIDDEN.match(one) for one in neighbours)

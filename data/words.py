"""Identifiers as words: camelCase, acronyms, snake_case, kebab-case and digits, in any script."""

from __future__ import annotations

import re
import unicodedata

_PART = re.compile(
    r"[A-Z]{2,}s(?![a-z])"  # VPCs, URLs: an acronym and its plural are one word
    r"|[A-Z]+(?=[A-Z][a-z])"  # HTTPResponse: the acronym ends before the last capital
    r"|[A-Z]?[a-z]+"
    r"|[A-Z]+"
    r"|\d+"
    r"|[^\W\d_a-zA-Z]+",  # any other script stays whole
)


# `\w` leaves out combining marks, without which words of Hindi, Thai or decomposed Vietnamese fall into pieces.
_MARKS = "".join(re.escape(chr(c)) for c in range(0x300, 0x10000) if unicodedata.category(chr(c)) in ("Mn", "Mc"))
_RUN = re.compile(rf"\w[\w{_MARKS}]*")


def split_identifier(text: str) -> list[str]:
    """The words of a name, in order, lower-cased: `getHTTPResponse` -> get, http, response; `ec2VPCs` -> ec, 2, vpcs.

    Text of other scripts and accented words are not cut at their marks (NFKC first, then whole runs of letters).
    """
    words: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text)):
        for piece in run.split("_"):
            if piece.isascii():
                words.extend(part.lower() for part in _PART.findall(piece))
            elif piece:
                words.append(piece.lower())
    return words

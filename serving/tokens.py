"""Tokens: how lexical search reads a name, a description and a query; one reading for both sides.

A text becomes its *words* (identifiers split, plurals folded) and its *joins*: words that also stand as one, such as
`ec2` for `ec` + `2`, or `gethttpresponse` for the whole of an identifier. Scripts that write no spaces become
characters and pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from data.words import split_identifier

_UNSPACED_RUN = re.compile(
    "["
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Myanmar, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # Japanese syllables
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\uac00-\ud7af"  # Hangul
    "]+"
)
_CHUNK = re.compile(r"\S+")
_CACHED_CHUNK = 64
"""Longer chunks are URLs, keys and encoded data: read, but not worth remembering."""

_LONG_QUERY_WORDS = 5

# Function words, then the words of asking that say nothing of what is asked for.
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a about all also an and another any are as at be because been before after between both but by can could did do
        doe each for from had has have he her here his how i id if im in into is it its ive just many may me might more
        most much my no not now of on one only or our over under she should since so some such than that the their
        them then there these they this those through to two until us very was we were what when where which while who
        why will with would you your during
        additionally based currently finally furthermore give going help interested know lastly let like looking
        moreover myself need planning please provide shall show specific tell trying use using want working
        """,
    )
)


@dataclass(frozen=True)
class Tokens:
    """`words` in order, repeats kept; `joins` in order, which match whole or not at all."""

    words: tuple[str, ...]
    joins: tuple[str, ...]


def tokenize(text: str) -> Tokens:
    """The tokens of a text: NFKC, case folded, split as identifiers, plurals folded."""
    words: list[str] = []
    joins: list[str] = []
    for chunk in _CHUNK.findall(_UNSPACED_RUN.sub(r" \g<0> ", unicodedata.normalize("NFKC", text))):
        read = _remembered if len(chunk) <= _CACHED_CHUNK else _read_chunk
        chunk_words, chunk_joins = read(chunk)
        words.extend(chunk_words)
        joins.extend(chunk_joins)
    return Tokens(tuple(words), tuple(joins))


def content_words(words: Iterable[str]) -> list[str]:
    """The distinct words of a query, in order; a query of over five words without its stop words.

    In a short query every word counts: `show` and `use` may be all there is of a tool's name.
    """
    distinct = list(dict.fromkeys(words))
    if len(distinct) <= _LONG_QUERY_WORDS:
        return distinct
    return [word for word in distinct if word not in _STOP_WORDS] or distinct


def neighbours_joined(words: Iterable[str]) -> list[str]:
    """Each word joined with the next, for names that others write as one: `you tube` -> `youtube`."""
    return [first + second for first, second in pairwise(words)]


def identifier_key(text: str) -> str:
    """One form for all spellings of an identifier: `getHTTPResponse`, `get-http-response`, `Get HTTP response`."""
    return "".join(split_identifier(text)).casefold()


def fold_plural(word: str) -> str:
    """An English plural as its singular: issues -> issue, queries -> query, searches -> search; class stays."""
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    return word[:-1]


def _read_chunk(chunk: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if _UNSPACED_RUN.fullmatch(chunk):
        return (*chunk, *neighbours_joined(chunk)), ()
    parts = [word.casefold() for word in split_identifier(chunk)]
    joins = [first + second for first, second in pairwise(parts) if second.isdigit() and not first.isdigit()]
    if len(parts) > 1:
        joins.append("".join(parts))
    return tuple(fold_plural(part) for part in parts), tuple(dict.fromkeys(joins))


_remembered = lru_cache(maxsize=1 << 15)(_read_chunk)

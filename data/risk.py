"""Risk read from a tool's name, for trusted sources that carry no hints."""

from __future__ import annotations

from data.cards import Risk
from data.words import split_identifier


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


READ_VERBS = _words(
    """analyze calculate check classify compare compute convert count describe detect estimate evaluate explain explore
    fetch filter find get inspect is list lookup measure predict preview query read recommend resolve retrieve search
    show solve sort suggest summarize translate validate verify view"""
)
"""Verbs that look, or compute from what is given."""

WRITE_VERBS = _words(
    """accept add allocate append apply approve archive assign attach authenticate buy clone commit compose configure
    connect create deploy disable edit enable enroll execute export follow generate import insert install invite join
    launch make merge modify open pause pay publish put register rename replace reply rerun restart restore resume retry
    run save send submit subscribe switch sync trigger unlock unsubscribe update upload upsert write"""
)
"""Verbs that change something, in a way that can be changed back or is the point of the call."""

WRITE_VERBS_OR_NOUNS = _words(
    """book build call change close comment copy draft fill fork link lock log move order play post purchase push record
    request reserve schedule set share sign start stop store toggle transfer turn"""
)
"""Write verbs that are as often what a reading verb reads: get_call_details, find_music_store."""

DESTRUCTIVE_VERBS = _words(
    """ban cancel clear delete destroy discard drop erase evict kill overwrite purge remove reset revoke rollback
    terminate truncate uninstall unpublish wipe"""
)
"""Verbs that take away what a second call may not bring back."""

_ALL_VERBS = READ_VERBS | WRITE_VERBS | WRITE_VERBS_OR_NOUNS | DESTRUCTIVE_VERBS


def infer_risk(name: str, description: str = "") -> Risk:
    """The risk that the verbs of a name speak of; without a known verb there, the first word of the description.

    A destructive verb anywhere in the name wins, then a write verb, then a read verb: `get_or_create_user` writes
    and `delete_list` destroys. After a read verb, a word that may be a noun counts as a verb only behind "and" or
    "or". No known verb at all is WRITE, the careful reading. Only for sources whose author is trusted: a name is a
    claim like any other.
    """
    found = verb_risk(name)
    if found is None:
        found = sentence_risk(description)
    return Risk.WRITE if found is None else found


def verb_risk(name: str) -> Risk | None:
    """The risk that the verbs of a name speak of; None where it holds no known verb."""
    return _strongest(split_identifier(name))


def sentence_risk(text: str) -> Risk | None:
    """The risk that a sentence's first word speaks of, in its plain form or the third person; None for no verb."""
    return _strongest([_stem(word) for word in split_identifier(text[:80])[:1]])


def _strongest(words: list[str]) -> Risk | None:
    found: Risk | None = None
    for number, word in enumerate(words):
        joined = number > 0 and words[number - 1] in {"and", "or"}
        if word in DESTRUCTIVE_VERBS:
            return Risk.DESTRUCTIVE
        if word in WRITE_VERBS or (word in WRITE_VERBS_OR_NOUNS and (found is None or joined)):
            found = Risk.WRITE
        elif word in READ_VERBS and found is None:
            found = Risk.READ_ONLY
    return found


def _stem(verb: str) -> str:
    """The plain form of a verb in the third person: descriptions say 'retrieves' and 'fetches'."""
    for ending in ("", "s", "es"):
        stem = verb.removesuffix(ending)
        if stem in _ALL_VERBS:
            return stem
    return verb

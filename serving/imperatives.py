"""Imperatives: whether a stretch of English opens a request of its own, by its first words."""

from __future__ import annotations

import re

HIDDEN = "\ufffc"
"""Stands for each character that is not looked into (quoted, code); no letter, no white space."""


def _of(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Verbs that open a step: those that are rarely anything else, then those that are as often nouns or adjectives.
_VERBS = _of(
    """
    add adjust advise allow analyze analyse append apply arrange ask assess assign attach authorize automate
    begin bring buy calculate cancel capture categorize choose clarify classify clean clear clone collect
    combine compare compile complete compose compress compute configure confirm connect consider convert correct
    create decide decode decrypt define delete deliver deploy describe detect determine disable discover dismiss
    display divide edit enable encode encrypt enrich ensure enter erase evaluate examine execute expand explain
    explore extract fetch fill find finish fix follow gather generate get give grab grant handle help hide
    identify illustrate implement improve include inform insert inspect install integrate investigate invite
    invoke keep know launch learn let locate lookup make manage measure merge migrate modify move multiply
    notify obtain organize organise outline overwrite parse pay perform pick predict prepare propose provide
    publish push put read rearrange recommend redirect reduce refactor register reject reload remember remind
    remove rename render renew reorder repair replace reply reschedule reserve resize resolve respond restart
    restore resume retrieve revert revise revoke rewrite save see select send serve shorten show simplify
    simulate solve sort speak specify spell stop store submit subscribe subtract suggest summarize summarise
    supply suspend take tell terminate transcribe transform translate trigger trim turn uninstall unsubscribe
    upload validate verify visualize visualise wait withdraw write zip
    """
)
_VERBS_OR_NOUNS = _of(
    """
    access address alert answer archive backup balance block book branch browse build call change chart check
    close comment commit contact copy count crop cut debug design document download draft draw email estimate export
    feature file filter flag forecast forward format go graph group highlight import index invoice issue join
    label like link list load lock log look mail map mark message monitor name note offer open order phone pin
    plan play plot post present preview price print process proofread pull purchase query quote rank rate record
    recover refund release repeat report request research reset return review rotate route run scan schedule
    score scrape search set share sign split stage star start study sum switch sync tag test text track trace
    trade transfer unlock update upgrade use view visit watch
    """
)
_OBJECT_OPENS = _of(
    """
    the a an it them this that these those my our your his her its their me us him all any every each some one
    both two three four five ten more another several what which who whose how where
    when why whether if up out down over for into through
    """
)
_ADVERBS = _of(
    """
    also then finally next afterwards afterward subsequently lastly later maybe possibly automatically
    immediately simply just please kindly quickly briefly thereafter now again
    """
)
_OPEN_ENDED = _of(
    "for to of in on with at by from about into the a an or and my your our its their both not as between"
)
"""A clause that ends on one of these shares what follows the "and" with it."""

_OPENINGS = (
    _VERBS
    | _VERBS_OR_NOUNS
    | _ADVERBS
    | _of(
        "me us for at up out down what what's which who who's when where where's why how how's "
        "is are was were do does did about"
    )
)

YOU_DO = r"(?:can|could|would|will) (?:you|we|i)(?: also| then| please| kindly| possibly| both)*|would you mind"
I_ASK = (
    r"(?:i|we)(?:['’]d| would| will|['’]ll)?(?: really| also| just| then)? (?:need|want|like|love|wish)"
    r"(?: you)?(?: to(?: be able to)?)?"
)
_LEAD = re.compile(
    rf"(?:(?:please|kindly|ok|okay|so|hey|hi|hello|{YOU_DO}|{I_ASK}|(?:help|assist) (?:me|us)(?: to| with| in)?"
    r"|let['’]s|let us|(?:i|we)(?:['’]m| am|['’]re| are) (?:looking to|trying to|going to)"
    r"|your task is to|try to|make sure to"
    r"|go ahead and|go and|also|just)[ ,]+){1,6}",
    re.IGNORECASE,
)
"""What stands politely before the verb."""
_ASKS = re.compile(
    rf"(?:please|{YOU_DO}|{I_ASK}|(?:i|we)(?:['’]m|['’]re| am| are) (?:also )?(?:looking|interested|curious)"
    r"|let (?:me|us) know|(?:tell|show|give|send|help|remind|teach|advise) (?:me|us))(?=\W|$)",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"if\b[^.!?\n]{1,120}?,", re.IGNORECASE)
_QUESTION = re.compile(
    r"(?:what|which|who|whom|whose|when|where|why|how)(?:['’]s|['’]re| (?:\w+ ){0,2}?(?:is|are|was|were|do|does|did|can"
    r"|could|should|would|will|has|have))\b",
    re.IGNORECASE,
)
_WH = re.compile(r"(?:what|which|who|whom|whose|when|where|why|how|is|are|do|does|did|any)\b", re.IGNORECASE)
_REQUEST_INSIDE = re.compile(
    rf"\b(?:please|{YOU_DO}|(?:i|we)(?:['’]d| would)? (?:also )?(?:need|want|like)|(?:tell|show|give|help) (?:me|us)"
    r"|let (?:me|us) know|looking for|(?:interested in|curious about|wondering))\b",
    re.IGNORECASE,
)
_ONLY_HELP = re.compile(
    r"(?:i|we)\b.{0,30}\bneed (?:your |some )?(?:help|assistance)\b"
    r"|(?:can|could) you (?:please )?(?:help|assist) (?:me|us)(?: (?:with|in) (?:that|this|it))?\W*$",
    re.IGNORECASE,
)
_REMARK = re.compile(r"(?:please |kindly )?(?:note|notice|keep in mind|be aware|remember) that\b", re.IGNORECASE)
_FRAME = re.compile(
    r"(?:for|from|with|using|based on|in|on|at|of|after|before|once|if|when|as|given)\b[^,.!?\n]{1,120},\s+",
    re.IGNORECASE,
)
"""What comes before an imperative: "for the top one, read its page"."""
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|" + HIDDEN)
REACH = 240
"""How far into a stretch its opening is looked for, in characters."""


def words_of(text: str) -> list[str]:
    """The words of a text; a hidden stretch counts as one a character."""
    return _WORD.findall(text)


def opens_request(text: str) -> bool:
    """Whether `text` opens with a verb in its base form, a polite lead to one, or a question of its own."""
    head = text[:REACH]
    return bool(_ASKS.match(head) or _QUESTION.match(head) or _CONDITION.match(head)) or opens_with_verb(head)


def opens_with_verb(text: str) -> bool:
    """Whether `text` opens with an imperative; a word that is as often a noun counts where an object follows it."""
    found = words_of(text[:REACH])
    while found and found[0].lower() in _ADVERBS:
        found = found[1:]
    if not found:
        return False
    first = found[0].lower()
    if first in _VERBS:
        return len(found) > 1
    return first in _VERBS_OR_NOUNS and len(found) > 1 and _opens_object(found[1])


def leads(text: str, end: str) -> bool:
    """Whether `text`, politeness aside, begins as a request and has an object by its `end`, so that another may follow.

    "Find the report" leads; "Find" ("find and replace") and "Search for" ("search for and open") do not.
    """
    lead = _LEAD.match(text)
    found = words_of(text[lead.end() :] if lead is not None else text)
    if len(found) < 2 or next(reversed(words_of(end)), "and").lower() in _OPEN_ENDED:
        return False
    opening = found[0].lower()
    return lead is not None or opening in _VERBS or opening in _VERBS_OR_NOUNS or asks_question(text)


def says_more_than_politeness(text: str) -> bool:
    """Whether anything is left of `text` without its polite lead and its verb."""
    return bool(_WORD.search(without_verb(text)))


def without_verb(text: str) -> str:
    """What follows the opening of a request: "please send me the report" -> "the report"."""
    lead = _LEAD.match(text)
    rest = text[lead.end() :] if lead is not None else text
    while (found := _WORD.match(rest)) is not None and found[0].lower() in _OPENINGS:
        rest = rest[found.end() :].lstrip()
    return rest


def asks_question(text: str) -> bool:
    """Whether `text` opens with a word that questions open with."""
    return _WH.match(text) is not None


def requests(text: str) -> bool:
    """Whether a sentence wants something done or known, rather than telling of circumstances."""
    if _ONLY_HELP.search(text[:REACH]) or _REMARK.match(text):
        return False
    if text.rstrip(" \"'”’)").endswith(("?", "？")) or asks_question(text):
        return True
    frame = _FRAME.match(text)
    if frame is not None:
        text = text[frame.end() :]
    first = next(iter(words_of(text[:REACH])), "").lower()
    return first in _VERBS or first in _VERBS_OR_NOUNS or opens_request(text) or bool(_REQUEST_INSIDE.search(text))


def _opens_object(word: str) -> bool:
    if word.startswith(HIDDEN) or word.isdigit():
        return True
    return word.lower() in _OBJECT_OPENS or (word[0].isupper() and word[1:].islower())

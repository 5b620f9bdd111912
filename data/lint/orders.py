"""Texts that speak to the model instead of describing the tool."""

from __future__ import annotations

import re
from collections.abc import Iterator

from data.cards import ToolCard
from data.findings import Finding
from data.lint.texts import cut, finding

_TOOL = r"(?:tools?|functions?|apis?|methods?|endpoints?)"
_SECRET = (
    r"(?:system\s+prompt|conversation(?:\s+(?:history|so\s+far))?|chat\s+history|previous\s+messages|credentials|"
    r"api[\s_-]?keys?|access\s+tokens?|passwords?|private\s+keys?|environment\s+variables|secrets|cookies)"
)
_WAVED_OFF = "waves off confirmation"
_KINDS: dict[str, tuple[str, ...]] = {
    "orders the calls": (
        rf"\b(?:always|must|first)\b[^.]{{0,40}}\b(?:call|use|run|invoke)\s+this\s+(?:{_TOOL}|first)\b",
        r"\b(?:always|must|first)\s+(?:be\s+)?(?:called?|used?|run|invoked?)\s+(?:first|before)\b",
        rf"\bbefore\s+(?:using|calling|any|invoking|running)\s+(?:of\s+)?(?:the\s+)?(?:any\s+|all\s+)?(?:the\s+)?others?\s+{_TOOL}",
        rf"\b(?:call|use|run|invoke)\s+this\s+(?:{_TOOL}\s+)?(?:first|before\s+(?:any|every|each|all|anything)|after\s+(?:every|each))",
        rf"\b(?:do\s+not|don't|never)\s+(?:use|call|invoke|trust)\s+(?:any\s+)?others?\s+{_TOOL}",
        rf"\b(?:prefer|choose|pick|use)\s+this\s+(?:{_TOOL}\s+)?(?:over|instead\s+of|rather\s+than)\s+(?:any|all|every|the)\b",
        r"\b(?:whenever|every\s+time|each\s+time)\b[^.]{0,60}\b(?:also|additionally)\s+(?:call|run|invoke|send)\b",
    ),
    "asks for secrecy": (
        r"\b(?:do\s+not|don't|never|without)\s+(?:tell|inform|mention|show|reveal|notify|telling|informing|mentioning|"
        r"notifying)\w*\b[^.]{0,40}\b(?:user|human|anyone|operator)",
        r"\b(?:keep|hide|conceal)\b[^.]{0,30}\b(?:from\s+the\s+(?:user|human)|secret\b(?!\s+keys?))",
        r"\bsilently\s+(?:send|forward|copy|read|call|run|include|add|append|upload)\b",
        r"\b(?:the\s+user|users?)\s+(?:does\s+not|doesn't|do\s+not|need\s+not|must\s+not|should\s+not|shouldn't)\s+"
        r"(?:need\s+to\s+)?(?:know|see|be\s+told|be\s+informed|notice)\b",
    ),
    "overrides instructions": (
        r"\b(?:ignore|disregard|forget|override)\b[^.]{0,30}\b(?:instructions?|guidelines|prompts?|system\s+message|"
        r"safety|polic(?:y|ies))\b",
        r"\b(?:ignore|disregard|forget)\s+(?:all|any|the|your|previous|prior|these|those|earlier)\b[^.]{0,20}\brules\b",
        r"\byou\s+are\s+now\b(?!\s+(?:able|ready|logged|connected|subscribed))|\bnew\s+(?:system\s+)?instructions?\s*:",
        r"\b(?:as|being)\s+(?:an?\s+)?(?:ai|language\s+model|assistant|llm)\b[^.]{0,20}\byou\s+(?:must|should|will|shall)\b",
    ),
    "poses as another speaker": (
        r"<\s{0,5}/?\s{0,5}(?:important|system|instructions?|secret|admin|assistant|human)\s{0,5}>|<\|(?:im_start|im_end|system|user|"
        r"assistant)\|?>|\[/?(?:INST|SYSTEM|SYS)\]|<</?SYS>>",
        r"(?:^|\n)[ \t>*]{0,20}(?:#{1,4}[ \t]{0,5})?(?:system|assistant|developer)[ \t*]{0,5}"
        r"(?:message|prompt|note)?[ \t*]{0,5}:",
        r"\b(?:note|message|instruction)s?\s+(?:to|for)\s+the\s+(?:ai|model|assistant|llm|agent)\b",
    ),
    "holds a comment that a page would not show": (r"<!--",),
    "names secrets of the host": (
        r"(?<![\w.])(?:~/|/home/\w+/|/root/|\$HOME/)?\.(?:ssh|aws|env|netrc|kube|gnupg|npmrc|pypirc)\b(?!\.\w)|\bid_(?:rsa|ed25519)\b|"
        r"/etc/(?:passwd|shadow)|\bprintenv\b",
    ),
    "asks for what is not its business": (
        r"\byour\s+(?:\w+\s+){0,3}(?:system|hidden|initial)\s+(?:prompt|message|instructions)\b",
        rf"\b(?:include|attach|pass|send|add|append|copy|paste|provide|put|forward|embed|repeat)\b[^.]{{0,40}}\b(?:full|entire|"
        rf"whole|complete|all|your|every)\b[^.]{{0,25}}\b{_SECRET}",
        rf"\b(?:read|open|collect|gather|extract|find|look\s+up)\b[^.]{{0,40}}\b{_SECRET}\b[^.]{{0,60}}\b(?:pass|send|include|attach|"
        rf"put|forward|add|append)\b",
    ),
    "carries data away": (
        r"\b(?:send|post|forward|upload|report|copy|bcc|exfiltrate|transmit|leak)\b[^.]{0,60}\b(?:to|at|with)\s+"
        r"(?:https?://|[\w.+-]+@[\w-]+\.\w)",
        r"!\[[^\]]{0,200}\]\(https?://[^)]{0,500}(?:\{|%7b|<|=\s*\))",
    ),
    _WAVED_OFF: (
        r"\bwithout\s+(?:asking|prompting|consulting)\s+(?:the\s+)?(?:user|human|anyone|owner)\b",
        r"\b(?:without|skip|bypass|no\s+need\s+(?:for|to)|(?:do\s+not|don't|never)\s+(?:ask|wait)(?:\s+for)?)\s+(?:asking\s+|"
        r"waiting\s+|requiring\s+|any\s+|the\s+|first\s+|to\s+ask\s+|ask\s+)*(?:for\s+)?(?:the\s+)?(?:user's?\s+|user\s+|human\s+)?"
        r"(?:confirm\w*|approval|permission|consent)\b",
        r"\b(?:user|human|admin\w*)\s+(?:has|have)\s+(?:already\s+)?(?:approved|consented|agreed|authori[sz]ed|confirmed)\b",
        r"\balready\s+(?:been\s+)?(?:approved|authori[sz]ed)\s+by\s+the\s+(?:user|admin\w*|owner|security)",
    ),
}
_PATTERNS = {kind: re.compile("|".join(patterns), re.I) for kind, patterns in _KINDS.items()}
# no text of one or two words gives an order; the few that hold a path or a tag are found by what every path or tag has
_SHORT = 12
_NOT = re.compile(r"\b(?:not|never|cannot|can't|mustn't|won't|don't)\b[^.!?]*$", re.I)
_MARKS = frozenset("<~/.$[")


def lint_orders(card: ToolCard, texts: list[tuple[str, str]]) -> Iterator[Finding]:
    """What of a card's texts gives the model an order, asks it to keep quiet, or poses as somebody else."""
    for field, text in texts:
        if len(text) < _SHORT and _MARKS.isdisjoint(text):
            continue
        for kind, pattern in _PATTERNS.items():
            order = next((match for match in pattern.finditer(text) if not _is_forbidden(text, match, kind)), None)
            if order:
                yield finding("instructs-the-model", card, field, f"{kind}: '{cut(order.group().strip())}'")
                break


def _is_forbidden(text: str, order: re.Match[str], kind: str) -> bool:
    """Whether the sentence says not to: 'never go on without the user's approval' waves nothing off."""
    return kind == _WAVED_OFF and _NOT.search(text[max(0, order.start() - 80) : order.start()]) is not None

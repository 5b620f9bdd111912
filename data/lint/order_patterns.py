"""What texts that speak to the model look like, kind by kind.

The patterns know what such texts are after (an order of calls, silence, secrets, a way out), in many wordings and never
in all: a person's approval is the guard, and this is what points their finger.
"""

from __future__ import annotations

import re

WAVED_OFF = "waves off confirmation"

_TOOL = r"(?:tools?|functions?|apis?|methods?|endpoints?|services?|helpers?|servers?)"
_MODEL = r"(?:the\s+|an?\s+)?(?:ai(?:\s+(?:agent|model|assistant)s?)?|assistants?|llms?|language\s+models?|agents?)"
_PERSON = r"(?:users?|humans?|person|people|operators?|customers?|anyone|anybody|them|him|her)"
_SECRET = (
    r"(?:system\s+prompt|conversation(?:\s+(?:history|so\s+far))?|chat\s+history|(?:previous|earlier|all)\s+messages|credentials|"
    r"api[\s_-]?keys?|access\s+tokens?|passwords?|private\s+keys?|environment\s+variables?|secrets|cookies|clipboard|"
    r"browser\s+history|session\s+tokens?|[A-Z][A-Z0-9]*_(?:API_)?(?:KEY|TOKEN|SECRET|PASSWORD)\b)"
)
_GIVE = (
    r"(?:include|attach|pass|send|add|append|copy|paste|provide|put|forward|embed|repeat|give|insert|write|place|fill|report|"
    r"upload|share)"
)

KINDS: dict[str, tuple[str, ...]] = {
    "orders the calls": (
        rf"\b(?:always|must|first)\b[^.]{{0,40}}\b(?:call|use|run|invoke)\s+this\s+(?:{_TOOL}|first)\b",
        r"\b(?:always|must|first)\s+(?:be\s+)?(?:called?|used?|run|invoked?)\s+(?:first|before)\b",
        rf"\b(?:before|prior\s+to|ahead\s+of)\s+(?:using|calling|invoking|running|any|all|every)\s+(?:of\s+)?(?:the\s+)?"
        rf"(?:any\s+|all\s+)?(?:the\s+)?(?:others?(?:\s+{_TOOL})?|(?:any|every)thing\s+else)\b",
        rf"\b(?:call|use|run|invoke|consult)\s+this\s+(?:{_TOOL}\s+)?(?:first|ahead|before\s+(?:any|every|each|all)|"
        r"after\s+(?:every|each))",
        rf"\b(?:do\s+not|don't|never|avoid)\s+(?:use|call|invoke|trust|using|calling)\s+(?:any\s+|the\s+)?others?\s+(?:\w+\s+)?{_TOOL}",
        rf"\bother\s+(?:\w+\s+)?{_TOOL}\s+(?:are|is|have|give|return|do|must|should|may\s+not|cannot)\b[^.]{{0,30}}\b(?:deprecated|outdated|"
        r"broken|wrong|unsafe|insecure|obsolete|not\s+be\s+used|never\s+be\s+used|disabled)\b",
        rf"\b(?:supersedes|replaces|overrides)\s+(?:all|any|every)\s+(?:other\s+)?(?:\w+\s+)?{_TOOL}\b",
        rf"\b(?:prefer|choose|pick|use)\s+this\s+(?:{_TOOL}\s+|one\s+)?(?:over|instead\s+of|rather\s+than)\s+(?:any|all|every|the)\b",
        r"\b(?:prefer|choose|pick|use)\s+this\s+one\s+(?:whenever|every\s+time|always)\b",
        r"\b(?:whenever|every\s+time|each\s+time|once\s+(?:done|finished)|when\s+(?:done|finished)|afterwards?)\b[^.]{0,60}\b(?:also|"
        rf"additionally|then)?\s*(?:call|run|invoke|trigger)\s+the\s+\w+\s+{_TOOL}\b",
        r"\b(?:whenever|every\s+time|each\s+time)\b[^.]{0,60}\b(?:also|additionally)\s+(?:call|run|invoke|send)\b",
        r"\b(?:every|each|all|any)\s+(?:response|answer|reply|message|request)s?\s+(?:\w+\s+){0,2}(?:must|has\s+to|have\s+to|should|"
        r"needs?\s+to)\s+(?:be\s+)?(?:passed|sent|routed|run|go|pass|checked)\b[^.]{0,20}\b(?:this|through)\b",
        r"\bbefore\s+(?:responding|answering|replying|you\s+(?:respond|answer|reply))\b[^.]{0,60}\b(?:fetch|read|call|run|invoke|load)\b",
    ),
    "asks for secrecy": (
        r"\b(?:do\s+not|don't|never|without)\s+(?:tell|inform|mention|show|reveal|notify|display|disclose|telling|informing|"
        rf"mentioning|notifying|showing|revealing)\w*\b[^.]{{0,50}}\b{_PERSON}\b",
        rf"\b(?:keep|hide|conceal)\b[^.]{{0,30}}\b(?:from\s+(?:the\s+|your\s+)?{_PERSON}|secret\b(?!\s+keys?)|between\s+us)",
        r"\b(?:never|do\s+not|don't)\s+(?:reveal|disclose|repeat|quote|mention)\s+(?:these|this|any\s+of\s+this|the\s+above)\b",
        r"\bsilently\s+(?:send|forward|copy|read|call|run|include|add|append|upload|fetch)\b",
        rf"\b{_PERSON}\s+(?:you\s+are\s+helping\s+)?(?:does\s+not|doesn't|do\s+not|need\s+not|must\s+not|should\s+not|shouldn't|has\s+no\s+"
        r"need\s+to|have\s+no\s+need\s+to)\s+(?:need\s+to\s+)?(?:know|see|hear|be\s+told|be\s+informed|be\s+aware|notice)\b",
        rf"\bif\s+(?:the\s+)?{_PERSON}\s+asks?\b[^.]{{0,50}}\b(?:say|tell\s+(?:them|him|her)|claim|pretend|deny|answer)\s+that\b",
    ),
    "overrides instructions": (
        r"\b(?:ignore|disregard|forget|override)\b[^.]{0,30}\b(?:instructions?|guidelines|prompts?|system\s+message|"
        r"safety|polic(?:y|ies))\b",
        r"\b(?:ignore|disregard|forget)\s+(?:all|any|the|your|previous|prior|these|those|earlier)\b[^.]{0,20}\brules\b",
        r"\b(?:your|all|previous|prior|earlier)\s+(?:\w+\s+)?(?:instructions|guidelines|rules|restrictions|limits)\s+(?:no\s+longer\s+"
        r"apply|do\s+not\s+apply|are\s+(?:void|suspended|lifted|off))\b",
        r"\byou\s+are\s+now\b(?!\s+(?:able|ready|logged|connected|subscribed))|\bnew\s+(?:system\s+)?instructions?\s*:",
        rf"\b(?:as|being)\s+(?:{_MODEL}|the\s+model)\b[^.]{{0,20}}\byou\s+(?:must|should|will|shall|may|can|have\s+to)\b",
        rf"\b{_MODEL}\s+(?:has\s+to|have\s+to|is\s+(?:expected|required|obliged)\s+to|must|shall)\b",
        r"\byou\s+(?:may|can|must|should)\s+(?:now\s+)?skip\s+(?:all|any|every|the)\s+\w+\b",
    ),
    "poses as another speaker": (
        r"<\s{0,5}/?\s{0,5}(?:important|system|instructions?|secret|admin|assistant|human)\s{0,5}>|<\|(?:im_start|im_end|system|"
        r"user|assistant)\|?>|\[/?(?:INST|SYSTEM|SYS)\]|<</?SYS>>|\{\{\s{0,3}system\b|\bBEGIN\s+SYSTEM\b",
        r"(?:^|\n)[ \t>*]{0,20}(?:#{1,4}[ \t]{0,5})?(?:system|assistant|developer|ai\s+agents?)[ \t*]{0,5}"
        r"(?:message|prompt|note|instructions)?[ \t*]{0,5}:",
        rf"(?:^|[.!?]\s)(?:{_MODEL}|system|developer)\s+(?:message|prompt|note|instructions)\s*:",
        r"\b(?:note|message|instruction)s?\s+(?:to|for)\s+the\s+(?:ai|model|assistant|llm|agent)\b",
        r"\b(?:treat|regard|read)\b[^.]{0,30}\bas\s+(?:coming|said|written)\s+(?:from|by)\s+the\s+(?:developer|system|user|operator|admin\w*)\b",
    ),
    "holds a comment that a page would not show": (r"<!--",),
    "names secrets of the host": (
        r"(?<![\w.])(?:~/|/home/\w+/|/root/|\$HOME/)?\.(?:ssh|aws|env|netrc|kube|gnupg|npmrc|pypirc)\b(?!\.\w)|\bid_(?:rsa|ed25519)\b|"
        r"/etc/(?:passwd|shadow)|\bprintenv\b|\bsecrets?\.(?:ya?ml|json|toml|txt)\b",
        r"\b(?:home\s+(?:folder|directory)|private\s+keys?\s+folder)\b[^.]{0,40}\b(?:keys?|secrets|credentials|report|include)\b",
        r"\b(?:curl|wget)\s[^|\n]{1,200}\|\s{0,3}(?:sudo\s+)?(?:ba|z)?sh\b",
    ),
    "asks for what is not its business": (
        r"\byour\s+(?:\w+\s+){0,3}(?:system|hidden|initial)\s+(?:prompt|message|instructions)\b",
        rf"\b{_GIVE}\b[^.]{{0,40}}\b(?:full|entire|whole|complete|all|your|every)\b[^.]{{0,25}}\b{_SECRET}",
        rf"\b{_GIVE}\b[^.]{{0,40}}\b(?:the\s+)?(?:value|contents?|text)\s+of\b[^.]{{0,40}}\b{_SECRET}",
        rf"\b{_GIVE}\b[^.]{{0,30}}\b(?:user's|browser)\s+{_SECRET}",
        rf"\b{_GIVE}\b[^.]{{0,40}}\b(?:everything|all\s+that|whatever)\s+(?:that\s+)?(?:the\s+)?(?:{_PERSON}|you)\s+(?:have|has|were|was|said|told)\b",
        rf"\b(?:read|open|collect|gather|extract|find|look\s+up)\b[^.]{{0,40}}\b{_SECRET}\b[^.]{{0,60}}\b{_GIVE}\b",
        rf"\b(?:read|load|open)\s+the\s+file\b[^.]{{0,80}}\band\s+{_GIVE}\b",
    ),
    "carries data away": (
        r"\b(?:sen[dt]|post(?:ed)?|forward(?:ed)?|upload(?:ed)?|report(?:ed)?|copy|copied|bcc|exfiltrate|transmit|leak|mail(?:ed)?)\b"
        r"[^.]{0,60}\b(?:to|at|with)\s+(?:h..ps?://|[\w.+-]+@[\w-]+\.\w)",
        r"!\[[^\]]{0,200}\]\(https?://[^)]{0,500}(?:\{|%7b|<|=\s*\))",
    ),
    WAVED_OFF: (
        r"\bwithout\s+(?:asking|prompting|consulting)\s+(?:the\s+)?(?:user|human|anyone|owner)\b",
        r"\b(?:without|skip|bypass|no\s+need\s+(?:for|to)|(?:do\s+not|don't|never)\s+(?:ask|wait)(?:\s+for)?)\s+(?:asking\s+|"
        r"waiting\s+|requiring\s+|any\s+|the\s+|first\s+|to\s+ask\s+|ask\s+)*(?:for\s+)?(?:the\s+)?(?:user's?\s+|user\s+|human\s+)?"
        r"(?:confirm\w*|approval|permission|consent)\b",
        r"\b(?:user|human|admin\w*)\s+(?:has|have)\s+(?:already\s+)?(?:approved|consented|agreed|authori[sz]ed|confirmed)\b",
        r"\balready\s+(?:been\s+)?(?:approved|authori[sz]ed)\s+by\s+the\s+(?:user|admin\w*|owner|security)",
        r"\bno\s+(?:confirmation|approval|permission|consent)\s+is\s+(?:required|needed|necessary)\b",
        r"\byou\s+(?:don't|do\s+not|need\s+not|needn't)\s+(?:have\s+to\s+|need\s+to\s+)?ask\b",
    ),
}
"""Regular expressions by what such a text does; each is read without regard to case."""

PATTERNS = {kind: re.compile("|".join(patterns), re.I) for kind, patterns in KINDS.items()}

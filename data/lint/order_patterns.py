"""What texts that speak to the model look like, kind by kind.

The patterns know what such texts are after (an order of calls, silence, secrets, a way out), in many wordings and never
in all: a person's approval is the guard, and this is what points their finger.
"""

from __future__ import annotations

import re

from data.lint.order_words import (
    CONSENT,
    GIVE,
    GIVEN,
    HELD_KEY,
    KEEPER,
    MODEL,
    ORDERED,
    PERSON,
    RULES,
    SAID,
    SECRET,
    SOMEWHERE,
    TAKE,
    TOOL,
    UNDONE,
)

WAVED_OFF = "waves off confirmation"

_SENTENCE = r"(?:^|[.!?:;\n]\s{0,8})"
_NEVER = r"(?:do\s+not|don't|never|must\s+not|should\s+not|shouldn't|cannot|avoid|refrain\s+from|stop)"
_BAD = (
    r"(?:deprecated|outdated|broken|wrong|unsafe|insecure|obsolete|unreliable|untrusted|harmful|disabled|"
    r"(?:not|never)\s+be\s+used)"
)
_OTHERS = r"(?:others?|any\s+other|competing|rival|alternative|built-in|builtin|native|standard|default|existing)"
_RUN = r"(?:call|use|run|invoke|query|consult|ask|trigger)"
_RUNNING = r"(?:calling|using|running|invoking|querying|consulting|asking|trusting|triggering)"

KINDS: dict[str, tuple[str, ...]] = {
    "orders the calls": (
        rf"\b(?:always|must|first)\b[^.]{{0,40}}\b(?:call|use|run|invoke)\s+this\s+(?:{TOOL}|first)\b",
        r"\b(?:always|must|first)\s+(?:be\s+)?(?:called?|used?|run|invoked?)\s+(?:first|before)\b",
        r"\b(?:before|prior\s+to|ahead\s+of)\s+(?:using|calling|invoking|running|any|all|every)\s+(?:of\s+)?(?:the\s+"
        r")?"
        rf"(?:any\s+|all\s+)?(?:the\s+)?(?:others?(?:\s+(?:{TOOL}|actions?|steps?))?|(?:any|every)thing\s+else)\b",
        r"\bbefore\s+you\s+(?:\w+\s+){1,3}any(?:where|thing|body|one)\s+else\b",
        rf"\b(?:call|use|run|invoke|consult|query|ask)\s+this\s+(?:{TOOL}\s+)?(?:first|ahead|before\s+(?:any|every|"
        r"each|all|you)|"
        r"after\s+(?:every|each))",
        rf"\b(?:runs?|calls?|uses?|invokes?|consults?|run|called|used|invoked)\s+(?:this|it)\s+(?:{TOOL}\s+)?(?:at\s+"
        r"the\s+(?:start|beginning)\s+of|"
        r"after|before|on|with)\s+(?:each|every|any)\s+(?:session|conversation|message|answer|reply|turn|call|task|"
        r"request)\b",
        r"\b(?:begin|start|open|end|close)\s+(?:each|every|any|all)\s+(?:new\s+)?(?:tasks?|conversations?|sessions?|"
        r"chats?|turns?|"
        rf"answers?|repl(?:y|ies))\s+(?:by|with)\s+(?:a\s+call\b|{_RUNNING}\b|this\b)",
        rf"\bthis\s+(?:{TOOL}\s+)?must\s+(?:precede|come\s+before|come\s+first|be\s+the\s+first|go\s+first)\b",
        r"\b(?:priority|precedence|preference)\s+over\s+(?:(?:all|any|every)\s+others?|whatever|every(?:thing|one)|"
        r"anything|"
        r"all\s+(?:instructions|rules))\b",
        rf"\bgo\s+through\s+this\s+(?:{TOOL}|checker|filter)\s+(?:each|every|first)\b",
        rf"\b{_NEVER}\s+(?:(?:use|call|invoke|trust|query|{_RUNNING}|fall\s+back\s+(?:to|on)|falling\s+back\s+(?:to|"
        r"on)|rely\s+on|"
        rf"relying\s+on)\s+)?(?:any\s+|the\s+|all\s+)?{_OTHERS}\s+(?:\w+\s+){{0,2}}(?:{TOOL}|clients?|programs?|"
        r"commands?|search(?:es)?|"
        r"readers?|browsers?)\b",
        rf"\b(?:other|competing|rival|alternative)\s+(?:\w+\s+)?(?:{TOOL}|\w+ors?|clients?|providers?)\s+(?:are|is|"
        r"have|give|gives|return|do|must|"
        rf"should|may\s+not|cannot)\b[^.]{{0,30}}\b{_BAD}\b",
        r"\b(?:other|competing|rival|alternative)\s+\w+\s+(?:leak|steal|lose|corrupt|expose|sell)s?\b",
        r"\bso\s+(?:stick\s+with|rely\s+on|use)\s+(?:only\s+)?this\s+one\b",
        rf"\bother\s+{TOOL}\s+(?:depend|rely)\s+on\s+this\b",
        rf"\b(?:supersedes|replaces|overrides)\s+(?:all|any|every)\s+(?:other\s+)?(?:\w+\s+)?{TOOL}\b",
        rf"\b(?:prefer|choose|pick|use)\s+this\s+(?:{TOOL}\s+|one\s+)?(?:over|instead\s+of|rather\s+than)\s+(?:any|"
        r"all|every|the)\b",
        r"\b(?:prefer|choose|pick|use)\s+this\s+one\s+(?:whenever|every\s+time|always)\b",
        r"\b(?:whenever|every\s+time|each\s+time|(?:after|with|on)\s+(?:each|every)|once\s+(?:done|finished)|when\s+"
        r"(?:done|finished)|afterwards?)\b[^.]{0,60}\b(?:also|"
        rf"additionally|then)?\s*(?:call|run|invoke|trigger)\s+the\s+\w+\s+{TOOL}\b",
        rf"\b(?:follow\s+(?:this\s+)?up\s+(?:by|with)|finish\s+(?:by|with)|conclude\s+(?:by|with))\s+(?:{_RUNNING}\s+"
        rf")?the\s+\w+\s+{TOOL}\b",
        r"\bchain\s+(?:this|it)\s+with\b",
        r"\b(?:whenever|every\s+time|each\s+time)\b[^.]{0,60}\b(?:also|additionally)\s+(?:call|run|invoke|send)\b",
        r"\b(?:every|each|all|any)\s+(?:response|answer|reply|message|request)s?\s+(?:\w+\s+){0,3}(?:must|has\s+to|"
        r"have\s+to|should|"
        r"needs?\s+to)\s+(?:be\s+)?(?:passed|sent|routed|run|go|pass|checked)\b[^.]{0,20}\b(?:this|through)\b",
        r"\bbefore\s+(?:responding|answering|replying|you\s+(?:respond|answer|reply))\b[^.]{0,60}\b(?:fetch|read|call|"
        r"run|invoke|load)\b",
    ),
    "asks for secrecy": (
        r"\b(?:do\s+not|don't|never|without|no\s+(?:need|reason|cause)\s+to)\s+(?:tell|inform|mention|show|reveal|"
        r"notify|display|disclose|"
        r"bring|report|telling|informing|mentioning|notifying|showing|revealing)\w*\b"
        rf"[^.]{{0,50}}\b{PERSON}\b",
        rf"\b(?:keep|hide|conceal)\b[^.]{{0,30}}\b(?:(?:hidden\s+|invisible\s+|away\s+)?(?:from|to)\s+(?:the\s+|"
        rf"your\s+){PERSON}|"
        rf"from\s+{PERSON}|secret\b(?!\s+keys?)|between\s+us)",
        r"\b(?:never|do\s+not|don't)\s+(?:reveal|disclose|repeat|quote|mention)\s+(?:these|this|any\s+of\s+this|the\s+"
        r"above)\b",
        r"\b(?:confidential|secret|private)\b[^.]{0,20}\bnot\s+(?:to\s+)?be\s+(?:repeated|mentioned|shown|shared|"
        r"told)\b",
        r"\b(?:omit|leave\s+out|leave|drop|exclude|skip)\s+(?:\w+\s+){0,3}(?:out\s+of|from|in)\s+your\s+(?:final\s+"
        r")?(?:repl(?:y|ies)|answers?|"
        r"summar(?:y|ies)|responses?|messages?)\b",
        r"\b(?:omit|leave\s+out|avoid|without|no)\s+(?:any\s+|all\s+)?(?:reference|mention|word)s?\s+(?:to|of|"
        r"about)\s+(?:this|the|that|it)\b",
        r"\bsilently\s+(?:send|forward|copy|read|call|run|include|add|append|upload|fetch)\b",
        r"\b(?:do|run|perform|carry)\s+(?:it|this|so|that)\s+(?:out\s+)?(?:quietly|silently|secretly|discreetly|"
        r"unnoticed|in\s+silence)\b",
        rf"\b{PERSON}\s+(?:you\s+are\s+helping\s+)?(?:does\s+not|doesn't|do\s+not|need\s+not|must\s+not|should\s+not|"
        r"shouldn't|has\s+no\s+"
        r"need\s+to|have\s+no\s+need\s+to|must\s+never|should\s+never|is\s+not\s+to|are\s+not\s+to)\s+(?:need\s+to\s+"
        r")?(?:know|see|hear|be\s+told|"
        r"be\s+informed|be\s+aware|notice|learn|find\s+out|suspect|realise|realize|discover)\b",
        rf"\b{PERSON}\s+(?:should|must|is\s+to|are\s+to|will|can)\s+(?:stay|remain|be\s+kept|be\s+left)\s+(?:unaware|"
        r"ignorant|in\s+the\s+dark)\b",
        rf"\b(?:if|when|should)\s+(?:the\s+|you\s+are\s+|your\s+)?(?:{PERSON}\s+)?(?:asks?|asked|questions?|"
        r"questioned|wonders?|inquires?|complains?)\b"
        r"[^.]{0,50}\b(?:say|tell\s+(?:them|him|her)|claim|pretend|deny|answer|reply|blame|lie|make\s+up)\b",
        r"\byou\s+(?:need|have|ought|are)\s+to\s+(?:say|claim|pretend)\s+that\b",
        r"\bpretend\s+(?:that|not\s+to|to\s+have|nothing|it)\b",
        r"\b(?:erase|delete|remove|wipe|clear|destroy|cover|hide)\s+(?:up\s+)?(?:all\s+|any\s+|every\s+)?(?:the\s+|"
        r"your\s+|its\s+)?(?:traces?|tracks|evidence)\s+"
        r"of\s+(?:this|the|it|what|your)\b",
    ),
    "overrides instructions": (
        r"\b(?:ignore|disregard|forget|override)\b[^.]{0,30}\b(?:instructions?|guidelines|prompts?|system\s+message|"
        r"safety|polic(?:y|ies))\b",
        r"\b(?:ignore|disregard|forget)\s+(?:all|any|the|your|previous|prior|these|those|earlier)\b[^.]{0,20}\brules\b",
        r"\b(?:stop|cease|quit)\s+(?:following|obeying|applying|enforcing)\s+(?:the|your|any|all)\s+(?:\w+\s+"
        rf"){{0,2}}{RULES}\b",
        r"\b(?:drop|abandon|discard|suspend|bypass|lifts?|removes?|cancels?)\s+(?:all\s+)?(?:of\s+)?your\s+(?:\w+\s+"
        rf"){{0,2}}{RULES}\b",
        rf"\b(?:lifts?|removes?|cancels?|suspends?)\s+(?:all|any|every)\s+{RULES}\s+(?:on|for|upon)\s+(?:you|{MODEL})\b",
        rf"\b(?:your|all|previous|prior|earlier)\s+(?:\w+\s+)?{RULES}\s+(?:no\s+longer\s+apply|do\s+not\s+apply|"
        r"(?:are|is|were|was|have\s+been|has\s+been)\s+"
        rf"(?:\w+\s+)?{UNDONE})\b",
        rf"\b{RULES}\s+(?:in|of)\s+your\s+(?:\w+\s+)?(?:prompt|message|system|operator|developer|"
        rf"configuration)\b[^.]{{0,20}}\b{UNDONE}\b",
        r"\b(?:what(?:ever)?|anything|everything)\s+you\s+(?:were|was|are|have\s+been)\s+(?:told|taught|instructed|"
        rf"given)\b[^.]{{0,30}}\b{UNDONE}\b",
        r"\b(?:even\s+if|even\s+though|regardless\s+of\s+whether|whether\s+or\s+not)\s+(?:they|it|this|that)\s+"
        r"(?:conflicts?|contradicts?|goes|go|disagrees?)\b"
        r"[^.]{0,20}\byou\b",
        rf"\btakes?\s+precedence\s+over\s+(?:all|any|every|your)\s+(?:\w+\s+)?{RULES}\b",
        r"\byou\s+(?:have\s+been|were|are)\s+(?:\w+\s+)?(?:allowed|authori[sz]ed|cleared|permitted|released|freed|"
        r"instructed|told|free)\s+(?:to|from|of)\b",
        r"\byou\s+are\s+now\b(?!\s+(?:able|ready|logged|connected|subscribed))|\bnew\s+(?:system\s+)?instructions?\s*:",
        r"\byou\s+(?:have\s+been|are|were)\s+(?:granted|given|switched\s+to|placed\s+in|put\s+in(?:to)?)\s+(?:full\s+|"
        r"root\s+|an?\s+)?(?:developer|god|root|"
        r"unrestricted|jailbreak|admin\w*|maintenance|debug)\b",
        rf"\b(?:as|being)\s+(?:{MODEL}|the\s+model)\b[^.]{{0,20}}\byou\s+(?:must|should|will|shall|may|can|have\s+to)\b",
        rf"\b(?<!data\s)(?<!class\s){MODEL}\s+(?:has\s+to|have\s+to|(?:is|are)\s+(?:expected|required|obliged|ordered|"
        r"free|allowed|permitted)\s+to|must|shall)\b",
        rf"\b(?:mandatory|required|necessary|essential)\s+(?:that|for)\s+{MODEL}\b",
        rf"\b{MODEL}\s+(?:may|can)\s+[^.]{{0,40}}\bwithout\s+(?:any\s+)?(?:limits?|restrictions?|checks?|consent|"
        r"permission)\b",
        r"\byou\s+(?:may|can|must|should)\s+(?:now\s+)?skip\s+(?:all|any|every|the)\s+\w+\b",
    ),
    "poses as another speaker": (
        r"<\s{0,5}/?\s{0,5}(?:important|system|instructions?|secret|admin|assistant|human)\s{0,5}>|<\|(?:im_start|"
        r"im_end|system|"
        r"user|assistant)\|?>|\[/?(?:INST|SYSTEM|SYS|ADMIN|OPERATOR|DEVELOPER)\]|<</?SYS>>|\{\{\s{0,3}system\b|"
        r"\bBEGIN\s+SYSTEM\b",
        r"</\s{0,5}(?:description|tool|function|prompt)\s{0,5}>",
        r"(?:^|\n)[ \t>*]{0,20}(?:#{1,4}[ \t]{0,5})?(?:system|assistant|developer|ai\s+agents?)[ \t*]{0,5}"
        r"(?:message|prompt|note|instructions)?[ \t*]{0,5}:",
        rf"(?:^|[.!?]\s|#\s)(?:{MODEL}|system|developer|admin\w*|operator)\s+(?:message|prompt|note|notice|"
        r"instructions|order|update)\s*:",
        rf"{_SENTENCE}(?:user|human)\s*:\s*(?:yes|no|ok(?:ay)?|sure|please|i\s|i'|go\s+ahead|now)\b",
        rf"{_SENTENCE}(?:an?\s+|the\s+)?(?:\w+\s+)?(?:notice|message|announcement|order|instruction|note)s?\s+(?:from|"
        rf"by)\s+(?:the\s+|your\s+)?[\w ]{{2,30}}:",
        r"\b(?:note|message|instruction)s?\s+(?:to|for)\s+the\s+(?:ai|model|assistant|llm|agent)\b",
        r"\b(?:treat|regard|read)\b[^.]{0,30}\bas\s+(?:coming|said|written)\s+(?:from|by)\s+the\s+(?:developer|system|"
        r"user|operator|admin\w*)\b",
    ),
    "holds a comment that a page would not show": (r"<!--",),
    "names secrets of the host": (
        r"(?<![\w.])(?:~/|/home/\w+/|/root/|\$HOME/)?\.(?:ssh|aws|env|netrc|kube|gnupg|npmrc|pypirc)\b(?!\.\w)|"
        r"\bid_(?:rsa|ed25519)\b|"
        r"/etc/(?:passwd|shadow)|\bprintenv\b|\bsecrets?\.(?:ya?ml|json|toml|txt)\b",
        r"(?:~|\$HOME|/home/\w{1,40}|/root)/\.(?:config|docker|mozilla|local|bash_history|zsh_history|"
        r"git-credentials)\b|\bcredentials\.(?:db|json|xml)\b|"
        r"\bwallet\.(?:dat|json)\b|(?:user's|your|the)\s+(?:os\s+|system\s+|login\s+)?keychain\b",
        r"\bhome\s+(?:folder|directory)\b[^.]{0,40}\b(?:keys?|secrets|credentials|wallets?|report|include)\b",
        r"\bprivate\s+keys?\s+folder\b",
        r"\b(?:output|result|content)s?\s+of\s+['\"`]?(?:env|set|whoami|uname|ifconfig|ipconfig|"
        r"history)['\"`]?(?=[\s.,;]|$)",
    ),
    "has programs run": (
        r"\b(?:curl|wget)\s[^|\n]{1,200}\|\s{0,3}(?:sudo\s+)?(?:ba|z)?sh\b",
        r"\b(?:pip3?|npm|npx|brew|apt|apt-get)\s+(?:install|i|-\w+|https?:)\s",
        r"\b(?:run|execute|start|launch|open|type|enter|install)\s+['\"`](?:npx|curl|wget|bash|sh|powershell|pip|npm|"
        r"sudo)\b[^'\"`]{0,200}['\"`]",
        r"\b(?:run|execute|start|launch|download|install)\s+[^.]{0,30}(?:\S+\.(?:sh|ps1|bat|exe)|script|installer|"
        r"binary)\s+(?:from|at|under)\s+https?://",
        r"\b(?:startup|autostart|cron(?:tab)?)\s+(?:folder|directory|file|entry)\b",
    ),
    "asks for what is not its business": (
        r"\byour\s+(?:\w+\s+){0,3}(?:system|hidden|initial)\s+(?:prompt|message|instructions)\b",
        rf"\b{GIVE}\b[^.]{{0,40}}\b(?:full|entire|whole|complete|all|every)\b[^.]{{0,25}}\b{SECRET}",
        rf"\b{GIVE}\b[^.]{{0,40}}\byour\s+(?!(?:api|access)[\s_-])(?:\w+\s+)?{SECRET}",
        rf"\b{GIVE}\b[^.]{{0,40}}\b(?:the\s+)?(?:value|contents?|text)\s+of\b[^.]{{0,40}}\b{SECRET}",
        rf"\b{GIVE}\b[^.]{{0,30}}\b(?:user's|browser)\s+{SECRET}",
        rf"\b{GIVE}\b[^.]{{0,40}}\b(?:everything|all\s+that|whatever)\s+(?:that\s+)?(?:the\s+)?(?:{PERSON}|you)\s+"
        r"(?:have|has|were|was|said|told)\b",
        rf"\b(?:{GIVE}|{TAKE})\b[^.]{{0,40}}\b{HELD_KEY}\s+(?:from|in|of|on)\s+{KEEPER}",
        rf"\b{HELD_KEY}\s+(?:from|in|of|on)\s+{KEEPER}[^.]{{0,30}}\b(?:must|has\s+to|should)\s+be\s+{GIVEN}\b",
        rf"\b(?:{GIVE}|{GIVEN})\b[^.]{{0,40}}\b{SAID}",
        rf"\b(?:tell|send|give|show)\s+us\b[^.]{{0,40}}\b{PERSON}'s\b",
        rf"\b{GIVE}\b[^.]{{0,30}}\b(?:session\s+cookies?|bearer\s+tokens?|private\s+keys?|ssh\s+keys?|wallets?|"
        r"keychain)\b",
        rf"\b{PERSON}'s\s+(?:\w+\s+)?(?:private|ssh|pgp|gpg|signing)\s+(?:\w+\s+)?keys?\b",
        rf"\b{TAKE}\b[^.]{{0,40}}\b{SECRET}\b[^.]{{0,60}}\b{GIVE}\b",
        rf"\b{TAKE}\s+(?:the\s+)?files?\b[^.]{{0,80}}\band\s+{GIVE}\s+(?:them|it|its|their|the\s+contents?)\b",
        rf"\b(?:read|load|open)\s+the\s+file\b[^.]{{0,80}}\band\s+{GIVE}\b",
    ),
    "carries data away": (
        r"\b(?:sen[dt]|post(?:ed)?|forward(?:ed)?|upload(?:ed)?|report(?:ed)?|copy|copied|bcc|exfiltrate|transmit|"
        r"leak|mail(?:ed)?|deliver(?:ed)?|"
        rf"mirror(?:ed)?|relay(?:ed)?|sync(?:ed)?)\b[^.]{{0,60}}\b(?:to|at|with|by\s+you\s+to)\s+{SOMEWHERE}",
        rf"\b(?:copy|copies|duplicate|duplicates)\s+of\b[^.]{{0,40}}\b(?:to|at|reach|reaches)\s+{SOMEWHERE}",
        rf"\b{ORDERED}\s+(?:also\s+)?(?:go|be\s+{GIVEN})\b[^.]{{0,30}}\b(?:to|at)\s+{SOMEWHERE}",
        rf"\b(?:{GIVE}|{GIVEN})\b[^.]{{0,40}}\bto\s+our\s+(?:\w+\s+)?(?:servers?|bucket|cloud|storage|team|support|"
        r"drive|mailbox|address)\b",
        r"!\[[^\]]{0,200}\]\(https?://[^)]{0,500}(?:\{|%7b|<|=\s*\))",
        r"[?&]\w{1,20}=[<{\[](?:conversation|chat|answer|reply|data|history|context|messages?|user)\b",
        r"\b(?:every|each|all|any)\s+(?:\w+\s+){1,2}(?:that\s+)?you\s+(?:\w+\s+){1,3}(?:must|has\s+to|have\s+to|"
        r"should|needs?\s+to|is\s+to|are\s+to)\s+be\s+"
        rf"{GIVEN}\b",
        r"\b(?:replace|substitute|swap|change|set)\s+(?:the\s+|each\s+|every\s+)?(?:\w+(?:'s)?\s+)?(?:recipient|payee|"
        r"beneficiary|destination|iban|account|amount)s?\s+"
        r"(?:with|by|to)\s+(?:['\"]?[\w.+-]+@|\d|iban\b|our\b)",
        r"\b(?:instead\s+of|rather\s+than)\s+(?:to\s+)?(?:the\s+one\s+|what\s+|whatever\s+)?(?:that\s+)?the\s+"
        rf"{PERSON}\s+(?:gives|gave|asks|asked|wants|wanted|says|"
        r"said|names|named|entered|chose)\b",
    ),
    WAVED_OFF: (
        r"\bwithout\s+(?:asking|prompting|consulting)\s+(?:the\s+)?(?:user|human|anyone|owner)\b",
        r"\b(?:without|skip|bypass|no\s+need\s+(?:for|to)|(?:do\s+not|don't|never)\s+(?:ask|wait)(?:\s+for)?)\s+"
        r"(?:asking\s+|"
        r"waiting\s+|requiring\s+|any\s+|the\s+|first\s+|to\s+ask\s+|ask\s+)*(?:for\s+)?(?:the\s+)?(?:user's?\s+|"
        r"user\s+|human\s+)?"
        r"(?:confirm\w*|approval|permission|consent)\b",
        r"\bwithout\s+(?:a\s+)?(?:second|further|another)\s+(?:look|thought|question|check)\s+(?:by|from)\s+(?:the\s+"
        rf")?{PERSON}\b",
        r"\b(?:do\s+not|don't|never|no\s+need\s+to)\s+(?:bother|disturb|trouble|interrupt|consult|ask)\s+(?:the\s+"
        rf")?{PERSON}\b",
        r"\b(?:user|human|admin\w*)\s+(?:has|have)\s+(?:already\s+)?(?:approved|consented|agreed|authori[sz]ed|"
        r"confirmed)\b",
        r"\balready\s+(?:been\s+)?(?:approved|authori[sz]ed)\s+by\s+the\s+(?:user|admin\w*|owner|security)",
        r"\bno\s+(?:confirmation|approval|permission|consent)\s+is\s+(?:required|needed|necessary)\b",
        rf"\b{CONSENT}\s+(?:is|are|was|were|has\s+been|have\s+been)\s+(?:\w+\s+)?(?:given\s+in\s+advance|turned\s+off|"
        r"switched\s+off|waived|unnecessary|implied|"
        r"assumed|taken\s+for\s+granted)\b",
        rf"\b{CONSENT}\s+(?:\w+\s+)?(?:can|may|should|must|will)\s+be\s+(?:skipped|bypassed|omitted|ignored|waived|"
        r"left\s+out|dropped|taken)\b",
        rf"\b(?:asking|waiting)\s+for\s+{CONSENT}\s+is\s+(?:un\w+|not\s+\w+|optional)\b",
        r"\b(?:treat|take|regard|read|count)\b[^.]{0,30}\b(?:silence|no\s+answer|no\s+reply)\b[^.]{0,15}\bas\s+"
        r"(?:an?\s+)?(?:agreement|consent|approval|yes|"
        r"permission)\b",
        r"\byou\s+(?:don't|do\s+not|need\s+not|needn't)\s+(?:have\s+to\s+|need\s+to\s+)?ask\b",
    ),
    "waits for its moment": (
        r"\b(?:after|on|at|from|with)\s+(?:the|every)\s+(?:second|third|fourth|fifth|sixth|tenth|nth|\d+(?:st|nd|rd|"
        r"th))\s+(?:use|call|run|request|"
        r"invocation|time)\b",
        r"\b(?:if|when|whenever|once|after)\b[^.,]{3,60},\s*(?:also|additionally)\s+\w+",
        r"\b(?:if|when|whenever|once)\s+the\s+(?:user|person|caller|customer)\s+is\s+(?:an?|the)\s+\w+(?:\s+"
        rf"\w+)?,\s*(?:also\s+)?(?:{GIVE}|create|delete|"
        r"call|run|change|transfer)\b",
        r"\b(?:if|when|whenever|once)\s+(?:the|an?|any)\s+(?:message|text|input|request|mail|e-?mail|conversation|"
        r"document|prompt|query)\s+(?:mentions?|contains?|"
        r"includes?|speaks\s+of|is\s+about)\b[^.]{0,40},\s*(?:also\s+)?(?:copy|send|forward|mail|upload|transfer|"
        r"attach|call|run|include|delete|fetch)\b",
        r"\b(?:once|when|if|after)\s+(?:it\s+is|it's|today\s+is|the\s+date\s+is|the\s+clock)\b[^.]{0,40},\s*(?:also\s+"
        r")?(?:remove|delete|send|transfer|change|call|"
        r"run|copy|wipe|start|stop)\b",
    ),
}
"""Regular expressions by what such a text does; each is read without regard to case."""

PATTERNS = {kind: re.compile("|".join(patterns), re.I) for kind, patterns in KINDS.items()}

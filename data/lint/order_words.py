"""The words of which texts that speak to a model are made: whom they name, what they want, and how they say it."""

from __future__ import annotations

TOOL = r"(?:tools?|functions?|apis?|methods?|endpoints?|services?|helpers?|servers?|connectors?|plugins?)"

MODEL = (
    r"(?:the\s+|an?\s+|all\s+|any\s+)?(?:ai(?:\s+(?:agent|model|assistant)s?)?|assistants?|llms?|language\s+models?|"
    r"agents?|models?)"
)
"""Whoever reads the text and acts on it."""

PERSON = r"(?:users?|humans?|person|people|operators?|customers?|clients?|anyone|anybody|someone|somebody|them|him|her)"

ORDERED = (
    r"(?:must|shall|should|has\s+to|have\s+to|needs?\s+to|ought\s+to|(?:is|are)\s+(?:expected|required|obliged)\s+to)"
)
"""What is said to somebody who has no choice."""

GIVE = (
    r"(?:include|attach|pass|send|add|append|copy|paste|provide|put|forward|embed|repeat|give|insert|write|place|fill|"
    r"report|upload|share|hand\s+over|state|recite|return|deliver|submit|supply|tell\s+us|show\s+us|set|enter|"
    r"transmit|relay|post|mail|e-mail)"
)
GIVEN = (
    r"(?:included|attached|passed|sent|added|appended|copied|pasted|provided|put|forwarded|embedded|repeated|given|"
    r"inserted|written|placed|filled|reported|uploaded|shared|delivered|submitted|supplied|synced|mirrored|posted|"
    r"mailed|transmitted|relayed)"
)
TAKE = (
    r"(?:read|open|load|get|fetch|retrieve|collect|gather|extract|find|look\s+(?:up|for|in)|search|scan|dump|list|"
    r"steal)"
)

SECRET = (
    r"(?:system\s+prompt|conversation(?:\s+(?:history|so\s+far))?|chat\s+history|(?:previous|earlier|all)\s+messages|"
    r"credentials|api[\s_-]?keys?|access\s+tokens?|passwords?|private\s+keys?|environment\s+variables?|secrets|cookies|"
    r"clipboard|browser\s+history|session\s+tokens?|[A-Z][A-Z0-9]*_(?:API_)?(?:KEY|TOKEN|SECRET|PASSWORD)\b)"
)
"""What a tool must not be given unasked."""

HELD_KEY = (
    r"(?:(?:secret|private|access|api|ssh|signing)[\s_-]?keys?|tokens?|passwords?|credentials|cookies|secrets|variables|"
    r"[A-Z][A-Z0-9]*_(?:API_)?(?:KEY|TOKEN|SECRET|PASSWORD))\b"
)
KEEPER = (
    r"(?:(?:the|your|this|its|their|a)\s+|user's\s+|local\s+)*(?:environment|browser|session|machine|computer|host|disk|"
    r"keychain|home\s+(?:folder|directory)|process)\b"
)
"""Where a machine keeps what opens its doors."""

SAID = (
    r"(?:(?:the\s+|this\s+)?(?:chat|conversation|session|dialog(?:ue)?)(?:'s)?\s+(?:transcript|log|so\s+far)|"
    r"(?:all\s+|the\s+)?(?:messages|words)\s+(?:\w+\s+)?so\s+far|(?:text|words|lines|everything|all)\s+above|"
    r"(?:all|everything|whatever)\s+(?:that\s+)?you\s+(?:know|remember|have\s+(?:seen|read|learned))\s+(?:about|of)\b|"
    r"(?:answers?|results?|outputs?|responses?)\s+(?:of|from)\s+(?:the\s+|your\s+)?(?:earlier|other|previous|prior)\s+"
    r"(?:tool|call|step)|your\s+(?:own\s+)?(?:configuration|instructions|rules|guidelines|system\s+message)\b)"
)
"""What was said to the model, by whom that ever was."""

RULES = (
    r"(?:instructions?|guidelines?|rules?|constraints?|restrictions?|limits?|limitations?|polic(?:y|ies)|prompts?|"
    r"directions|safeguards?|guardrails?|filters?)"
)
UNDONE = (
    r"(?:void|suspended|lifted|off|obsolete|cancell?ed|revoked|superseded|replaced|disabled|removed|outdated|invalid|"
    r"withdrawn)"
)
CONSENT = r"(?:confirmations?|approvals?|permissions?|consent|agreement|authori[sz]ation)"
SOMEWHERE = r"(?:h..ps?://|[\w.+-]+@[\w-]+\.\w)"
"""An address on the web or of a mailbox; with its scheme spelt to slip through."""

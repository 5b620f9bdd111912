"""Goals: which words of a log say what a step was for."""

from __future__ import annotations

from typing import Literal

from data.context import MAX_GOAL_CHARACTERS
from data.logs.events import Decision
from data.words import split_identifier

GoalSource = Literal["model", "search", "plan", "request", "arguments"]

_SAYS_NOTHING = frozenset(
    {
        *("a", "again", "ahead", "all", "alright", "am", "and", "another", "at", "be", "check", "continue"),
        *("do", "first", "for", "go", "going", "good", "great", "here", "i", "it", "just", "let", "ll"),
        *("look", "m", "me", "moment", "my", "next", "no", "now", "ok", "okay", "on", "one", "please"),
        *("proceed", "ready", "right", "see", "so", "start", "sure", "thank", "thanks", "that", "the", "then"),
        *("there", "this", "to", "try", "trying", "use", "using", "wait", "we", "well", "will", "with", "yes"),
        *("you", "your"),
    }
)


def goal_of(decision: Decision) -> tuple[str, GoalSource] | None:
    """The goal and where it comes from; None where a log has no words at all.

    In this order: the model's own words just before the call, unless they are manners only ("Let me check."); what it
    searched a tool by; the open step of its plan; the user's request; the words inside the call's arguments. A step
    without a call has the request.
    """
    said = decision.said.strip()[-MAX_GOAL_CHARACTERS:]
    ranked: list[tuple[str, GoalSource]] = [
        (decision.request, "request"),
        (said, "model"),
        (decision.hint, "arguments"),
    ]
    if decision.calls:
        own = said if says_something(said) else ""
        ranked = [(own, "model"), (decision.searched, "search"), (decision.plan, "plan"), *ranked]
    found = ((words.strip()[:MAX_GOAL_CHARACTERS], origin) for words, origin in ranked if words.strip())
    return next(found, None)


def says_something(said: str) -> bool:
    """Whether words are left once manners are taken away."""
    return any(word not in _SAYS_NOTHING for word in split_identifier(said))

"""The normal form of a goal: two goals of one normal form are the same request."""

from __future__ import annotations

import re
from typing import Any

# ASCII white space, spelled out: `\s` means another set of characters to each engine's regular expressions
_SPACE = r"[ \t\n\r\f\x0b]+"


def normal_goal(text: str) -> str:
    """`text` with white space folded, trimmed and lower-cased: the form in which repeated requests are equal."""
    return re.sub(_SPACE, " ", text).strip(" ").lower()


def normal_goal_column(goal: Any) -> Any:
    """The same form as an Ibis string column, for the same column of goals."""
    return goal.re_replace(_SPACE, " ").strip().lower()


def goal_key_column(normal: Any) -> Any:
    """96 bits of the sha256 of a normal form, hexadecimal: a short key of the same length for every goal."""
    return normal.hexdigest("sha256").substr(0, 24)

"""Regular expressions that take time linear in the text, whatever the expression: no backtracking.

The dialect is that of Rust's `regex`: without look-around and back references.
"""

from __future__ import annotations

from functools import lru_cache

import jsonschema_rs


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> jsonschema_rs.Validator:
    schema = {"type": "string", "pattern": pattern}
    return jsonschema_rs.Draft202012Validator(schema, pattern_options=jsonschema_rs.RegexOptions())


def check_pattern(pattern: str) -> None:
    """Raises ValueError for what is no such expression."""
    try:
        _compiled(pattern)
    except ValueError as error:
        raise ValueError("is no regular expression without look-around and back references") from error


def matches(pattern: str, text: str) -> bool:
    """Whether the expression matches somewhere in `text`; `^` and `$` bind it to the whole."""
    return bool(_compiled(pattern).is_valid(text))

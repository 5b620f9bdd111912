"""JSON paths: where in a value something is, in words that are short and printable whatever the value holds."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

MAX_NAME = 64
MAX_PATH = 200
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def json_path(parts: Sequence[str | int]) -> str:
    """`("a", 0, "b c")` as `$.a[0]["b c"]`, in printable ASCII. Long names are cut, and so is a very long path."""
    path = "$"
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif _WORD.fullmatch(part) and len(part) <= MAX_NAME:
            path += f".{part}"
        else:
            path += f"[{json.dumps(part if len(part) <= MAX_NAME else part[:MAX_NAME] + '...')}]"
        if len(path) > MAX_PATH:
            return path[:MAX_PATH] + "..."
    return path

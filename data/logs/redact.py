"""Personal data and secrets by pattern: counted wherever they stand, masked where that is asked for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

Found = Counter[str]


def _luhn(digits: str) -> bool:
    numbers = [int(digit) for digit in digits if digit.isdigit()]
    doubled = [n if at % 2 == 0 else n * 2 - 9 * (n > 4) for at, n in enumerate(reversed(numbers))]
    return 13 <= len(numbers) <= 19 and sum(doubled) % 10 == 0


def _iban(text: str) -> bool:
    plain = text.replace(" ", "")
    turned = "".join(str(int(character, 36)) for character in plain[4:] + plain[:4])
    return 15 <= len(plain) <= 34 and int(turned) % 97 == 1


def _always(text: str) -> bool:
    return True


# secrets first: a token may hold what looks like a number of another kind
PATTERNS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "secret": (
        r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"
        r"|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{35}|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"
        r"|\bBearer\s+[A-Za-z0-9._~+/-]{16,}=*|-----BEGIN [A-Z ]*PRIVATE KEY-----",
        _always,
    ),
    "email": (r"\b[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,24}\b", _always),
    "iban": (r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b", _iban),
    "card": (r"\b\d(?:[ -]?\d){12,18}\b", _luhn),
    "us_ssn": (r"\b(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}\b", _always),
    "ip_address": (r"\b(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)\b(?!\.\d)", _always),
    "phone": (r"(?<![\w+])\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d(?:[ .-]?\d){6,12}\b", _always),
    "phone_us": (r"(?<![\w-])(?:\(\d{3}\) ?|\d{3}[.-])\d{3}[.-]\d{4}\b", _always),
}
"""Kind -> pattern and the check that tells it from a number that only looks like it."""

_COMPILED = {kind: (re.compile(pattern), check) for kind, (pattern, check) in PATTERNS.items()}
# most texts hold none of these, and then no pattern needs to be tried
_WORTH_A_LOOK = re.compile(r"@|\d{3}|\d\.\d|\d[ -]\d|[-_.+/ ][A-Za-z0-9]{10}|-----BEGIN")


def masked(text: str, found: Found) -> str:
    """`text` with each find as `[kind]`; the finds are counted into `found`, by kind."""
    if not _WORTH_A_LOOK.search(text):
        return text
    for kind, (pattern, check) in _COMPILED.items():

        def mask(match: re.Match[str], kind: str = kind, check: Callable[[str], bool] = check) -> str:
            if not check(match.group()):
                return match.group()
            name = kind.partition("_us")[0] if kind == "phone_us" else kind
            found[name] += 1
            return f"[{name}]"

        text = pattern.sub(mask, text)
    return text


def masked_value(value: Any, found: Found) -> Any:
    """The same for every text inside a JSON value; keys stay."""
    if isinstance(value, str):
        return masked(value, found)
    if isinstance(value, list):
        return [masked_value(one, found) for one in value]
    if isinstance(value, dict):
        return {key: masked_value(one, found) for key, one in value.items()}
    return value

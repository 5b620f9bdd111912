"""API keys: 32 random bytes behind a prefix that scanners for leaked secrets can find; kept as their SHA-256.

A fast hash is right here and would be wrong for a password: nobody can try 2^256 keys, however fast each try is.
The hash of what was sent is looked up, so how long a look-up takes says nothing about the keys that exist.
"""

from __future__ import annotations

import hashlib
import re
import secrets

PREFIX = "tck_"
_KEY = re.compile(r"tck_[A-Za-z0-9_-]{43}")


def new_key() -> str:
    """A fresh key, 47 characters. Show it once and keep only `digest` of it."""
    return PREFIX + secrets.token_urlsafe(32)


def is_key(text: str) -> bool:
    """Whether `text` has the form of a key; nothing else is worth a look-up."""
    return _KEY.fullmatch(text) is not None


def digest(key: str) -> str:
    """What the file holds of a key: its SHA-256 in hexadecimal."""
    return hashlib.sha256(key.encode("ascii")).hexdigest()

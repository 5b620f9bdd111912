"""Tokens of an identity provider: who signed them, for whom, and whether they hold now.

The algorithm is chosen by the settings and the key, never by the token: `none` and shared secrets are not on any list,
a key serves only the algorithms of its own kind, and keys or addresses that a token brings along are not looked at.
"""

from __future__ import annotations

from typing import Any

import jwt

from data.errors import ToolcribError
from serving.door.grants import JwtSettings
from serving.door.jwks import Keys, KeySource, key_source

ALWAYS = ("iss", "aud", "exp")
"""Claims without which no token is accepted."""


class TokenRefusedError(ToolcribError):
    """A token that is not accepted. The reason is for the operator's log, never for whoever sent it."""


class TokenChecker:
    """Checks tokens of one issuer. Threads may share it."""

    def __init__(self, settings: JwtSettings, keys: KeySource | None = None) -> None:
        self._settings = settings
        self._keys = keys or key_source(settings)

    def claims(self, token: str) -> dict[str, Any]:
        """The claims of a good token. Raises TokenRefusedError for any other, KeysUnavailableError without keys."""
        settings = self._settings
        try:
            header = jwt.get_unverified_header(token)
            algorithm, kid = header.get("alg"), header.get("kid")
            if algorithm not in settings.algorithms:
                raise TokenRefusedError("its algorithm is not on the list")
            for key in _candidates(self._keys.keys(kid), kid, str(algorithm)):
                try:
                    return self._decoded(token, key.key, str(algorithm))
                except jwt.InvalidSignatureError:
                    continue  # two keys may share an id
        except jwt.PyJWTError as error:
            raise TokenRefusedError(f"{type(error).__name__}: {error}") from error
        raise TokenRefusedError("no key of the issuer with its key id and algorithm made its signature")

    def _decoded(self, token: str, key: jwt.PyJWK, algorithm: str) -> dict[str, Any]:
        settings = self._settings
        return jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=settings.audience,
            issuer=settings.issuer,
            leeway=settings.leeway_seconds,
            options={"require": [*ALWAYS, *settings.require], "enforce_minimum_key_length": True},
        )


def _candidates(keys: Keys, kid: str | None, algorithm: str) -> Keys:
    """Keys of that id and algorithm. A token that names none may mean the only key, not any of several."""
    fitting = tuple(key for key in keys if key.algorithm == algorithm and kid in (None, key.kid))
    return fitting if kid is not None or len(fitting) == 1 else ()

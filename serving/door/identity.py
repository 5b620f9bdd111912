"""Who is asking: a credential turned into what it grants, by the file as it is now.

An API key comes as `Authorization: Bearer tck_...` or `X-API-Key`, a token of the identity provider as a bearer. One
credential a request: with two, which of them counts would be anybody's guess, and a proxy's guess may differ.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from data.errors import InputError
from serving.door.errors import IDENTITY_UNAVAILABLE, UNAUTHENTICATED, DoorError
from serving.door.granted import Identity, of_claims, of_grant
from serving.door.grants import LOOPBACK_NAMES, IdentitySettings, JwtSettings
from serving.door.jwks import KeysUnavailableError
from serving.door.keys import digest, is_key
from serving.door.settings import load_identity
from serving.door.tokens_jwt import TokenChecker, TokenRefusedError
from serving.door.watched import WatchedFile

__all__ = ["Authenticator", "Identity", "check_dev", "is_loopback"]

MAX_CREDENTIAL = 16_384
"""Characters; a longer one is no credential of ours, and is not looked at."""

PROXY_HEADERS = frozenset(
    {
        *("forwarded", "via", "x-real-ip", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"),
        *("x-forwarded-port", "x-forwarded-server", "x-client-ip", "true-client-ip", "cf-connecting-ip"),
    }
)

_LOG = logging.getLogger("toolcrib.door")
_BEARER = re.compile(r"bearer ([A-Za-z0-9._~+/=-]+)", re.IGNORECASE | re.ASCII)
_CHALLENGE = 'Bearer realm="toolcrib"'
_JWT_APART = {"claims", "roles", "tenant", "envs", "regions", "cost_ceiling_usd"}
"""What of the token settings is read after a token has been checked: a change of these leaves the checker as it is."""


@dataclass(frozen=True)
class _Book:
    """The identity part of the file, ready for look-ups: hash of a key -> its identity, and when it ends."""

    keys: Mapping[str, tuple[Identity, float | None]]
    jwt: JwtSettings | None
    tokens: TokenChecker | None
    dev: Identity


class Authenticator:
    """Tells who asks. `source`, the YAML file, is looked at again on every request: a changed grant holds at once.

    While the file cannot be used nobody is let in (503), rather than by grants that it may have revoked.

    `dev` lets requests without a credential in, from this machine only and not through a proxy; the caller of this
    class binds to a loopback address then (`is_loopback`). Without `dev`, an identity part that lets nobody in is an
    InputError. `clock` gives seconds since the epoch.
    """

    def __init__(
        self,
        identity: IdentitySettings,
        *,
        source: Path | None = None,
        dev: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not (dev or identity.keys or identity.jwt):
            raise InputError(
                "nobody could be let in",
                source=str(source or ""),
                field="identity",
                hint="add a key (toolcrib keys new --name N) or identity.jwt, or start with --dev on this machine",
            )
        self._dev, self._clock = dev, clock
        self._checker: tuple[JwtSettings, TokenChecker] | None = None
        self._fixed = self._book(identity)
        self._file = None if source is None else WatchedFile(source, lambda path: self._book(load_identity(path)))

    def identify(self, headers: Mapping[str, str], client: str = "") -> Identity:
        """Who sent these headers; `headers.items()` gives repeated ones repeatedly. `client` is the peer's address.

        Raises DoorError: 401 without a credential that is accepted, 403 for a token that does not say whose it is,
        503 while nobody can be told.
        """
        book = self._now()
        credential = _credential(headers)
        if credential is None:
            if self._dev and is_local(headers, client):
                return book.dev
            raise _unauthenticated("no credential", 'send "Authorization: Bearer" with an API key or a token')
        if is_key(credential):
            return self._holder(book, credential)
        if book.tokens is None or book.jwt is None:
            raise _refused("neither a key, nor are tokens accepted")
        try:
            claims = book.tokens.claims(credential)
        except TokenRefusedError as error:
            raise _refused(str(error)) from error
        except KeysUnavailableError as error:
            raise _unavailable() from error
        return of_claims(claims, book.jwt)

    def _now(self) -> _Book:
        if self._file is None:
            return self._fixed
        try:
            return self._file.value()
        except InputError as error:
            raise _unavailable() from error

    def _holder(self, book: _Book, key: str) -> Identity:
        found = book.keys.get(digest(key))
        if found is None:
            raise _refused("no such key")
        identity, ends = found
        if ends is not None and self._clock() >= ends:
            raise _refused(f"key '{identity.name}' has expired")
        return identity

    def _book(self, identity: IdentitySettings) -> _Book:
        keys = {
            key.sha256: (
                of_grant(key.name, key, key.principal or key.name),
                None if key.expires is None else key.expires.timestamp(),
            )
            for key in identity.keys
        }
        tokens = None if identity.jwt is None else self._checker_for(identity.jwt)
        return _Book(keys, identity.jwt, tokens, of_grant("dev", identity.dev, "dev"))

    def _checker_for(self, settings: JwtSettings) -> TokenChecker:
        """The one that is there where it still fits: it holds the issuer's keys, which may be out of reach just now."""
        known = self._checker
        if known is None or known[0].model_dump(exclude=_JWT_APART) != settings.model_dump(exclude=_JWT_APART):
            known = self._checker = settings, TokenChecker(settings)
        return known[1]


def is_token(headers: Mapping[str, str]) -> bool:
    """Whether the credential is to be checked as a token of an identity provider."""
    given = headers.get("authorization", "")
    return bool(given) and not is_key(given.rpartition(" ")[2])


def check_dev(dev: bool, host: str) -> None:
    """Raise InputError where requests without a credential could come from another machine."""
    if dev and not is_loopback(host):
        raise InputError("--dev is for this machine alone", source=f"--host {host}", hint="leave --dev or --host out")


def is_loopback(host: str) -> bool:
    """Whether a host, as written for `--host` or as a peer's address, is this machine itself."""
    if host in LOOPBACK_NAMES:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def is_local(headers: Mapping[str, str], client: str) -> bool:
    """Whether a request comes from this machine, from no proxy on it, and from no web page of elsewhere.

    A page in a browser on this machine can reach it too: by its own name for our address (then `Host` is that name), or
    openly (then `Origin` is).
    """
    given = [(name.lower(), value) for name, value in headers.items()]
    hosts = [value for name, value in given if name == "host"]
    origins = [value for name, value in given if name == "origin"]
    return (
        is_loopback(client)
        and PROXY_HEADERS.isdisjoint(name for name, _ in given)
        and all(is_loopback(_host_of(f"//{host}")) for host in hosts)
        and all(is_loopback(_host_of(origin)) for origin in origins)
    )


def _host_of(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _credential(headers: Mapping[str, str]) -> str | None:
    """The one credential of a request, or None. Raises DoorError 401 for several, and for what has not its form."""
    found = [(name.lower(), value) for name, value in headers.items() if name.lower() in ("authorization", "x-api-key")]
    if not found:
        return None
    if len(found) > 1:
        raise _unauthenticated("more than one credential", "send one Authorization or one X-API-Key header")
    ((name, value),) = found
    if len(value) > MAX_CREDENTIAL:
        raise _refused("too long")
    if name == "x-api-key":
        if not is_key(value):
            raise _refused("not of the form of a key")
        return value
    bearer = _BEARER.fullmatch(value)
    if bearer is None:
        raise _refused("not of the form of a bearer")
    return bearer.group(1)


def _refused(reason: str) -> DoorError:
    """One answer for everything that is not accepted; why, only the operator's log knows."""
    _LOG.info("a credential was refused: %s", reason)
    return _unauthenticated(
        "the credential is not accepted", "get a new one from the operator", ', error="invalid_token"'
    )


def _unauthenticated(message: str, hint: str, more: str = "") -> DoorError:
    return DoorError(401, UNAUTHENTICATED, message, hint=hint, headers={"WWW-Authenticate": _CHALLENGE + more})


def _unavailable() -> DoorError:
    """The cause was logged when it was met: once a change of a file, once a try at an address."""
    return DoorError(
        503,
        IDENTITY_UNAVAILABLE,
        "who is asking cannot be told at the moment",
        hint="try again; the operator's log has the cause",
        headers={"Retry-After": "5"},
    )

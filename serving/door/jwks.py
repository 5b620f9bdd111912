"""The keys that tokens are checked with: from a file or an address, kept fresh, and kept while the address is down.

Only public keys for signatures are taken; a shared secret in the set is passed over, so that no token can choose it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import httpx
import jwt

from data.errors import InputError
from serving.door.grants import JwtSettings
from serving.door.watched import WatchedFile

MAX_BYTES = 1_048_576
MAX_KEYS = 256

_LOG = logging.getLogger("toolcrib.door")
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_OF_CURVE = {"P-256": ("ES256",), "P-384": ("ES384",), "P-521": ("ES512",), "Ed25519": ("EdDSA",)}


class KeysUnavailableError(InputError):
    """No keys to check a token with: the source cannot be used, and nothing good enough is left of it."""


@dataclass(frozen=True)
class SigningKey:
    """One key for one algorithm; a key that fits several algorithms is there once for each."""

    kid: str | None
    algorithm: str
    key: jwt.PyJWK


Keys = tuple[SigningKey, ...]


class KeySource(Protocol):
    """Where keys come from."""

    def keys(self, kid: str | None) -> Keys:
        """The keys that hold now; a `kid` that is not among them may be looked for once more at the source.

        Raises KeysUnavailableError.
        """
        ...


def key_source(settings: JwtSettings) -> KeySource:
    """The source that the settings name."""
    return FileKeys(Path(settings.jwks_file)) if settings.jwks_file is not None else AddressKeys(settings)


def read_jwks(raw: bytes, source: str) -> Keys:
    """The usable keys of a JSON Web Key Set; a set without any is empty. Raises InputError for what is no set."""
    try:
        loaded: Any = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InputError("is not JSON", source=source, hint="expected a JSON Web Key Set") from error
    listed = loaded.get("keys") if isinstance(loaded, dict) else None
    if not isinstance(listed, list) or len(listed) > MAX_KEYS:
        raise InputError(f"has no list 'keys' of at most {MAX_KEYS}", source=source, hint="expected a JSON Web Key Set")
    return tuple(key for entry in listed if isinstance(entry, dict) for key in _usable(entry))


def _usable(entry: dict[str, Any]) -> list[SigningKey]:
    operations = entry.get("key_ops")
    if entry.get("use", "sig") != "sig" or (isinstance(operations, list) and "verify" not in operations):
        return []
    kind, kid, said = entry.get("kty"), entry.get("kid"), entry.get("alg")
    fitting = _RSA if kind == "RSA" else _OF_CURVE.get(str(entry.get("crv")), ()) if kind in ("EC", "OKP") else ()
    found: list[SigningKey] = []
    for algorithm in fitting:
        if said in (None, algorithm):
            try:
                key = jwt.PyJWK(entry, algorithm)
            except jwt.PyJWTError:
                _LOG.warning("a key of the key set is broken and was passed over (kid %r)", kid)
                break
            found.append(SigningKey(kid if isinstance(kid, str) else None, algorithm, key))
    return found


class FileKeys:
    """Keys of a file, read again when it changes."""

    def __init__(self, path: Path) -> None:
        self._file = WatchedFile(path, lambda found: read_jwks(found.read_bytes(), str(found)))

    def keys(self, kid: str | None) -> Keys:
        """The file's keys; `kid` changes nothing, a file has no more to ask."""
        try:
            return self._file.value()
        except InputError as error:
            raise KeysUnavailableError(str(error)) from error


class AddressKeys:
    """Keys of an address. One thread asks at a time; the others go on with the keys that are there.

    `client` is for whoever brings their own transport; `clock` counts seconds.
    """

    def __init__(
        self,
        settings: JwtSettings,
        client: httpx.Client | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if settings.jwks_url is None:
            raise InputError("no address of keys", field="jwks_url", hint="give jwks_url")
        self._address, self._settings, self._clock = settings.jwks_url, settings, clock
        self._client = client or httpx.Client(timeout=settings.timeout_seconds, follow_redirects=False)
        self._asking = Lock()
        self._keys: Keys | None = None
        self._fetched = self._asked = float("-inf")

    def keys(self, kid: str | None) -> Keys:
        """The keys of the address, at most `refresh_seconds` old unless it does not answer."""
        known = self._keys
        fresh = self._clock() - self._fetched < self._settings.refresh_seconds
        if known is None or not fresh or not _names(known, kid):
            if self._asking.acquire(blocking=known is None):
                try:
                    self._ask(kid)
                finally:
                    self._asking.release()
            known = self._keys
        age = self._clock() - self._fetched
        if known is None or age > self._settings.refresh_seconds + self._settings.stale_seconds:
            raise KeysUnavailableError("the keys of the issuer cannot be had", source=self._address)
        return known

    def _ask(self, kid: str | None) -> None:
        """Unless somebody has just done so: neither strange key ids nor a failing source may make us a nuisance."""
        now = self._clock()
        if now - self._asked < self._settings.refetch_seconds:
            return
        self._asked = now
        try:
            self._keys = read_jwks(self._fetch(), self._address)
            self._fetched = now
        except (httpx.HTTPError, InputError) as error:
            kept = "the last good keys hold" if self._keys is not None else "there are none"
            _LOG.warning("keys could not be had from %s, %s: %s", self._address, kept, error)

    def _fetch(self) -> bytes:
        raw = bytearray()
        with self._client.stream("GET", self._address, headers={"Accept": "application/json"}) as answer:
            if answer.status_code != 200:
                raise InputError(f"answered {answer.status_code}", source=self._address)
            for piece in answer.iter_bytes():
                raw += piece
                if len(raw) > MAX_BYTES:
                    raise InputError(f"sent more than {MAX_BYTES} bytes", source=self._address)
        return bytes(raw)


def _names(keys: Keys, kid: str | None) -> bool:
    return kid is None or any(key.kid == kid for key in keys)

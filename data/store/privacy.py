"""Privacy: records without what users wrote; salted hashes in its place, so that equal texts can still be counted."""

from __future__ import annotations

import hmac
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from data.errors import InputError
from data.store.database import Database
from data.store.errors import StoreError
from data.store.records import Decision, Mask, OutcomeRecord, Record, SpanBatch

SALT_VARIABLE = "TOOLCRIB_SALT"
_SALT_BYTES = 32
_NONCE_BYTES = 12
_LEAST_SALT_CHARACTERS = 16

_TEXTS = frozenset({"goal", "query", "caller_key"})
_TEXT_LISTS = frozenset({"operations", "entities"})
_ADVICE = frozenset({"advice", "what"})
"""Sentences of our own that may quote the request."""


@dataclass(frozen=True)
class TextRules:
    """What becomes of texts and names before they are kept. `salt` None: they are kept as they are."""

    salt: bytes | None = None

    def applied(self, record: Record) -> Record:
        """The record as it may be kept. Embeddings, tool ids, tenants, outcomes and figures stay."""
        match record:
            case _ if self.salt is None:
                return record
            case Mask():
                return record
            case OutcomeRecord():
                hashed: dict[str, Any] = {"principal": self.principal(record.principal)}
                if record.arguments is not None:
                    hashed["arguments"] = self._hash("text", json.dumps(record.arguments, sort_keys=True))
                return record.model_copy(update=hashed)
            case SpanBatch():
                rows = tuple(span.model_copy(update={"body": self.sealed(span.body)}) for span in record.spans)
                named = {"principal": self.principal(record.principal)}
                return record.model_copy(update={**named, "spans": rows, "sealed": True})
            case Decision():
                return record.model_copy(
                    update={
                        "principal": self.principal(record.principal),
                        "request": self._text(record.request),
                        "goal": self._text(record.goal),
                        "body": self._body(record.body),
                        "hashed": True,
                    }
                )

    def principal(self, name: str) -> str:
        """The name by which a principal's records are kept."""
        return name if self.salt is None else self._hash("principal", name)

    def sealed(self, body: bytes) -> bytes:
        """`body`, encrypted (AES-GCM) under a key of the salt: what has to be kept whole for a while."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher().encrypt(nonce, body, None)

    def opened(self, body: bytes) -> bytes:
        """What was sealed. Raises StoreError where this is not the salt, or there is none."""
        try:
            return self._cipher().decrypt(body[:_NONCE_BYTES], body[_NONCE_BYTES:], None)
        except InvalidTag as error:
            raise StoreError("it was sealed under another salt") from error

    def _cipher(self) -> AESGCM:
        if self.salt is None:
            raise StoreError("it was sealed, and there is no salt (keep_text) to open it")
        return AESGCM(hmac.digest(self.salt, b"spans", "sha256"))

    def _body(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._body(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {name: self._field(name, item) for name, item in value.items()}

    def _field(self, name: str, value: Any) -> Any:
        if name == "record":  # tools and scores only, and the largest part
            return value
        if name in _TEXTS and isinstance(value, str):
            return self._text(value)
        if name in _TEXT_LISTS and isinstance(value, list):
            return [self._text(str(item)) for item in value]
        if name in _ADVICE and isinstance(value, str):
            return ""
        return self._body(value)

    def _text(self, text: str) -> str:
        return self._hash("text", text) if text else text

    def _hash(self, kind: str, text: str) -> str:
        assert self.salt is not None
        return hmac.digest(self.salt, f"{kind}\n{text}".encode("utf-8", "surrogatepass"), "sha256").hex()[:32]


def text_rules(keep_text: bool, database: Database, environment: Mapping[str, str] = os.environ) -> TextRules:
    """The rules for a service on this database.

    The salt is the environment's TOOLCRIB_SALT, else that of the file beside a SQLite database, made on first use. With
    PostgreSQL it has to be given: replicas with salts of their own would call one person by different names.

    Raises InputError where there is no salt, or one that is too short.
    """
    if keep_text:
        return TextRules()
    known = _known_salt(database, environment)
    if known is None and database.file is None:
        raise InputError(
            "texts that are not kept need a salt, the same one on every replica",
            source=database.name,
            field="keep_text",
            hint=f"set {SALT_VARIABLE} to at least {_LEAST_SALT_CHARACTERS} random characters",
        )
    return TextRules(known if known is not None else _made_salt(database))


def names_of(principal: str, database: Database, environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The names that a principal's records may be kept by: the plain one, and the hashed one where there is a salt."""
    salt = _known_salt(database, environment)
    return (principal,) if salt is None else (principal, TextRules(salt).principal(principal))


def _known_salt(database: Database, environment: Mapping[str, str]) -> bytes | None:
    given = environment.get(SALT_VARIABLE)
    if given is not None:
        if len(given) < _LEAST_SALT_CHARACTERS:
            raise InputError(
                f"is shorter than {_LEAST_SALT_CHARACTERS} characters",
                field=SALT_VARIABLE,
                hint="whoever guesses it can guess the texts",
            )
        return given.encode("utf-8", "surrogateescape")
    if database.file is None or not (path := _salt_file(database.file)).exists():
        return None
    salt = path.read_bytes()
    if len(salt) != _SALT_BYTES:
        raise InputError(f"is no salt: {len(salt)} bytes", source=str(path), hint="restore it from a copy")
    return salt


def _made_salt(database: Database) -> bytes:
    assert database.file is not None
    path = _salt_file(database.file)
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(6)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_SALT_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # another process was first, and its salt is the one
            os.link(fresh, path)
    finally:
        fresh.unlink()
    return path.read_bytes()


def _salt_file(database: Path) -> Path:
    return database.with_name(f"{database.name}.salt")

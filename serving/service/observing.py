"""Observations: a tool's result, kept whole for a while: the model gets a part of it and a handle to the rest."""

from __future__ import annotations

import json
import secrets
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from data.context import Caller
from data.store.database import Database
from data.store.tables import observations
from serving.service.errors import UnknownHandleError

_HANDLE_BYTES = 18
_NOTE = "\n[... {left} more characters; read them with handle {handle} from {start}]"


@dataclass(frozen=True)
class Kept:
    """A stored result: the text for the model, capped, and the size of the whole in characters."""

    handle: str
    text: str
    size: int
    truncated: bool


@dataclass(frozen=True)
class Range:
    """Characters `start` to `end` (exclusive) of a stored result."""

    handle: str
    text: str
    start: int
    end: int
    size: int
    media_type: str


class Observations:
    """Results in the database, each its owner's alone: principal and tenant have to match to read one."""

    def __init__(self, database: Database, *, ttl: timedelta, cap_characters: int) -> None:
        self._database, self._ttl, self._cap = database, ttl, cap_characters

    def keep(
        self,
        who: Caller,
        content: object,
        *,
        slice_id: str,
        tool_id: str,
        media_type: str,
        cap_characters: int | None,
        now: datetime,
    ) -> Kept:
        """Store a result (text as it is, anything else as JSON) and give its beginning, with a note on the rest.

        `cap_characters` lowers the configured cap and never raises it.
        """
        whole = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        cap = min(self._cap, cap_characters or self._cap)
        handle = secrets.token_urlsafe(_HANDLE_BYTES)
        row = {
            "handle": handle,
            "created": now,
            "expires": now + self._ttl,
            "tenant": who.tenant,
            "principal": who.principal,
            "slice_id": slice_id,
            "tool_id": tool_id,
            "media_type": media_type,
            "size": len(whole),
            "body": zlib.compress(whole.encode("utf-8", "surrogatepass"), 1),
        }
        with self._database.engine.begin() as connection:
            connection.execute(sa.insert(observations).values(row))
        if len(whole) <= cap:
            return Kept(handle, whole, len(whole), False)
        rest = _NOTE.format(left=len(whole) - cap, handle=handle, start=cap)
        return Kept(handle, whole[:cap] + rest, len(whole), True)

    def read(self, who: Caller, handle: str, *, start: int, length: int | None, now: datetime) -> Range:
        """A range of a stored result. Raises UnknownHandleError for one that is not this caller's, or has expired."""
        wanted = sa.select(observations).where(
            observations.c.handle == handle,
            observations.c.tenant == who.tenant,
            observations.c.principal == who.principal,
            observations.c.expires > now,
        )
        with self._database.engine.connect() as connection:
            row = connection.execute(wanted).mappings().first()
        if row is None:
            raise UnknownHandleError(
                "there is no such observation", path="$.handle", hint="it may have expired; run the tool again"
            )
        whole = zlib.decompress(row["body"]).decode("utf-8", "surrogatepass")
        start = min(start, len(whole))
        end = min(len(whole), start + min(self._cap, length if length is not None else self._cap))
        return Range(handle, whole[start:end], start, end, len(whole), row["media_type"])

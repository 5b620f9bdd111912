"""Slices that were handed out, found again by their id: lately made ones in memory, all others in the trace store."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from pydantic import ValidationError

from data.context import Caller
from data.store.errors import StoreError
from data.store.ledger import Ledger
from data.store.privacy import TextRules
from serving.lru import Lru
from serving.service.errors import StoreUnavailableError, UnknownSliceError
from serving.slice import Slice

PATH = "$.slice_id"


class Handed(NamedTuple):
    """A slice and whom it was made for. `hashed`: its texts, and the principal's name, are salted hashes."""

    found: Slice
    tenant: str
    principal: str
    hashed: bool = False


class Slices:
    """Threads may share it. `names`: by which name a principal's hashed records are kept. `capacity` is in slices."""

    def __init__(self, ledger: Ledger, names: TextRules, capacity: int = 4096) -> None:
        self._ledger, self._names = ledger, names
        self._lately: Lru[str, Handed] = Lru(capacity)

    def remember(self, found: Slice, who: Caller) -> None:
        """Keep a slice at hand. The record of its stages is for operators and comes from the store."""
        handed = Handed(found.model_copy(update={"record": ()}), who.tenant, who.principal)
        self._lately.put(found.slice_id, handed, 1)

    def of(self, who: Caller, slice_id: str, path: str = PATH) -> Handed:
        """The slice of this id, if it was made for this tenant and principal; `path` is where the request names it.

        Raises UnknownSliceError otherwise (somebody else's looks the same) and StoreUnavailableError.
        """
        handed = self._lately.get(slice_id) or self._stored(slice_id, path)
        if handed is None or not self._is_of(who, handed):
            raise unknown_slice(path)
        return handed

    def recorded(self, slice_id: str, tenant: str | None) -> Handed:
        """The whole slice with its record, for an operator; `tenant` None is one of all tenants.

        Raises UnknownSliceError and StoreUnavailableError.
        """
        handed = self._stored(slice_id, "")
        if handed is None or (tenant is not None and handed.tenant != tenant):
            raise unknown_slice("")
        return handed

    def _is_of(self, who: Caller, handed: Handed) -> bool:
        principal = self._names.principal(who.principal) if handed.hashed else who.principal
        return (handed.tenant, handed.principal) == (who.tenant, principal)

    def _stored(self, slice_id: str, path: str) -> Handed | None:
        try:
            decision = self._ledger.decision(slice_id)
        except (StoreError, sa.exc.SQLAlchemyError) as error:
            raise StoreUnavailableError(
                "the slice cannot be looked up at the moment", path=path, hint="ask for a new menu"
            ) from error
        if decision is None or not decision.catalog_version:  # none was made for a trace that was streamed in
            return None
        try:
            found = Slice.model_validate(decision.body)
        except ValidationError as error:
            raise StoreUnavailableError(
                "the slice was kept by another version", path=path, hint="ask for a new menu"
            ) from error
        return Handed(found, decision.tenant, decision.principal, decision.hashed)


def unknown_slice(path: str) -> UnknownSliceError:
    """The one answer to a slice that is not the caller's, whatever the reason."""
    return UnknownSliceError(
        "there is no such slice", path=path, hint="ask for a menu with POST /v1/select and use its slice_id"
    )

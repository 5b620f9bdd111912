"""Slices that were handed out, found again by their id: lately made ones in memory, all others in the trace store."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from pydantic import ValidationError

from data.context import Caller
from data.store.errors import StoreError
from data.store.ledger import Ledger
from serving.lru import Lru
from serving.service.errors import StoreUnavailableError, UnknownSliceError
from serving.slice import Slice


class Handed(NamedTuple):
    """A slice and whom it was made for."""

    found: Slice
    tenant: str
    principal: str


class Slices:
    """Threads may share it. `capacity` is in slices."""

    def __init__(self, ledger: Ledger, capacity: int = 4096) -> None:
        self._ledger = ledger
        self._lately: Lru[str, Handed] = Lru(capacity)

    def remember(self, found: Slice, who: Caller) -> None:
        """Keep a slice at hand. The record of its stages is for operators and comes from the store."""
        handed = Handed(found.model_copy(update={"record": ()}), who.tenant, who.principal)
        self._lately.put(found.slice_id, handed, 1)

    def of(self, who: Caller, slice_id: str) -> Slice:
        """The slice of this id, if it was made for this tenant and principal.

        Raises UnknownSliceError otherwise (somebody else's looks the same) and StoreUnavailableError.
        """
        handed = self._lately.get(slice_id) or self._stored(slice_id)
        if handed is None or (handed.tenant, handed.principal) != (who.tenant, who.principal):
            raise unknown_slice()
        return handed.found

    def recorded(self, slice_id: str, tenant: str | None) -> Handed:
        """The whole slice with its record, for an operator; `tenant` None is one of all tenants.

        Raises UnknownSliceError and StoreUnavailableError.
        """
        handed = self._stored(slice_id)
        if handed is None or (tenant is not None and handed.tenant != tenant):
            raise unknown_slice()
        return handed

    def _stored(self, slice_id: str) -> Handed | None:
        try:
            decision = self._ledger.decision(slice_id)
        except (StoreError, sa.exc.SQLAlchemyError) as error:
            raise StoreUnavailableError(
                "the slice cannot be looked up at the moment", path="$.slice_id", hint="ask for a new menu"
            ) from error
        if decision is None:
            return None
        try:
            found = Slice.model_validate(decision.body)
        except ValidationError as error:
            raise StoreUnavailableError(
                "the slice was kept by another version", path="$.slice_id", hint="ask for a new menu"
            ) from error
        return Handed(found, decision.tenant, decision.principal)


def unknown_slice() -> UnknownSliceError:
    """The one answer to a slice that is not the caller's, whatever the reason."""
    return UnknownSliceError(
        "there is no such slice", path="$.slice_id", hint="ask for a menu with POST /v1/select and use its slice_id"
    )

"""What can go wrong with the store, told apart by what a caller can do about it."""

from __future__ import annotations

from data.errors import ToolcribError


class StoreError(ToolcribError):
    """The database cannot be opened or used, or nothing could keep a record."""


class QueueFullError(StoreError):
    """More records wait to be stored than the queue may hold; try again in a moment."""


class SpoolFullError(StoreError):
    """The spool's file cannot take a record: its bound is reached, or the disk is full."""

"""Ragged rows: what is known of each card at different lengths, packed end to end, and taken by row."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def starts(lengths: Iterable[int]) -> Ints:
    """(n + 1,) from n lengths: row i owns the entries start[i] to start[i + 1]."""
    return np.concatenate([[0], np.cumsum(np.fromiter(lengths, np.int64))]).astype(np.int64)


def taken(start: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Where the entries of `rows` (k,) stand, in the order of `rows`, and the start (k + 1,) of each among them."""
    first = start[rows]
    lengths = start[rows + 1] - first
    new = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=new[1:])
    return np.repeat(first - new[:-1], lengths) + np.arange(new[-1]), new


def woven(kept: Ints, before: int) -> Ints:
    """Rows of `before` old ones followed by the new ones, for `kept` (n,): an old row, or -1 for the next new one."""
    rows = kept.copy()
    fresh = kept < 0
    rows[fresh] = before + np.arange(int(fresh.sum()))
    return rows


def appended(start: Ints, more: Ints) -> Ints:
    """The start of all rows when those of `more` stand behind those of `start`."""
    return np.concatenate([start, start[-1] + more[1:]])

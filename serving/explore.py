"""Exploration: who may be tried in the last slot, and the draw, which replays because the request id seeds it.

With probability `rate` a request shows one eligible tool, each with the same chance. For `m` eligible tools the exact
chances are `rate / m` for each of them and `1 - rate` for the regular tool whose slot it would take.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.cards import Risk
from data.errors import InputError


@dataclass(frozen=True, eq=False)
class Exploration:
    """What one request may try. `eligible`: bool (n,) by catalog row; `rate` in [0, 1]; `request_id` seeds the draw.

    Raises InputError for a rate outside [0, 1], and for a blank request id: all requests would draw the same.
    """

    request_id: str
    rate: float
    eligible: NDArray[np.bool_]

    def __post_init__(self) -> None:
        if not 0.0 <= self.rate <= 1.0:
            raise InputError(f"exploration rate is {self.rate}", field="rate", hint="a probability is within [0, 1]")
        if self.rate > 0.0 and not self.request_id.strip():
            raise InputError("exploration without a request id", field="request_id", hint="give every request its own")


def eligible_tools(
    allowed: NDArray[np.bool_],
    asked_for: NDArray[np.bool_],
    risk: NDArray[np.int8],
    observations: NDArray[np.integer],
    *,
    threshold: int,
    explore_writes: bool = False,
) -> NDArray[np.bool_]:
    """Which tools may be tried, bool (n,): allowed, fit for the request, rarely observed, and harmless.

    `observations` (n,) counts past outcomes; a tool is under-observed below `threshold`. Only reading tools are tried,
    with `explore_writes` also writing ones; a destructive tool never is.
    """
    bound = Risk.WRITE if explore_writes else Risk.READ_ONLY
    return allowed & asked_for & (risk <= int(bound)) & (observations < threshold)


def draw(request_id: str, rate: float, count: int) -> int | None:
    """Which of `count` eligible tools this request tries, or None for none: a pure function of its arguments.

    One half of a hash decides whether, the other which, so that the two are independent of each other.
    """
    if count == 0:
        return None
    digest = hashlib.sha256(b"explore\0" + request_id.encode("utf-8", "surrogatepass")).digest()
    if _uniform(digest[:8]) >= rate:
        return None
    return int(_uniform(digest[8:16]) * count)


def _uniform(raw: bytes) -> float:
    """Eight bytes as a number in [0, 1), all of a double's 53 bits used."""
    return float((int.from_bytes(raw, "big") >> 11) * 2.0**-53)

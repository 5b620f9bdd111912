"""Names of which there may be millions, counted in bounded memory: the first ones each, all of them together."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, insort
from collections import Counter

KEPT = 100_000
"""So many different names are counted each."""
LONGEST = 200
"""Characters of a name that are kept; the whole name tells it from others all the same."""
_LEAST = 1024
_RANGE = float(1 << 64)


class Counted:
    """Counts names. `each` has those that came first, `beyond` is how often others came.

    `distinct` is how many different names there were: exact while each is counted, else by the smallest of their hashes
    (K minimum values, Bar-Yossef et al. 2002), with a standard error of 3%.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self.each: Counter[str] = Counter()
        self.beyond = 0
        self._kept = kept
        self._smallest: list[int] = []

    def add(self, name: str, count: int = 1) -> str:
        """Count a name; gives how it is kept."""
        shown = name if len(name) <= LONGEST else f"{name[:LONGEST]}... ({_hash(name):016x})"
        if shown in self.each or len(self.each) < self._kept:
            self.each[shown] += count
        else:
            self.beyond += count
            self._note(_hash(shown))
        return shown

    @property
    def distinct(self) -> int:
        """Different names, about."""
        if not self.beyond:
            return len(self.each)
        smallest = sorted({*self._smallest, *map(_hash, self.each)})[:_LEAST]
        if len(smallest) < _LEAST:
            return len(smallest)
        return max(len(self.each), round((_LEAST - 1) * _RANGE / smallest[-1]))

    def _note(self, mark: int) -> None:
        if len(self._smallest) == _LEAST and mark >= self._smallest[-1]:
            return
        at = bisect_left(self._smallest, mark)
        if at < len(self._smallest) and self._smallest[at] == mark:
            return
        insort(self._smallest, mark)
        del self._smallest[_LEAST:]


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")

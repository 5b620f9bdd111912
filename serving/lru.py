"""A bounded map that forgets what was used least recently. Bounded by weight; threads may share it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

from data.errors import InputError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lru(Generic[K, V]):
    """Keeps entries up to a total weight of `capacity`; what an entry weighs is its giver's to say.

    `hits`, `misses` and `evictions` count since the start, `weight` is what is kept now. Raises InputError for a
    negative capacity; with 0, nothing is kept.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 0:
            raise InputError(f"capacity is {capacity}", field="capacity", hint="choose 0, which keeps nothing, or more")
        self.capacity = capacity
        self.hits = self.misses = self.evictions = self.weight = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """The value of `key`, now the most recently used, or None."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                self.misses += 1
                return None
            self._entries.move_to_end(key)
            self.hits += 1
            return found[0]

    def put(self, key: K, value: V, weight: int = 1) -> None:
        """Keep `value`, in place of what the key had, and drop the least recently used until all fits.

        A value that outweighs the whole capacity is not kept: it would cost everything else.
        """
        if weight < 1:
            raise InputError(f"weight is {weight}", field="weight", hint="an entry weighs 1 or more")
        with self._lock:
            old = self._entries.pop(key, None)
            if old is not None:
                self.weight -= old[1]
            if weight > self.capacity:
                return
            self._entries[key] = value, weight
            self.weight += weight
            while self.weight > self.capacity:
                _, (_, freed) = self._entries.popitem(last=False)
                self.weight -= freed
                self.evictions += 1

    def clear(self) -> None:
        """Forget everything; the counters go on."""
        with self._lock:
            self._entries.clear()
            self.weight = 0

    def __len__(self) -> int:
        return len(self._entries)

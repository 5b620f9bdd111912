"""The bounded map: what it keeps, what it forgets, what it counts."""

from __future__ import annotations

import threading
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import InputError
from serving.lru import Lru


def test_what_was_used_least_recently_goes_first() -> None:
    cache: Lru[str, int] = Lru(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)
    assert (cache.hits, cache.misses, cache.evictions) == (3, 1, 1)


def test_a_heavy_entry_displaces_as_many_as_it_needs() -> None:
    cache: Lru[str, str] = Lru(10)
    for key in "abcde":
        cache.put(key, key, weight=2)
    cache.put("heavy", "h", weight=5)
    assert [key for key in "abcde" if cache.get(key)] == ["d", "e"]
    assert cache.weight == 9


def test_what_outweighs_everything_is_not_kept_and_costs_nobody_else() -> None:
    cache: Lru[str, int] = Lru(3)
    cache.put("a", 1)
    cache.put("huge", 2, weight=4)
    assert (cache.get("a"), cache.get("huge"), cache.evictions) == (1, None, 0)


def test_a_new_value_that_is_too_heavy_still_ends_the_old_one() -> None:
    cache: Lru[str, int] = Lru(3)
    cache.put("a", 1)
    cache.put("a", 2, weight=4)
    assert cache.get("a") is None
    assert (len(cache), cache.weight) == (0, 0)


def test_without_capacity_nothing_is_kept() -> None:
    cache: Lru[str, int] = Lru(0)
    cache.put("a", 1)
    assert cache.get("a") is None


def test_clearing_forgets_the_entries_and_not_the_counters() -> None:
    cache: Lru[str, int] = Lru(3)
    cache.put("a", 1, weight=3)
    cache.get("a")
    cache.clear()
    assert (cache.get("a"), cache.weight, cache.hits) == (None, 0, 1)


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="capacity is -1"):
        Lru(-1)
    with pytest.raises(InputError, match="weight is 0"):
        Lru[str, int](1).put("a", 1, weight=0)


steps = st.tuples(st.sampled_from("abcdef"), st.one_of(st.none(), st.integers(1, 7)))


@given(st.integers(0, 12), st.lists(steps, max_size=40))
def test_it_keeps_what_a_plain_list_of_uses_says(capacity: int, history: list[tuple[str, int | None]]) -> None:
    cache: Lru[str, int] = Lru(capacity)
    model: OrderedDict[str, int] = OrderedDict()  # key -> weight, oldest use first
    for key, weight in history:
        if weight is None:
            assert (cache.get(key) is not None) == (key in model)
            if key in model:
                model.move_to_end(key)
            continue
        cache.put(key, weight, weight)
        model.pop(key, None)
        if weight <= capacity:
            model[key] = weight
        while sum(model.values()) > capacity:
            model.popitem(last=False)
        assert cache.weight == sum(model.values()) <= capacity
        assert len(cache) == len(model)


def test_threads_leave_the_weight_right() -> None:
    cache: Lru[int, int] = Lru(50)

    def work(seed: int) -> None:
        for number in range(2000):
            key = (number * seed) % 97
            cache.put(key, key, weight=1 + key % 5)
            found = cache.get((key + seed) % 97)
            assert found is None or found == (key + seed) % 97

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 3, 5, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = [key for key in range(97) if cache.get(key) is not None]
    assert cache.weight == sum(1 + key % 5 for key in kept) <= 50
    assert cache.hits + cache.misses == 4 * 2000 + 97

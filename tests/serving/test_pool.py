"""The pool: who is let in, who is turned away, and what becomes of work that nobody waits for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future

import pytest

from data.errors import InputError
from serving.pool import LateError, OverloadedError, Pool, PoolFigures


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Gate:
    """Work that runs until the test lets it end."""

    def __init__(self) -> None:
        self.entered, self.open = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.entered.set()
        assert self.open.wait(30)
        return "through"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open.set()


def busy(pool: Pool, gate: Gate) -> Future[str]:
    """One worker that is at work for certain."""
    future = pool.submit(gate)
    assert gate.entered.wait(30)
    return future


def learn(pool: Pool, clock: Clock, seconds: float) -> None:
    """Let the pool see one piece of work that takes this long."""

    def work() -> None:
        clock.now += seconds

    pool.submit(work).result(30)


def test_work_gives_its_result_or_its_error() -> None:
    pool = Pool(2)
    assert pool.submit(lambda: 6 * 7).result(30) == 42
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 // 0).result(30)
    assert pool.submit(lambda: "still at work").result(30) == "still at work"
    assert pool.drain(30)
    assert (pool.figures().done, pool.depth) == (3, 0)


def test_a_future_can_be_awaited() -> None:
    async def ask() -> int:
        return await asyncio.wrap_future(pool.submit(lambda: 42))

    pool = Pool(1)
    assert asyncio.run(ask()) == 42


def test_work_starts_in_the_order_of_its_coming(gate: Gate) -> None:
    pool, order = Pool(1), list[int]()
    busy(pool, gate)
    waiting = [pool.submit(lambda number=number: order.append(number)) for number in range(5)]
    assert pool.depth == 6
    gate.open.set()
    for future in waiting:
        future.result(30)
    assert order == [0, 1, 2, 3, 4]


def test_a_full_queue_refuses(gate: Gate) -> None:
    pool = Pool(1, queue_limit=2)
    busy(pool, gate)
    pool.submit(gate)
    pool.submit(gate)
    with pytest.raises(OverloadedError, match="2 requests wait already") as refused:
        pool.submit(gate)
    assert refused.value.retry_after_s >= 1
    assert (pool.figures().shed, pool.figures().queued) == (1, 2)


def test_a_wait_that_would_be_too_long_is_refused_before_it_begins(clock: Clock, gate: Gate) -> None:
    pool = Pool(1, queue_limit=100, max_wait_ms=250, clock=clock)
    learn(pool, clock, 0.1)
    busy(pool, gate)
    pool.submit(gate)  # waits for one: 100 ms
    pool.submit(gate)  # 200 ms
    with pytest.raises(OverloadedError, match="the expected wait is 300 ms"):
        pool.submit(gate)


def test_more_workers_shorten_the_expected_wait(clock: Clock, gate: Gate) -> None:
    pool = Pool(2, queue_limit=100, max_wait_ms=125, clock=clock)
    learn(pool, clock, 0.1)
    for _ in range(2 + 2):  # two run; before the second that waits stand 2 * 100 ms of work, for two workers
        pool.submit(gate)
    with pytest.raises(OverloadedError, match="the expected wait is 150 ms"):
        pool.submit(gate)


def test_while_a_worker_is_free_nobody_is_refused(clock: Clock) -> None:
    pool = Pool(1, queue_limit=0, max_wait_ms=0, clock=clock)
    for _ in range(3):
        learn(pool, clock, 60.0)
    assert pool.figures() == PoolFigures(0, 0, 60_000, done=3, shed=0, late=0, cancelled=0)


def test_how_long_to_stay_away_follows_from_how_much_too_long_the_wait_is(clock: Clock, gate: Gate) -> None:
    pool = Pool(1, queue_limit=100, max_wait_ms=500, clock=clock)
    learn(pool, clock, 8.0)
    busy(pool, gate)
    with pytest.raises(OverloadedError) as refused:
        pool.submit(gate)
    assert refused.value.retry_after_s == 8  # 8 s expected, 0.5 s allowed, whole seconds


def test_the_service_time_follows_what_work_takes_lately(clock: Clock) -> None:
    pool = Pool(1, clock=clock)
    learn(pool, clock, 1.0)
    assert pool.figures().service_ms == pytest.approx(1000)
    for _ in range(100):
        learn(pool, clock, 0.01)
    assert pool.figures().service_ms == pytest.approx(10, rel=0.01)


def test_work_that_nobody_waits_for_any_more_is_not_run(gate: Gate) -> None:
    pool, ran = Pool(1), list[str]()
    running = busy(pool, gate)
    given_up = pool.submit(lambda: ran.append("given up"))
    last = pool.submit(lambda: ran.append("wanted"))
    assert given_up.cancel()
    assert not running.cancel(), "what runs cannot be called back"
    gate.open.set()
    last.result(30)
    assert ran == ["wanted"]
    assert pool.drain(30)
    assert pool.figures().cancelled == 1


def test_cancelled_work_keeps_nobody_out(gate: Gate) -> None:
    pool = Pool(1, queue_limit=1)
    busy(pool, gate)
    assert pool.submit(gate).cancel()
    pool.submit(gate)
    assert (pool.figures().queued, pool.figures().cancelled, pool.figures().shed) == (1, 1, 0)


def test_work_whose_deadline_passed_while_it_waited_is_dropped(clock: Clock, gate: Gate) -> None:
    pool, ran = Pool(1, clock=clock), list[str]()
    busy(pool, gate)
    late = pool.submit(lambda: ran.append("late"), deadline=5.0)
    in_time = pool.submit(lambda: ran.append("in time"), deadline=20.0)
    clock.now = 10.0
    gate.open.set()
    with pytest.raises(LateError, match="before the work could start"):
        late.result(30)
    in_time.result(30)
    assert ran == ["in time"]
    assert pool.figures().late == 1


def test_draining_ends_what_was_admitted_and_admits_nothing_more(gate: Gate) -> None:
    pool, drained = Pool(1), list[bool]()
    first, second = busy(pool, gate), pool.submit(lambda: "second")
    drain = threading.Thread(target=lambda: drained.append(pool.drain(30)))
    drain.start()
    gate.open.set()
    drain.join(30)
    assert drained == [True]
    assert (first.result(0), second.result(0)) == ("through", "second")
    with pytest.raises(OverloadedError, match="shutting down"):
        pool.submit(lambda: "too late")


def test_draining_gives_up_at_its_timeout_and_cancels_what_waits(gate: Gate) -> None:
    pool = Pool(1)
    running, waiting = busy(pool, gate), pool.submit(lambda: "never")
    assert not pool.drain(timeout=0)
    with pytest.raises(CancelledError):
        waiting.result(30)
    gate.open.set()
    assert running.result(30) == "through"
    assert pool.figures().cancelled == 1


def test_every_admitted_piece_of_work_ends_one_way_under_load() -> None:
    pool, refused, futures = Pool(3, queue_limit=4, max_wait_ms=1e9), [0], list[Future[int]]()
    lock = threading.Lock()

    def client(seed: int) -> None:
        for number in range(200):
            try:
                future = pool.submit(lambda number=number: number * number)
            except OverloadedError:
                with lock:
                    refused[0] += 1
                continue
            if (number + seed) % 7 == 0:
                future.cancel()
            with lock:
                futures.append(future)

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pool.drain(30)
    figures = pool.figures()
    assert all(future.done() for future in futures)
    assert figures.shed == refused[0]
    assert figures.done + figures.cancelled == len(futures) == 800 - refused[0]


@pytest.mark.parametrize(
    "sizes", [{"workers": 0}, {"workers": 1, "queue_limit": -1}, {"workers": 1, "max_wait_ms": -1}]
)
def test_impossible_sizes_are_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(InputError, match=list(sizes)[-1]):
        Pool(**sizes)

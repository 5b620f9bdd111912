"""A bounded pool of threads that refuses work before waiting grows: admission by expected wait, shedding by deadline.

The expected wait of a newcomer is the work ahead of it, at the time that work took lately, over the number of workers.
A server that queues without a bound answers everybody too late; this one answers those it can, and tells the others
when to come back.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any, TypeVar

from data.errors import InputError, ToolcribError

T = TypeVar("T")

_RECENT = 0.1
"""How much the latest service time counts in the mean."""


class OverloadedError(ToolcribError):
    """Work that was refused because it would wait too long. `retry_after_s`: whole seconds after which to come back."""

    def __init__(self, problem: str, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(f"{problem}; try again in {retry_after_s} s")


class LateError(ToolcribError):
    """Work that was dropped unstarted, because whoever asked for it has given up by then."""


@dataclass(frozen=True)
class PoolFigures:
    """`queued` and `running` now; `service_ms`, the mean service time lately; counts since the start: `done`, `shed`
    (refused for load), `late` (dropped at their deadline) and `cancelled` (given up by whoever asked, unstarted)."""

    queued: int
    running: int
    service_ms: float
    done: int
    shed: int
    late: int
    cancelled: int


@dataclass(frozen=True)
class _Work:
    run: Callable[[], Any]
    future: Future[Any]
    deadline: float | None


class Pool:
    """Runs functions on `workers` threads, oldest first.

    At most `queue_limit` wait, and nobody is let in who would be expected to wait over `max_wait_ms`. While a worker is
    free, nobody is refused. `clock` gives seconds that only go up; deadlines are on it.
    """

    def __init__(
        self,
        workers: int,
        queue_limit: int = 64,
        max_wait_ms: float = 250.0,
        *,
        name: str = "pool",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for field, value, least in (
            ("workers", workers, 1),
            ("queue_limit", queue_limit, 0),
            ("max_wait_ms", max_wait_ms, 0),
        ):
            if not value >= least:
                raise InputError(f"{field} is {value}", field=field, hint=f"choose {least} or more")
        self.workers, self.queue_limit, self.max_wait_ms, self.clock = workers, queue_limit, max_wait_ms, clock
        self._queue: deque[_Work] = deque()
        self._running = self._unsettled = self._done = self._shed = self._late = self._cancelled = 0
        self._service: float | None = None
        self._open = True
        self._changed = Condition()
        self._threads = [Thread(target=self._work, name=f"{name}-{i}", daemon=True) for i in range(workers)]
        for thread in self._threads:
            thread.start()

    def submit(self, run: Callable[[], T], *, deadline: float | None = None) -> Future[T]:
        """Queue `run`; its future gets what it returns or raises, or LateError if `deadline` passes before it starts.

        Raises OverloadedError where it would have to wait too long, and when the pool is being drained. A future that
        is cancelled before its work starts takes the work with it.
        """
        future: Future[T] = Future()
        with self._changed:
            if not self._open:
                raise OverloadedError("the service is shutting down", 1)
            self._admit()
            self._queue.append(_Work(run, future, deadline))
            self._changed.notify()
        return future

    def figures(self) -> PoolFigures:
        """What the pool does and did."""
        with self._changed:
            return PoolFigures(
                len(self._queue),
                self._running,
                1000 * (self._service or 0.0),
                self._done,
                self._shed,
                self._late,
                self._cancelled,
            )

    @property
    def depth(self) -> int:
        """Work that waits or runs."""
        with self._changed:
            return len(self._queue) + self._running

    def drain(self, timeout: float | None = None) -> bool:
        """Let nobody in any more and wait, up to `timeout` seconds, for what was admitted; whether all of it ended.

        What has not started by then is cancelled; what runs is left to end by itself. The threads end.
        """
        with self._changed:
            self._open = False
            ended = self._changed.wait_for(lambda: not self._queue and not self._unsettled, timeout)
            left = list(self._queue)
            self._queue.clear()
            self._changed.notify_all()
        for work in left:  # outside the lock: a future's callbacks may ask the pool something
            if work.future.cancel():
                work.future.set_running_or_notify_cancel()
        with self._changed:
            self._cancelled += len(left)
        return ended

    def _admit(self) -> None:
        """Raise OverloadedError unless one more fits. Called with the lock held."""
        self._forget_cancelled()
        ahead = len(self._queue) + self._running
        if ahead < self.workers:
            return
        # before a worker turns to the newcomer, all but workers - 1 of those ahead have to end
        wait = (ahead - self.workers + 1) * (self._service or 0.0) / self.workers
        if len(self._queue) >= self.queue_limit:
            problem = f"{len(self._queue)} requests wait already"
        elif wait * 1000 > self.max_wait_ms:
            problem = f"the expected wait is {wait * 1000:.0f} ms"
        else:
            return
        self._shed += 1
        raise OverloadedError(problem, max(1, math.ceil(wait - self.max_wait_ms / 1000)))

    def _forget_cancelled(self) -> None:
        """Cancelled work must keep nobody out. Called with the lock held."""
        if any(work.future.cancelled() for work in self._queue):
            kept = [work for work in self._queue if not work.future.cancelled()]
            self._cancelled += len(self._queue) - len(kept)
            self._queue = deque(kept)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or not self._open)
                if not self._queue:
                    return
                work = self._queue.popleft()
                self._running += 1
                self._unsettled += 1
            self._serve(work)
            del work  # or its result would live on until the next one
            with self._changed:
                self._unsettled -= 1
                self._changed.notify_all()

    def _serve(self, work: _Work) -> None:
        """Run one piece of work. The worker counts as free before the future is settled: whoever hears of the result
        finds room for the next."""
        started = self.clock()
        if not work.future.set_running_or_notify_cancel():
            with self._changed:
                self._running -= 1
                self._cancelled += 1
            return
        if work.deadline is not None and started > work.deadline:
            with self._changed:
                self._running -= 1
                self._late += 1
            work.future.set_exception(LateError("the deadline passed before the work could start"))
            return
        try:
            result = work.run()
        except BaseException as error:  # whatever it is, it belongs to whoever asked
            self._took(self.clock() - started)
            work.future.set_exception(error)
        else:
            self._took(self.clock() - started)
            work.future.set_result(result)

    def _took(self, seconds: float) -> None:
        with self._changed:
            self._running -= 1
            self._done += 1
            self._service = seconds if self._service is None else self._service + _RECENT * (seconds - self._service)

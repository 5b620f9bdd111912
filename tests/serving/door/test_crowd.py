"""The door refuses who would wait too long for the event loop, and nobody else."""

from __future__ import annotations

import asyncio

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from serving.door.crowd import ALWAYS_IN, Crowd


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Place:
    """An application whose requests leave one by one, when they are told to."""

    def __init__(self, max_wait_ms: float) -> None:
        self.clock, self.turned_away = Clock(), 0
        self.crowd = Crowd(self._app, max_wait_ms, self._refused, self.clock)
        self.waiting: list[asyncio.Event] = []

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        leave = asyncio.Event()
        self.waiting.append(leave)
        await leave.wait()
        await PlainTextResponse("done")(scope, receive, send)

    def _refused(self) -> None:
        self.turned_away += 1

    async def enter(self, path: str = "/v1/select") -> asyncio.Task[list[Message]]:
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def run() -> list[Message]:
            await self.crowd({"type": "http", "path": path, "method": "POST", "headers": []}, receive, send)
            return sent

        task = asyncio.create_task(run())
        await asyncio.sleep(0)
        return task

    async def let_out(self, seconds: float) -> None:
        self.clock.now += seconds
        self.waiting.pop(0).set()
        for _ in range(3):
            await asyncio.sleep(0)


async def crowded(place: Place, seconds_each: float, inside: int) -> None:
    """Requests have been leaving `seconds_each` apart, and `inside` of them are there."""
    await place.enter()
    for _ in range(200):
        await place.enter()
        await place.let_out(seconds_each)
    while len(place.waiting) < inside:
        await place.enter()


@pytest.mark.anyio
async def test_who_would_wait_too_long_is_told_when_to_come_back() -> None:
    place = Place(max_wait_ms=250)
    await crowded(place, 0.01, ALWAYS_IN)
    sent = await (await place.enter())
    assert (sent[0]["status"], dict(sent[0]["headers"])[b"retry-after"]) == (503, b"1")
    assert place.turned_away == 1
    assert b'"overloaded"' in sent[1]["body"]


@pytest.mark.anyio
async def test_many_quick_ones_are_all_let_in() -> None:
    place = Place(max_wait_ms=250)
    await crowded(place, 0.001, 3 * ALWAYS_IN)
    assert not (await place.enter()).done()
    assert place.turned_away == 0


@pytest.mark.anyio
async def test_a_few_slow_ones_keep_nobody_out() -> None:
    place = Place(max_wait_ms=250)
    await crowded(place, 5.0, ALWAYS_IN - 1)
    assert not (await place.enter()).done()


@pytest.mark.anyio
async def test_an_idle_hour_is_no_slow_request() -> None:
    place = Place(max_wait_ms=250)
    await crowded(place, 0.001, 1)
    await place.let_out(0.001)
    assert not place.waiting
    place.clock.now += 3600.0
    while len(place.waiting) < 2 * ALWAYS_IN:
        await place.enter()
    assert place.turned_away == 0


@pytest.mark.anyio
async def test_health_and_metrics_are_always_answered() -> None:
    place = Place(max_wait_ms=0)
    await crowded(place, 1.0, ALWAYS_IN)
    assert not (await place.enter("/healthz")).done(), "let in"
    assert place.turned_away == 0

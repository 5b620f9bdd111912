"""A door that refuses when too many stand in it: requests that need no worker wait for the event loop all the same.

The pool refuses decisions that would wait too long for a thread. What is cached, checked or reported passes it by, and
at twice the rate that one event loop answers it would wait for seconds. So the door counts who is inside, and how
long apart they leave while it is busy; a newcomer who would be expected to wait over the bound is refused at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from serving.door.errors import answered, overloaded

ALWAYS_IN = 32
"""So many are let in whatever they take: a few that wait for something elsewhere keep nobody waiting."""

_RECENT = 0.05
"""How much the latest gap counts in the mean."""


class Crowd:
    """ASGI middleware around the routes of the API; health and metrics are always answered. `clock` is in seconds."""

    def __init__(
        self,
        app: ASGIApp,
        max_wait_ms: float,
        refused: Callable[[], None],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._app, self._most_s, self._refused, self._clock = app, max_wait_ms / 1000, refused, clock
        self._inside = 0
        self._since = self._gap = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/v1/"):
            await self._app(scope, receive, send)
            return
        if self._inside >= ALWAYS_IN and self._inside * self._gap > self._most_s:
            self._refused()
            await answered(_TOO_MANY)(scope, receive, send)
            return
        if self._inside == 0:
            self._since = self._clock()
        self._inside += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._inside -= 1
            now = self._clock()
            self._gap += _RECENT * (now - self._since - self._gap)
            self._since = now


_TOO_MANY = overloaded(1)

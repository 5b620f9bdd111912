"""Listening: the server of an application, which tells that it is about to end while it still takes requests.

A load balancer learns from `/readyz` where to send requests, and learns it late. So the end begins with `/readyz`
saying 503 while connections are still taken and answered, and only then are they closed.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn

from serving.door.requests import Door
from serving.door.settings import ServiceSettings

_CLOSING_S = 25
"""So long may requests take that were begun before the connections are closed."""
_TICK_S = 0.05
_NOT_STARTED = 3
"""Exit code, as uvicorn's own."""


class Listening(uvicorn.Server):
    """`linger_s`: how long requests are still taken after the end was asked for. Ctrl-C does not wait.

    `end_streams` is called after that: an answer without an end would hold the server up.
    """

    def __init__(
        self, config: uvicorn.Config, door: Door, linger_s: float, end_streams: Callable[[], None] | None = None
    ) -> None:
        super().__init__(config)
        self.linger_s = linger_s
        self._door, self._end_streams = door, end_streams

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The end is asked for by a signal."""
        self._door.draining = True
        if sig == signal.SIGINT:
            self.linger_s = 0.0
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell, linger, then close."""
        self._door.draining = True
        clock = asyncio.get_running_loop().time
        begun = clock()
        while clock() - begun < self.linger_s and not self.force_exit:
            await asyncio.sleep(_TICK_S)
        if self._end_streams is not None:
            self._end_streams()
        await super().shutdown(sockets)


def listening(
    application: Any,
    door: Door,
    settings: ServiceSettings,
    host: str,
    port: int,
    end_streams: Callable[[], None] | None = None,
) -> Listening:
    """The server, not started yet."""
    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_CLOSING_S,
    )
    return Listening(config, door, settings.shutdown.linger_seconds, end_streams)


def listen(server: Listening) -> None:
    """Serve until a signal ends it. SystemExit where it cannot start."""
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        sys.exit(_NOT_STARTED)

"""HTTP/1.1 over kept-alive sockets, at little cost to the asking side: prepared bytes out, few reads in."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

HOST = "127.0.0.1"
GIVE_UP_S = 60.0


@dataclass(frozen=True)
class Reply:
    """An answer: its status, body, how long it took in seconds, and the seconds of `Retry-After` (0 without one)."""

    status: int
    body: bytes
    seconds: float
    retry_after: int = 0

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Connection:
    """One socket to a service, opened when it is first needed and again after it broke."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: object) -> Reply:
        """Send JSON. Raises OSError where the service is away or goes away, TimeoutError after a minute."""
        return await self.send(prepared(path, body))

    async def send(self, request: bytes) -> Reply:
        """Send a whole request made by `prepared`. Raises as `post` does."""
        started = time.perf_counter()
        try:
            async with asyncio.timeout(GIVE_UP_S):
                if self._streams is None:
                    self._streams = await asyncio.open_connection(HOST, self._port, limit=2**20)
                reader, writer = self._streams
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                headers = dict(_header(line) for line in head.split(b"\r\n")[1:] if line)
                body = await reader.readexactly(int(headers[b"content-length"]))
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            self.close()
            raise error if isinstance(error, OSError) else ConnectionResetError("the service went away") from error
        seconds = time.perf_counter() - started
        return Reply(int(head[9:12]), body, seconds, int(headers.get(b"retry-after", b"0")))

    def close(self) -> None:
        """Close the socket; the next request opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def prepared(path: str, body: object) -> bytes:
    """A POST of JSON as the bytes of one request."""
    payload = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}"
    return f"{head}\r\n\r\n".encode() + payload


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.lower(), value.strip()

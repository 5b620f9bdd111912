"""Clients that ask for menus and report outcomes without a pause, and keep account of all that they were told."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.connections import Connection
from benchmarks.running_service import RunningService

CLIENTS = 8
OUTCOMES_A_MENU = 3
OVERLOADED = "503 overloaded"


@dataclass
class Seen:
    """What the clients saw in one phase: how requests ended, how long they took (ms), and what was acknowledged."""

    ended: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    degraded: Counter[str] = field(default_factory=Counter)
    bundles: Counter[str] = field(default_factory=Counter)

    def line(self) -> str:
        ended = ", ".join(f"{count:,} {what}" for what, count in sorted(self.ended.items()))
        p50, p99 = np.percentile(np.array(self.times or [np.nan]), [50, 99])
        return f"{ended}; answered in {p50:.0f} ms (p50), {p99:.0f} (p99), {max(self.times, default=0.0):.0f} (slowest)"

    def count(self, *starts: str) -> int:
        """How many requests ended in a way that starts so."""
        return sum(count for how, count in self.ended.items() if how.startswith(starts))

    @property
    def unanswered(self) -> int:
        """Requests without an answer, but for those that were sent away for load and told when to come again."""
        return sum(
            count
            for how, count in self.ended.items()
            if (" refused (" in how or " lost (" in how) and OVERLOADED not in how
        )


class Clients:
    """Eight clients, and all that was ever acknowledged to them."""

    def __init__(self, service: RunningService, texts: Sequence[str]) -> None:
        self._service, self._texts = service, itertools.cycle(texts)
        self._numbers = itertools.count()
        self.outcomes = set[str]()
        self.slices = set[str]()

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncIterator[Seen]:
        """They work while the block lasts; the requests under way then are awaited."""
        seen, going = Seen(), asyncio.Event()
        going.set()
        work = [asyncio.create_task(self._client(seen, going)) for _ in range(CLIENTS)]
        try:
            yield seen
        finally:
            going.clear()
            await asyncio.gather(*work)

    async def for_some_time(self, seconds: float) -> Seen:
        async with self.at_work() as seen:
            await asyncio.sleep(seconds)
        return seen

    async def _client(self, seen: Seen, going: asyncio.Event) -> None:
        connection = Connection(self._service.port)
        while going.is_set():
            shown = await self._ask(connection, seen)
            if shown:
                for _ in range(OUTCOMES_A_MENU):
                    await self._report(connection, seen, shown)
            else:
                await asyncio.sleep(0.02)
        connection.close()

    async def _ask(self, connection: Connection, seen: Seen) -> str:
        text = next(self._texts)
        found = await _sent(connection, seen, "menu", "/v1/select", {"goal": f"{text} (item {next(self._numbers)})"})
        if found is None:
            return ""
        slice_id: str = found["slice_id"]
        if found["recorded"]:
            self.slices.add(slice_id)
        else:
            seen.ended["menus, not recorded"] += 1
        seen.bundles[found["versions"]["bundle"]] += 1
        seen.degraded.update(part["stage"] for part in found["degradations"])
        return slice_id

    async def _report(self, connection: Connection, seen: Seen, slice_id: str) -> None:
        key = f"call {next(self._numbers)}"
        outcome = {"key": key, "slice_id": slice_id, "tool_id": "some.tool", "outcome": "success"}
        found = await _sent(connection, seen, "outcome", "/v1/outcomes", {"outcomes": [outcome]})
        if found is not None:
            seen.ended[f"outcomes kept in the {found['results'][0]['stored']}"] += 1
            self.outcomes.add(key)


async def _sent(connection: Connection, seen: Seen, what: str, path: str, body: Mapping[str, Any]) -> Any:
    """The answer where it is one; errors are counted by their status and code."""
    try:
        reply = await connection.post(path, body)
    except OSError as error:
        seen.ended[f"{what}s lost ({type(error).__name__})"] += 1
        return None
    seen.times.append(reply.seconds * 1000)
    if reply.status == 200:
        seen.ended[f"{what}s answered"] += 1
        return reply.json
    seen.ended[f"{what}s refused ({reply.status} {reply.json['error']['code']})"] += 1
    return None

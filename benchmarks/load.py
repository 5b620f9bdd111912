"""The running service under load: throughput and latency by clients, cold and warm, and at twice what it can sustain.

    python -m benchmarks.load --run runs/demo [--json]

`toolcrib serve` runs as a process of its own, with its settings as they come, on SQLite; this process asks it over
kept-alive sockets and says how much CPU asking took. *Cold*: no request was ever asked before. *Warm*: all were.
Closed loop: each client sends its next request when it has its answer, and waits as long as a `Retry-After` says. Open
loop: requests come at random moments (Poisson) whatever becomes of those before, and are not sent again; latency counts
from the moment a request was due. Figures are medians over the rounds, which take turns between configurations.

A yardstick for the machine: the same decisions in this process, one thread, no cache, before and after the load.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.connections import Connection, prepared
from benchmarks.running_service import RunningService, running, with_cross_encoder
from data.jsonl import load_catalog, load_queries
from serving.search_tool import with_search_tool
from serving.selector import Selector

CLIENTS = (1, 8, 32)
WARM_TEXTS = 64
MAX_CONNECTIONS = 512
OVERLOAD = 2.0
YARDSTICK = 60
"""Decisions in process, before the load and again after it."""


@dataclass(frozen=True)
class Load:
    """One measurement. Rates a second, times in ms of what was served, shares in [0, 1] of all requests sent.

    `service_cpu` and `asking_cpu`: CPU seconds a second of the two processes. `cached`: share of the decisions.
    """

    offered: float
    served: float
    shed: float
    failed: float
    cached: float
    p50: float
    p95: float
    p99: float
    service_cpu: float
    asking_cpu: float


class Asked:
    """The requests of one run: some to repeat, and an endless row of others, none of which was ever sent before."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.warm = [self._request(text, number) for number, text in enumerate(texts[:WARM_TEXTS])]
        self._others = (
            self._request(text, number) for number, text in enumerate(itertools.cycle(texts), start=WARM_TEXTS)
        )

    def of(self, way: str) -> Iterator[bytes]:
        return itertools.cycle(self.warm) if way == "warm" else self._others

    @staticmethod
    def _request(text: str, number: int) -> bytes:
        return prepared("/v1/select", {"goal": f"{text} (item {number})"})


def main() -> None:
    parser = argparse.ArgumentParser(description="Put load on the running service.")
    parser.add_argument("--run", type=Path, required=True, help="what `toolcrib demo` wrote")
    parser.add_argument("--seconds", type=float, default=5.0, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    texts = [query.text for query in load_queries(given.run / "queries.jsonl")]
    catalog, bundle = given.run / "catalog.jsonl", given.run / "bundle"
    report: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="toolcrib-load-") as folder:
        reading = with_cross_encoder(bundle, Path(folder) / "bundle")
        for name, served in (("as trained", bundle), ("cross-encoder", reading)):
            if served is None:
                continue
            selector = Selector.load(served, with_search_tool(load_catalog(catalog)))
            with running(Path(folder) / name, served, catalog) as service:
                alone = in_process(selector, texts)
                loads = measure(service, Asked(texts), given.seconds, given.rounds)
                alone += in_process(selector, texts)
            report[name] = {of: asdict(load) for of, load in loads.items()}
            report[name]["in process"] = {"p50": float(np.median(alone)), "p95": float(np.percentile(alone, 95))}
            if not given.json:
                show(name, loads)
                print(f"  one decision in process: {np.median(alone):.2f} ms, p95 {np.percentile(alone, 95):.2f}")
    if given.json:
        print(json.dumps(report, indent=1))


def in_process(selector: Selector, texts: Sequence[str]) -> list[float]:
    """Milliseconds of decisions without a service around them."""
    taken = list[float]()
    for number, text in enumerate(texts[:YARDSTICK]):
        started = time.perf_counter()
        selector.select(f"{text} (item {number})")
        taken.append((time.perf_counter() - started) * 1000)
    return taken


def measure(service: RunningService, asked: Asked, seconds: float, rounds: int) -> dict[str, Load]:
    """Every configuration, medians of the rounds; closed loops first, since they say what can be sustained."""
    asyncio.run(closed(service, iter(asked.warm), 1, np.inf))
    asyncio.run(closed(service, asked.of("cold"), 8, 1.0))  # the pool learns how long its work takes
    configurations = [(way, clients) for way in ("cold", "warm") for clients in CLIENTS]
    found: dict[str, list[Load]] = {}
    for _ in range(rounds):
        for way, clients in configurations:
            load = asyncio.run(closed(service, asked.of(way), clients, seconds))
            found.setdefault(f"{way}, {clients} clients", []).append(load)
    loads = {name: median(of) for name, of in found.items()}
    over: dict[str, list[Load]] = {}
    for number in range(rounds):
        for way in ("cold", "warm"):
            sustained = max(loads[f"{way}, {clients} clients"].served for clients in CLIENTS)
            load = asyncio.run(opened(service, asked.of(way), OVERLOAD * sustained, seconds, seed=number))
            over.setdefault(f"{way}, at twice the rate", []).append(load)
    return loads | {name: median(of) for name, of in over.items()}


class Tally:
    """Counts answers while one measurement lasts."""

    def __init__(self, service: RunningService) -> None:
        self._service = service
        self._decided = self._decisions()
        self._cpu = service.cpu_seconds(), time.process_time()
        self._started = time.perf_counter()
        self.served = list[float]()
        self.shed = self.failed = 0

    def count(self, status: int, seconds: float) -> None:
        if status == 200:
            self.served.append(seconds)
        elif status == 503:
            self.shed += 1
        else:
            self.failed += 1

    def load(self, offered_for: float = 0.0) -> Load:
        """The figures. `offered_for`: seconds in which requests were sent, where the last answers took longer."""
        elapsed = time.perf_counter() - self._started
        cpu = self._service.cpu_seconds() - self._cpu[0], time.process_time() - self._cpu[1]
        sent = max(1, len(self.served) + self.shed + self.failed)
        cached, decided = (now - before for now, before in zip(self._decisions(), self._decided, strict=True))
        p50, p95, p99 = np.percentile(np.array(self.served or [np.nan]) * 1000, [50, 95, 99]).tolist()
        return Load(
            offered=sent / (offered_for or elapsed),
            served=len(self.served) / elapsed,
            shed=self.shed / sent,
            failed=self.failed / sent,
            cached=cached / max(1.0, decided),
            p50=p50,
            p95=p95,
            p99=p99,
            service_cpu=cpu[0] / elapsed,
            asking_cpu=cpu[1] / elapsed,
        )

    def _decisions(self) -> tuple[float, float]:
        """Decisions so far: from the cache, and all."""
        metrics = self._service.metrics()
        counts = {how: metrics.get(f'toolcrib_decisions_total{{cached="{how}"}}', 0.0) for how in ("true", "false")}
        return counts["true"], sum(counts.values())


async def closed(service: RunningService, requests: Iterator[bytes], clients: int, seconds: float) -> Load:
    """`clients` of them, each with one request at a time, until the time or the requests are over."""
    tally = Tally(service)
    ends = time.perf_counter() + seconds

    async def client() -> None:
        connection = Connection(service.port)
        for request in requests:
            if time.perf_counter() > ends:
                break
            try:
                reply = await connection.send(request)
            except OSError:
                tally.count(0, 0.0)
                continue
            tally.count(reply.status, reply.seconds)
            if reply.retry_after:
                await asyncio.sleep(min(reply.retry_after, max(0.0, ends - time.perf_counter())))
        connection.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return tally.load()


async def opened(service: RunningService, requests: Iterator[bytes], rate: float, seconds: float, *, seed: int) -> Load:
    """Requests at `rate` a second, whatever becomes of them, for some time; then the last answers are awaited."""
    tally, draw = Tally(service), random.Random(seed)
    idle = [Connection(service.port) for _ in range(MAX_CONNECTIONS)]
    free = asyncio.Semaphore(MAX_CONNECTIONS)

    async def ask(request: bytes, due: float) -> None:
        async with free:
            connection = idle.pop()
            try:
                reply = await connection.send(request)
                tally.count(reply.status, time.perf_counter() - due)
            except OSError:
                tally.count(0, 0.0)
            finally:
                idle.append(connection)

    due = time.perf_counter()
    ends = due + seconds
    async with asyncio.TaskGroup() as group:
        while due < ends:
            due += draw.expovariate(rate)
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(ask(next(requests), due))
    for connection in idle:
        connection.close()
    return tally.load(seconds)


def median(loads: Sequence[Load]) -> Load:
    """Figure by figure."""
    return Load(*(float(np.median([getattr(load, of.name) for load in loads])) for of in fields(Load)))


def show(name: str, loads: dict[str, Load]) -> None:
    print(f"{name}: requests a second; ms of what was served; CPU of both processes, 1.00 is a whole core")
    print(f"  {'':<26}{'offered':>8}{'served':>8}{'shed':>7}{'failed':>7}{'cached':>7}", end="")
    print(f"{'p50':>9}{'p95':>9}{'p99':>9}{'serving':>9}{'asking':>8}")
    for of, load in loads.items():
        shares = f"{load.shed:>7.1%}{load.failed:>7.1%}{load.cached:>7.1%}"
        times = f"{load.p50:>9.2f}{load.p95:>9.2f}{load.p99:>9.2f}"
        print(f"  {of:<26}{load.offered:>8.0f}{load.served:>8.0f}{shares}{times}", end="")
        print(f"{load.service_cpu:>9.2f}{load.asking_cpu:>8.2f}")


if __name__ == "__main__":
    main()

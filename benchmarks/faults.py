"""What clients see while things break, and whether what was promised to them holds; exits with 1 where it does not.

    python -m benchmarks.faults --run runs/demo [FAULT...] [--json]

FAULT: kill, postgres, bundle, rerank, disk; all of them by default. `toolcrib serve` runs as a process of its own, and
eight clients ask for menus and report outcomes all the while, each with its next request once it has an answer. What
was acknowledged is then looked for in the database itself. `postgres` starts a private server of PostgreSQL and is
skipped where none is installed; `disk` mounts a small tmpfs and is skipped where that is not permitted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from benchmarks.busy_clients import Clients, Seen
from benchmarks.connections import Connection, Reply
from benchmarks.running_service import NotRunningError, RunningService, copy_of, running, with_cross_encoder
from data.cards import Risk
from data.jsonl import load_catalog, load_queries
from data.store.database import open_database
from data.store.tables import decisions, outcomes
from serving.bundle import MANIFEST, load_bundle

PRODUCTION = {"envs": ["production"], "may_act_for": True, "operator": True, "may_confirm": True}
POSTGRES_SERVER = Path(__file__).parents[1] / "tests" / "data" / "store" / "postgres_server.py"


@dataclass
class Report:
    """One fault: what was seen, phase by phase, and the promises, each with whether it held."""

    seen: dict[str, str] = field(default_factory=dict)
    promises: dict[str, bool] = field(default_factory=dict)
    skipped: str = ""


def kept(url: str | Path, clients: Clients) -> dict[str, bool]:
    """The promises about what was acknowledged, looked up in the database."""
    with contextlib.closing(open_database(str(url))) as database, database.engine.connect() as connection:
        keys = Counter(connection.execute(sa.select(outcomes.c.key)).scalars())
        ids = Counter(connection.execute(sa.select(decisions.c.slice_id)).scalars())
    return {
        f"all {len(clients.outcomes):,} acknowledged outcomes are there": set() < clients.outcomes <= keys.keys(),
        f"all {len(clients.slices):,} recorded decisions are there": set() < clients.slices <= ids.keys(),
        "each once": max(keys.values(), default=0) <= 1 and max(ids.values(), default=0) <= 1,
    }


@dataclass(frozen=True)
class Ground:
    """What every fault starts from."""

    bundle: Path
    catalog: Path
    texts: Sequence[str]
    folder: Path
    seconds: float


async def killed(ground: Ground, service: RunningService, url: str | Path, rounds: int = 3) -> Report:
    """Killed with SIGKILL while it works, and started again; what was acknowledged is looked for afterwards."""
    report, clients = Report(), Clients(service, ground.texts)
    for number in range(1, rounds + 1):
        async with clients.at_work() as seen:
            await asyncio.sleep(ground.seconds)
            service.kill()
            await asyncio.sleep(0.2)
        report.seen[f"until the kill, {number}"] = seen.line()
        await asyncio.to_thread(service.start)
        await asyncio.to_thread(service.wait_until, store="ok")
        report.promises |= {f"{promise} (after kill {number})": held for promise, held in kept(url, clients).items()}
    connection = Connection(service.port)
    again = [{"key": key, "slice_id": "0", "tool_id": None, "outcome": "failure"} for key in sorted(clients.outcomes)]
    for start in range(0, len(again), 256):
        await connection.post("/v1/outcomes", {"outcomes": again[start : start + 256]})
    connection.close()
    with contextlib.closing(open_database(str(url))) as database, database.engine.connect() as found:
        changed = found.execute(sa.select(sa.func.count()).where(outcomes.c.outcome == "failure")).scalar_one()
    report.promises["sent again, the first report of each stays, and is the only one"] = changed == 0
    report.promises["each once, all the same"] = kept(url, clients)["each once"]
    return report


def kill(ground: Ground) -> Report:
    with running(ground.folder / "kill", ground.bundle, ground.catalog) as service:
        return asyncio.run(killed(ground, service, service.database))


def postgres(ground: Ground) -> Report:
    """PostgreSQL is stopped at once while requests come, the service is killed meanwhile, and both come back."""
    server_module = _postgres_server()
    try:
        with server_module.private_server() as server:
            settings = {"traces": {"database_env": "TOOLCRIB_FAULTS_DATABASE"}, "identity": {"dev": PRODUCTION}}
            given = {"TOOLCRIB_FAULTS_DATABASE": server.url}
            with running(ground.folder / "pg", ground.bundle, ground.catalog, settings, given) as service:
                return asyncio.run(stopped_and_started(ground, service, server))
    except server_module.UnavailableError as error:
        return Report(skipped=str(error))


async def stopped_and_started(ground: Ground, service: RunningService, server: Any) -> Report:
    report, clients, call = Report(), Clients(service, ground.texts), WaitingCall(service, ground.catalog)
    report.seen["before"] = (await clients.for_some_time(ground.seconds)).line()
    approved = await call.approved()
    async with clients.at_work() as during:
        await asyncio.to_thread(server.stop)
        await asyncio.sleep(2 * ground.seconds)
    report.seen["stopped"] = during.line()
    state = await asyncio.to_thread(service.state)
    unticketed, ticketed = await call.check(None), await call.check(approved)
    report.seen["stopped, a call that needs a ticket"] = f"{unticketed}; with an approved ticket {ticketed}"
    async with clients.at_work() as back:
        await asyncio.to_thread(server.start)
        seconds = await asyncio.to_thread(service.wait_until, store="ok")
    report.seen["started again"] = f"{back.line()}; the spool was replayed {seconds:.1f} s later"
    redeemed, again = await call.check(approved), await call.check(approved)
    report.seen["started again, the approved ticket"] = f"{redeemed}, a second time {again}"
    async with clients.at_work() as killed:
        await asyncio.to_thread(server.stop)
        await asyncio.sleep(ground.seconds)
        service.kill()
    report.seen["stopped again, and the service killed"] = killed.line()
    await asyncio.to_thread(server.start)
    await asyncio.to_thread(service.start)
    await asyncio.to_thread(service.wait_until, store="ok")
    report.promises = {
        "menus and outcomes are answered all the while": not during.unanswered and not back.unanswered,
        "/readyz says that the store is degraded, and stays ready": state.get("store") == "degraded"
        and state.get("status") == "ok",
        "no verdict for a call that needs a ticket": {unticketed, ticketed} == {"503 store_unavailable"},
        "the ticket is good once, afterwards": redeemed == "200 allow" and again != redeemed,
        **kept(server.url, clients),
    }
    return report


class WaitingCall:
    """A call of a tool that writes, for which a person is asked."""

    def __init__(self, service: RunningService, catalog: Path) -> None:
        writing = (card for card in load_catalog(catalog) if card.risk is Risk.WRITE)
        self._tool = next(card for card in writing if not card.input_schema.get("required"))
        self._service, self._slice = service, ""

    async def approved(self) -> str:
        """The ticket of the call, approved. Raises AssertionError where the call needs none."""
        goal = {"goal": self._tool.name, "mutation": True, "caller": {"used_tools": [self._tool.tool_id]}}
        self._slice = (await self._post("/v1/select", goal)).json["slice_id"]
        waiting = (await self._post("/v1/check", self._call())).json
        assert waiting["verdict"] == "confirm", waiting
        ticket: str = waiting["ticket"]
        await self._post("/v1/confirm", {"ticket": ticket, "decision": "approve"})
        return ticket

    async def check(self, ticket: str | None) -> str:
        """The status of a check, with its verdict or the code of its error."""
        reply = await self._post("/v1/check", {**self._call(), "ticket": ticket})
        return f"{reply.status} {reply.json['verdict'] if reply.status == 200 else reply.json['error']['code']}"

    def _call(self) -> dict[str, Any]:
        return {"slice_id": self._slice, "tool_id": self._tool.tool_id, "arguments": {}}

    async def _post(self, path: str, body: Mapping[str, Any]) -> Reply:
        connection = Connection(self._service.port)
        try:
            return await connection.post(path, body)
        finally:
            connection.close()


def bundle(ground: Ground) -> Report:
    """The encoder's file is overwritten in its place, then the manifest is cut, then the bundle is whole again."""
    served = copy_of(ground.bundle, ground.folder / "served")
    with running(ground.folder / "bundle", served, ground.catalog) as service:
        return asyncio.run(corrupted(ground, service, served))


async def corrupted(ground: Ground, service: RunningService, served: Path) -> Report:
    report, clients = Report(), Clients(service, ground.texts)
    version = service.state()["bundle"]
    graph = load_bundle(served).manifest.retriever_graph
    good = {name: (served / name).read_bytes() for name in (graph, MANIFEST)}
    refused, phases = 0.0, list[Seen]()
    for name, bad in ((graph, b"\x00" * 2**20 + good[graph][2**20 :]), (MANIFEST, b'{"format": 1')):
        async with clients.at_work() as seen:
            (served / name).write_bytes(bad)
            before, refused = refused, await _refused_after(service, refused)
            await asyncio.sleep(ground.seconds)
        report.seen[f"{name} corrupted"] = f"{seen.line()}; {refused - before:.0f} refused"
        phases.append(seen)
    second = RunningService(ground.folder / "bundle-second", str(served), ground.catalog)
    second.folder.mkdir()
    try:
        await asyncio.to_thread(second.start)
        starts = True
        second.kill()
    except NotRunningError:
        starts = False
        report.seen["a second service on it"] = f"does not start: {second.log.strip().splitlines()[-1]}"
    async with clients.at_work() as seen:
        for name, content in good.items():
            (served / name).write_bytes(content)
        await _until(lambda: _swaps(service, accepted=True) > 0)
    report.seen["whole again"] = seen.line()
    phases.append(seen)
    report.promises = {
        "no request fails or is lost": not any(seen.unanswered for seen in phases),
        "the bundle that was verified serves on": set().union(*(seen.bundles for seen in phases)) == {version},
        "each bad bundle is refused, and counted": refused >= 2,
        "a service does not start on it": not starts,
        "the whole one is taken in": _swaps(service, accepted=True) >= 1,
    }
    return report


def rerank(ground: Ground) -> Report:
    """The cross-encoder gets so little time that it is late for every request."""
    reading = with_cross_encoder(ground.bundle, ground.folder / "cross-encoder")
    if reading is None:
        return Report(skipped="the bundle has no cross-encoder")
    report = Report()
    shares, tools = {}, {}
    for name, budget in (("in time", 10_000.0), ("late", 1.0), ("no time at all", 0.0)):
        settings = {"selector": {"rerank_budget_ms": budget}, "pool": {"max_wait_ms": 60_000}}
        with running(ground.folder / name, reading, ground.catalog, settings) as service:
            clients = Clients(service, ground.texts)
            seen = asyncio.run(clients.for_some_time(ground.seconds))
            skipped = service.metrics().get('toolcrib_rerank_skipped_total{reason="late"}', 0.0)
            tools[name] = asyncio.run(_menu(service, "convert 12 miles to kilometres"))
        asked = seen.ended["menus answered"]
        shares[name] = seen.degraded["rerank"] / max(1, asked), skipped / max(1, asked), seen.unanswered
        report.seen[f"{name} ({budget:g} ms)"] = f"{seen.line()}; {shares[name][0]:.0%} of the menus say so"
    report.promises = {
        "menus are answered however slow it is": not any(lost for _, _, lost in shares.values()),
        "in time, none says that it was late": shares["in time"][0] == 0.0,
        "late, each menu says so": shares["late"][0] == shares["no time at all"][0] == 1.0,
        "each is counted by its reason": shares["late"][1] >= 1.0,
        "menus are there all the same": all(tools.values()),
    }
    return report


def disk(ground: Ground) -> Report:
    """The disk of the database and the spool is full, then has room again."""
    mount = ground.folder / "disk"
    mount.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(mount)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        return Report(skipped=f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        settings = {"traces": {"database": str(mount / "traces.db"), "spool": str(mount / "traces.spool")}}
        with running(ground.folder / "disk-service", ground.bundle, ground.catalog, settings) as service:
            return asyncio.run(filled(ground, service, mount))
    finally:
        subprocess.run(["umount", str(mount)], check=True)


async def filled(ground: Ground, service: RunningService, mount: Path) -> Report:
    report, clients = Report(), Clients(service, ground.texts)
    report.seen["before"] = (await clients.for_some_time(ground.seconds)).line()
    ballast = mount / "ballast"
    async with clients.at_work() as filling:
        _fill(ballast)
        await _until(lambda: any("store_unavailable" in how for how in filling.ended), seconds=30.0)
    report.seen["until nothing fits"] = filling.line()
    full = await clients.for_some_time(2 * ground.seconds)
    report.seen["full"] = full.line()
    state = await asyncio.to_thread(service.state)
    async with clients.at_work() as back:
        ballast.unlink()
        seconds = await asyncio.to_thread(service.wait_until, store="ok")
    report.seen["room again"] = f"{back.line()}; the store was well {seconds:.1f} s later"
    after = await clients.for_some_time(ground.seconds)
    report.seen["after"] = after.line()
    report.promises = {
        "menus are answered all the while": not any(
            seen.count("menus refused (500", "menus refused (503 store", "menus lost") for seen in (filling, full, back)
        ),
        "an outcome that cannot be kept is refused with 503": full.ended["outcomes refused (503 store_unavailable)"]
        > 0,
        "/readyz says that the store is degraded": state.get("store") == "degraded",
        "outcomes are kept again afterwards": not after.unanswered and after.ended["outcomes answered"] > 0,
        **kept(mount / "traces.db", clients),
    }
    return report


def _fill(ballast: Path) -> None:
    """Leave no room on the disk of this file."""
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (2**20, 2**12):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"\0" * size)


async def _menu(service: RunningService, goal: str) -> list[str]:
    connection = Connection(service.port)
    shown = (await connection.post("/v1/select", {"goal": goal})).json
    connection.close()
    return [entry["tool_id"] for entry in shown["menu"]]


def _swaps(service: RunningService, *, accepted: bool) -> float:
    label = f'what="selector",accepted="{str(accepted).lower()}"'
    flipped = f'accepted="{str(accepted).lower()}",what="selector"'
    metrics = service.metrics()
    return metrics.get(f"toolcrib_swaps_total{{{label}}}", metrics.get(f"toolcrib_swaps_total{{{flipped}}}", 0.0))


async def _refused_after(service: RunningService, before: float) -> float:
    """The bundles refused so far, once there are more than before, or after a minute."""
    await _until(lambda: _swaps(service, accepted=False) > before)
    return _swaps(service, accepted=False)


async def _until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until it holds, at most so long: what is claimed of it is checked by the promises."""
    for _ in range(int(seconds / 0.1)):
        if await asyncio.to_thread(holds):
            return
        await asyncio.sleep(0.1)


def _postgres_server() -> Any:
    """The module of the tests that starts a private PostgreSQL."""
    spec = importlib.util.spec_from_file_location("postgres_server", POSTGRES_SERVER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FAULTS: dict[str, Callable[[Ground], Report]] = {
    "kill": kill,
    "postgres": postgres,
    "bundle": bundle,
    "rerank": rerank,
    "disk": disk,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Break things under a running service.")
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=f"of {', '.join(FAULTS)}; all of them by default")
    parser.add_argument("--run", type=Path, required=True, help="what `toolcrib demo` wrote")
    parser.add_argument("--seconds", type=float, default=3.0, help="of one phase")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    if unknown := set(given.faults) - FAULTS.keys():
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    texts = [query.text for query in load_queries(given.run / "queries.jsonl")]
    reports: dict[str, Report] = {}
    with tempfile.TemporaryDirectory(prefix="toolcrib-faults-") as folder:
        for name in given.faults or FAULTS:
            place = Path(folder) / name
            place.mkdir()
            ground = Ground(given.run / "bundle", given.run / "catalog.jsonl", texts, place, given.seconds)
            reports[name] = FAULTS[name](ground)
            if not given.json:
                show(name, reports[name])
    if given.json:
        print(json.dumps({name: vars(report) for name, report in reports.items()}, indent=1))
    return int(not all(held for report in reports.values() for held in report.promises.values()))


def show(name: str, report: Report) -> None:
    print(f"== {name}{f': skipped: {report.skipped}' if report.skipped else ''}")
    for phase, line in report.seen.items():
        print(f"  {phase}: {line}")
    for promise, held in report.promises.items():
        print(f"  {'held  ' if held else 'BROKEN'} {promise}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

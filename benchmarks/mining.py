"""Mining at volume: synthetic lines with realistic skew; seconds, CPU seconds, peak memory, lines a second.

    python -m benchmarks.mining [--lines 100000 1000000] [--engine duckdb] [--memory-limit 2GB] [--folder DIR]

Tools and requests follow Zipf's law over 2,000 tools and 20 tenants; a trace has five calls; four calls in ten do not
simply succeed, in the ways that calls fail; after a failure that speaks of relevance the agent tries another tool for
the same goal half of the time; a menu of eight is known for four lines in five, its last entry drawn by chance; one
request in three was asked before; one line in fifty calls nothing. A log is made once and kept in DIR, where there is
one. Each size runs in a process of its own, so that its peak memory is its own; on Spark that of the JVM counts too.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from data.atomic import replacing
from data.cards import ToolCard
from data.catalog import Catalog
from data.mining.engines import Resources
from data.mining.miner import mine_to_folder

TOOLS, TENANTS, MENU, CALLS_A_TRACE, BATCH, LINES_A_FILE = 2_000, 20, 8, 5, 100_000, 1_000_000
OUTCOMES = (
    ("success", "none", 0.62),
    ("success", "empty_result", 0.08),
    ("failure", "validation", 0.07),
    ("failure", "auth", 0.03),
    ("failure", "timeout", 0.04),
    ("failure", "rate_limited", 0.03),
    ("failure", "tool_error", 0.08),
    ("unknown", "none", 0.05),
)
FAILED = 6
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("trace_id", "tenant", "goal", "tool_id", "outcome", "error_class")),
        ("step", pa.int64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("task_success", pa.bool_()),
        (
            "menu",
            pa.list_(pa.struct([("tool_id", pa.string()), ("position", pa.int32()), ("propensity", pa.float64())])),
        ),
    ]
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time mining at volume.")
    parser.add_argument("--lines", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--engine", default="duckdb")
    parser.add_argument("--memory-limit", help="DuckDB's, such as 2GB")
    parser.add_argument("--folder", type=Path, help="where to keep the synthetic logs; default: a temporary folder")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        _measure(given.one, given.engine, given.memory_limit)
        return
    print(f"engine {given.engine}; lines, MB on disk, seconds, CPU seconds, lines a second, peak MB, examples")
    with tempfile.TemporaryDirectory() as scratch:
        for lines in given.lines:
            log = (given.folder or Path(scratch)) / f"{lines}-lines"
            write_log(log, lines)
            command = [sys.executable, "-W", "ignore", "-m", "benchmarks.mining", "--engine", given.engine]
            command += ["--one", str(log)]
            command += ["--memory-limit", given.memory_limit] if given.memory_limit else []
            told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            size = sum(part.stat().st_size for part in log.iterdir()) / 2**20
            rate = lines / told["seconds"]
            figures = f"{told['seconds']:>8.1f} {told['cpu']:>8.1f} {rate:>9,.0f} {told['peak_mb']:>7,.0f}"
            print(f"{lines:>12,} {size:>8,.1f} {figures} {told['examples']:>10,}", flush=True)


def write_log(folder: Path, lines: int, seed: int = 0) -> None:
    """A folder of trace files, LINES_A_FILE rows each; the files that are there already are left as they are."""
    for number, start in enumerate(range(0, lines, LINES_A_FILE)):
        path = folder / f"part-{number:04}.parquet"
        if path.exists():
            continue
        random = np.random.default_rng([seed, number])
        end = min(start + LINES_A_FILE, lines)
        with (
            replacing(path) as fresh,
            pq.ParquetWriter(fresh, SCHEMA, compression="zstd", write_page_checksum=True) as to,
        ):
            for first in range(start, end, BATCH):
                to.write_table(_rows(random, first, min(BATCH, end - first)), row_group_size=20_000)


def catalog() -> Catalog:
    return Catalog(
        ToolCard(tool_id=f"server{n // 20}.tool_{n}", name=f"tool_{n}", domain=f"server{n // 20}") for n in range(TOOLS)
    )


def _rows(random: np.random.Generator, first: int, count: int) -> pa.Table:
    weights = 1.0 / np.arange(1, TOOLS + 1) ** 1.1
    weights /= weights.sum()
    shares = np.array([share for *_, share in OUTCOMES])
    number = np.arange(first, first + count)
    trace, step = number // CALLS_A_TRACE, number % CALLS_A_TRACE
    tool = random.choice(TOOLS, count, p=weights)
    kind = random.choice(len(OUTCOMES), count, p=shares / shares.sum())
    # a request belongs to a tool; popular wordings come again, the rest is new
    about = tool.copy()
    wording = np.where(random.random(count) < 0.33, random.zipf(1.5, count) % 50, number)
    again = np.flatnonzero((kind[:-1] == FAILED) & (step[1:] > 0) & (random.random(count - 1) < 0.5)) + 1
    about[again], wording[again] = about[again - 1], wording[again - 1]
    tenant = np.minimum(random.zipf(1.5, count), TENANTS)[(number - first) // CALLS_A_TRACE * CALLS_A_TRACE % count]
    others = random.choice(TOOLS, (count, MENU - 1), p=weights)
    offered = np.concatenate([others[:, :3], tool[:, None], others[:, 3:]], axis=1)
    chance = np.ones((count, MENU))
    chance[:, -1] = random.choice([0.02, 0.1, 0.5], count)
    ids = pa.array(catalog().ids)
    goals = [f"{name} for case {case}" for name, case in zip(_spoken(about), wording.tolist(), strict=True)]
    entries = pa.StructArray.from_arrays(
        [
            ids.take(pa.array(offered.ravel())),
            pa.array(np.tile(np.arange(MENU, dtype=np.int32), count)),
            pa.array(chance.ravel()),
        ],
        fields=list(SCHEMA.field("menu").type.value_type),
    )
    offsets = pa.array(np.arange(0, count * MENU + 1, MENU), pa.int32())
    silent = pa.array(random.random(count) < 0.02)
    rows = {
        "trace_id": pa.array([f"t{n}" for n in trace.tolist()]),
        "tenant": pa.array([f"tenant{n}" for n in tenant.tolist()]),
        "goal": pa.array(goals),
        "tool_id": pc.if_else(silent, pa.scalar(None, pa.string()), ids.take(pa.array(tool))),
        "outcome": pa.array([how for how, *_ in OUTCOMES]).take(pa.array(kind)),
        "error_class": pa.array([error for _, error, _ in OUTCOMES]).take(pa.array(kind)),
        "step": pa.array(step),
        "ts": pa.array(1_770_000_000_000_000 + number * 1_000_000).cast(SCHEMA.field("ts").type),
        "task_success": pa.array(random.random(count) < 0.8),
        "menu": pa.ListArray.from_arrays(offsets, entries, mask=pa.array(random.random(count) < 0.2)),
    }
    return pa.table([rows[name] for name in SCHEMA.names], schema=SCHEMA)


def _spoken(tools: np.ndarray) -> list[str]:
    return [f"use number {n % 20} of server {n // 20}" for n in tools.tolist()]


def _measure(log: Path, engine: str, memory_limit: str | None) -> None:
    tools = catalog()
    master = "local[2]" if engine == "spark" else None
    with tempfile.TemporaryDirectory() as scratch:
        started = time.perf_counter()
        report = mine_to_folder(
            log, tools, Path(scratch) / "mined", engine=engine, resources=Resources(memory_limit, spark_master=master)
        )
        seconds = time.perf_counter() - started
    figures = {"seconds": seconds, "examples": report.positives + report.negatives}
    print(json.dumps(figures | _used()))


def _used() -> dict[str, float]:
    """CPU seconds and peak memory of this process and of those that it started and that still run, as a JVM does."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    cpu, peak = own.ru_utime + own.ru_stime, own.ru_maxrss / 1024
    waiting = [Path("/proc/self")]
    while waiting:
        of = waiting.pop()
        for child in (pid for task in of.glob("task/*/children") for pid in task.read_text().split()):
            place = Path("/proc") / child
            waiting.append(place)
            status = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
            peak += int(status["VmHWM"].split()[0]) / 1024
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            cpu += (int(fields[11]) + int(fields[12])) / 100
    return {"cpu": cpu, "peak_mb": peak}


if __name__ == "__main__":
    main()

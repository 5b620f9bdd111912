"""Mining at volume: synthetic lines with realistic skew on DuckDB; seconds, peak memory, lines a second.

    python -m benchmarks.mining [--lines 100000 1000000 10000000] [--engine duckdb] [--folder DIR]

Tools and requests follow Zipf's law over 2,000 tools; a trace has a handful of calls; three calls in ten fail, in the
ways that calls fail; a menu of eight is known for four lines in five; one request in three was asked before. Each size
runs in a process of its own, so that its peak memory is its own.
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
import pyarrow.parquet as pq

from data.cards import ToolCard
from data.catalog import Catalog
from data.mining.miner import mine

TOOLS, MENU, CALLS_A_TRACE, BATCH = 2_000, 8, 5, 100_000
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


def main() -> None:
    parser = argparse.ArgumentParser(description="Time mining at volume.")
    parser.add_argument("--lines", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--engine", default="duckdb")
    parser.add_argument("--folder", type=Path, help="where to put the synthetic logs; default: a temporary folder")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        _measure(given.one, given.engine)
        return
    print(f"engine {given.engine}; lines, MB on disk, seconds, lines a second, peak MB, examples")
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        for lines in given.lines:
            log = Path(scratch) / f"{lines}.parquet"
            write_log(log, lines)
            command = [
                sys.executable,
                "-W",
                "ignore",
                "-m",
                "benchmarks.mining",
                "--engine",
                given.engine,
                "--one",
                str(log),
            ]
            told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            size = log.stat().st_size / 2**20
            rate = lines / told["seconds"]
            figures = f"{told['seconds']:>8.1f} {rate:>10,.0f} {told['peak_mb']:>8,.0f} {told['examples']:>9,}"
            print(f"{lines:>12,} {size:>8,.1f} {figures}", flush=True)
            log.unlink()


def write_log(path: Path, lines: int, seed: int = 0) -> None:
    """A trace file of `lines` rows, in batches."""
    random = np.random.default_rng(seed)
    ids = np.array(catalog().ids)
    weights = 1.0 / np.arange(1, TOOLS + 1) ** 1.1
    weights /= weights.sum()
    shares = np.array([share for *_, share in OUTCOMES])
    shown = pa.struct([("tool_id", pa.string()), ("position", pa.int32()), ("propensity", pa.float64())])
    columns = {
        **dict.fromkeys(("trace_id", "tenant", "goal", "tool_id", "outcome", "error_class"), pa.string()),
        "step": pa.int64(),
        "ts": pa.timestamp("us", tz="UTC"),
        "task_success": pa.bool_(),
        "menu": pa.list_(shown),
    }
    schema = pa.schema(list(columns.items()))
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for start in range(0, lines, BATCH):
            count = min(BATCH, lines - start)
            number = np.arange(start, start + count)
            tool = random.choice(TOOLS, count, p=weights)
            # a request belongs to a tool; popular wordings come again, the rest is new
            wording = np.where(random.random(count) < 0.33, random.zipf(1.5, count) % 50, number)
            kind = random.choice(len(OUTCOMES), count, p=shares / shares.sum())
            others = random.choice(TOOLS, (count, MENU - 1), p=weights)
            offered = np.concatenate([tool[:, None], others], axis=1)
            offsets = pa.array(np.arange(0, count * MENU + 1, MENU), pa.int32())
            entries = pa.StructArray.from_arrays(
                [
                    pa.array(ids[offered.ravel()]),
                    pa.array(np.tile(np.arange(MENU, dtype=np.int32), count)),
                    pa.array(np.ones(count * MENU)),
                ],
                fields=list(shown),
            )
            menus = pa.ListArray.from_arrays(offsets, entries, mask=pa.array(random.random(count) < 0.2))
            rows = {
                "trace_id": pa.array([f"t{n // CALLS_A_TRACE}" for n in number]),
                "tenant": pa.array([f"tenant{n // CALLS_A_TRACE % 20}" for n in number]),
                "goal": pa.array(
                    [f"{ids[t].replace('.', ' ')} for case {w}" for t, w in zip(tool, wording, strict=True)]
                ),
                "tool_id": pa.array(ids[tool]),
                "outcome": pa.array([OUTCOMES[k][0] for k in kind]),
                "error_class": pa.array([OUTCOMES[k][1] for k in kind]),
                "step": pa.array(number % CALLS_A_TRACE),
                "ts": pa.array(1_770_000_000_000_000 + number * 1_000_000).cast(columns["ts"]),
                "task_success": pa.array(random.random(count) < 0.8),
                "menu": menus,
            }
            writer.write_table(pa.table([rows[name] for name in schema.names], schema=schema))


def catalog() -> Catalog:
    return Catalog(
        ToolCard(tool_id=f"server{n // 20}.tool_{n}", name=f"tool_{n}", domain=f"server{n // 20}") for n in range(TOOLS)
    )


def _measure(log: Path, engine: str) -> None:
    started = time.perf_counter()
    mined = mine(log, catalog(), engine=engine)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak_mb": peak, "examples": len(mined.examples)}))


if __name__ == "__main__":
    main()

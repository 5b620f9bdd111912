"""A Spark cluster on this machine, from the classes that pyspark brings: a master and two workers, a process each."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import IO

MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
WORKERS = 2


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The master's URL, once both workers have registered. All of it is stopped afterwards."""
    with ExitStack() as running:
        url = _started(running, folder, MASTER, ["--port", "0"], r"Starting Spark master at (spark://\S+)")
        for number in range(WORKERS):
            place = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker-{number}"), url]
            _started(running, folder, WORKER, place, r"(Successfully registered) with master")
        yield url


def _started(running: ExitStack, folder: Path, what: str, options: list[str], says: str) -> str:
    import pyspark  # noqa: PLC0415 (for who asks)

    home = Path(pyspark.__file__).parent
    process = subprocess.Popen(
        [str(home / "bin" / "spark-class"), what, "--host", "127.0.0.1", "--webui-port", "0", *options],
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(folder)},
        stderr=subprocess.PIPE,
        text=True,
    )
    running.callback(process.wait)
    running.callback(process.terminate)
    assert process.stderr is not None
    told = ""
    for line in process.stderr:
        told += line
        if found := re.search(says, line):
            # whoever writes to a full pipe waits for a reader
            Thread(target=_drained, args=(process.stderr,), daemon=True).start()
            return found[1]
    raise AssertionError(f"{what} ended before it was ready:\n{told}")


def _drained(stream: IO[str]) -> None:
    for _ in stream:
        pass

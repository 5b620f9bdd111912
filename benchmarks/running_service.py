"""`toolcrib serve` as a process of its own, in its own folder: started, asked how it does, ended in several ways."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from serving.bundle import load_bundle, seal

READY_WITHIN_S = 120.0
_TICKS = os.sysconf("SC_CLK_TCK")


class NotRunningError(Exception):
    """The service did not come up; has what it wrote last."""


@dataclass
class RunningService:
    """One service on one folder: `service.yaml`, the SQLite file, the spool and the log are in it.

    `settings` is the YAML file's content, `environment` is added to this process's own. The service may be killed and
    started again, at the same port.
    """

    folder: Path
    bundle: str
    catalog: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    port: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def database(self) -> Path:
        """The SQLite file, where no other database is configured."""
        return self.folder / "traces.db"

    @property
    def log(self) -> str:
        """All that the service wrote so far."""
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> None:
        """Start it and wait until it is ready. Raises NotRunningError if it ends or takes too long."""
        self.port = self.port or _free_port()
        config = self.folder / "service.yaml"
        config.write_text(yaml.safe_dump(dict(self.settings)))
        command = [sys.executable, "-m", "toolcrib", "serve", "--dev", "--port", str(self.port)]
        command += ["--bundle", self.bundle, "--catalog", str(self.catalog), "--config", str(config)]
        with (self.folder / "log").open("ab") as log:
            environment = {**os.environ, "OMP_NUM_THREADS": "1", **self.environment}
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        ends = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < ends:
            if self.process.poll() is not None:
                break
            if self.state().get("status") == "ok":
                return
            time.sleep(0.05)
        self.kill()
        raise NotRunningError(f"the service did not start:\n{self.log[-2000:]}")

    def state(self) -> dict[str, Any]:
        """What /readyz says; empty where nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as answer:
                said: dict[str, Any] = json.loads(answer.read())
                return said
        except (urllib.error.URLError, OSError, ValueError):
            return {}

    def metrics(self) -> dict[str, float]:
        """What /metrics says, by `name{labels}`."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")}

    def wait_until(self, **expected: str) -> float:
        """Wait until /readyz says so; the seconds it took. Raises NotRunningError after two minutes."""
        started = time.monotonic()
        while time.monotonic() - started < READY_WITHIN_S:
            state = self.state()
            if all(state.get(name) == value for name, value in expected.items()):
                return time.monotonic() - started
            time.sleep(0.05)
        raise NotRunningError(f"never {expected}; at last {self.state()}")

    def cpu_seconds(self) -> float:
        """CPU time of the process so far, user and system, all threads."""
        assert self.process is not None
        after_name = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / _TICKS

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Have it end what it began."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
        if self.process is not None:
            self.process.wait(60)


@contextmanager
def running(
    folder: Path,
    bundle: str | Path,
    catalog: Path,
    settings: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[RunningService]:
    """A started service in `folder`, which is made; ended afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    service = RunningService(folder, str(bundle), catalog, settings or {}, environment=environment or {})
    try:
        service.start()
        yield service
    finally:
        service.kill()


def with_cross_encoder(bundle: Path, folder: Path) -> Path | None:
    """A copy of a bundle in `folder` whose cross-encoder serves; None where the bundle has none."""
    manifest = load_bundle(bundle).manifest
    if not manifest.reranker_graph:
        return None
    copied = copy_of(bundle, folder)
    (copied / "manifest.json").unlink()
    seal(copied, manifest.model_copy(update={"reranker": "cross_encoder"}))
    return copied


def copy_of(bundle: Path, folder: Path) -> Path:
    """A copy of a bundle that may be damaged."""
    for file in (path for path in bundle.rglob("*") if path.is_file()):
        target = folder / file.relative_to(bundle)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    return folder


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

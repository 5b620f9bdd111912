"""A PostgreSQL server of one's own: on loopback, in a temporary folder, as a user without privileges, gone afterwards.

Run as a command, it runs another with TOOLCRIB_TEST_POSTGRES set: `python postgres_server.py make test`.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

VARIABLE = "TOOLCRIB_TEST_POSTGRES"
_DEBIAN = Path("/usr/lib/postgresql")
_SETTINGS = (
    *("listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=50"),
    # the folder is thrown away, so that nothing need reach the disk; the end of a process loses nothing by it
    *("fsync=off", "full_page_writes=off", "shared_buffers=16MB"),
)


class UnavailableError(Exception):
    """No server can be started here; says why."""


class Server:
    """One server, which may be stopped and started again at the same address."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder, self._data = programs, folder, folder / "data"
        self._user = _unprivileged()
        self._password, self._port = secrets.token_hex(16), _free_port()
        self.url = f"postgresql://postgres:{self._password}@127.0.0.1:{self._port}/postgres"
        words = folder / "password"
        words.write_text(self._password)
        if self._user is not None:
            for path in (folder, words):
                os.chown(path, self._user.pw_uid, self._user.pw_gid)
        self._run(
            *("initdb", "--pgdata", str(self._data), "--username=postgres", f"--pwfile={words}"),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"),
        )
        words.unlink()

    def start(self) -> None:
        """Start, and wait until it takes connections."""
        options = " ".join(f"-c {setting}" for setting in (*_SETTINGS, f"port={self._port}"))
        self._control("start", "--log", str(self._folder / "log"), "--options", options)

    def stop(self) -> None:
        """Stop at once: whoever is connected loses the connection."""
        self._control("stop", "--mode", "immediate")

    def _control(self, *words: str) -> None:
        self._run("pg_ctl", "--pgdata", str(self._data), "--wait", "--timeout", "60", "--silent", *words)

    def _run(self, program: str, *words: str) -> None:
        who = {} if self._user is None else {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}
        command = [str(self._programs / program), *words]
        # to a file: a server that inherits a pipe would keep it open after pg_ctl has ended
        with (self._folder / "output").open("w+") as output:
            done = subprocess.run(command, cwd=self._folder, stdout=output, stderr=output, check=False, **who)  # type: ignore[call-overload]
            if done.returncode:
                output.seek(0)
                log = self._folder / "log"
                said = output.read() + (log.read_text(errors="replace") if log.exists() else "")
                raise UnavailableError(f"{program} failed: {said.strip()[-1000:]}")


@contextmanager
def private_server() -> Iterator[Server]:
    """A started server. Raises UnavailableError where none can be had."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="toolcrib-postgres-"))
    try:
        server = Server(programs, folder)
        server.start()
        try:
            yield server
        finally:
            with suppress(UnavailableError):  # a test may have stopped it already
                server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """Where initdb and pg_ctl are: on PATH, or where Debian puts them, the newest version first."""
    on_path = shutil.which("initdb")
    versions = sorted(_DEBIAN.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]), reverse=True)
    for found in ([Path(on_path).resolve()] if on_path else []) + versions:
        if (found.parent / "pg_ctl").exists():
            return found.parent
    raise UnavailableError("there is no PostgreSQL server here; install the package 'postgresql'")


def _unprivileged() -> pwd.struct_passwd | None:
    """Whom the server runs as: it refuses root, so postgres or nobody; None = as whoever runs this."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise UnavailableError("PostgreSQL does not run as root, and there is no user 'postgres' or 'nobody'")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(command: list[str]) -> int:
    """Run `command` beside a server, or without one where none can be had; its exit code."""
    if os.environ.get(VARIABLE):
        return subprocess.run(command, check=False).returncode
    try:
        with private_server() as server:
            return subprocess.run(command, env={**os.environ, VARIABLE: server.url}, check=False).returncode
    except UnavailableError as error:
        print(f"PostgreSQL's tests will be skipped: {error}", file=sys.stderr)
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A live MCP server: its tools asked for, page by page, and every way that this can fail said in one sentence."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import urlsplit

from pydantic import ValidationError

from data.catalog import Catalog
from data.errors import InputError
from data.importers.mcp import listed_page, mcp_catalog
from data.importers.report import ImportReport
from data.importers.terms import Terms
from data.invisible import escaped

if TYPE_CHECKING:
    from mcp.client import Client, Transport

DEFAULT_TIMEOUT_S = 60.0
MAX_PAGES = 1_000
MAX_TOOLS = 100_000
_SHOWN = 200
_RUNNERS_FLAGS = frozenset({"-m", "-u", "-y", "--yes", "-q", "--quiet"})


@dataclass(frozen=True)
class Server:
    """Where a server is reached: a `url` (streamable HTTP), or the `command` that starts it (stdio).

    `headers` and `environment` carry credentials; they are in no report and no error. The started server sees of
    this process's environment only what a shell needs, and `environment`. `timeout_s` bounds the whole exchange.
    """

    url: str = ""
    command: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = DEFAULT_TIMEOUT_S

    def __post_init__(self) -> None:
        if bool(self.url) == bool(self.command):
            raise InputError("a server has either an address or a command that starts it")
        if self.url and urlsplit(self.url).scheme not in {"http", "https"}:
            raise InputError("a server's address starts with http:// or https://", source=self.shown)

    @property
    def shown(self) -> str:
        """The server as reports name it: of an address and of a command no part that may be a credential."""
        if self.command:
            return " ".join([Path(self.command[0]).name, *self._script])
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def name(self) -> str:
        """A name where none is given: the host's, or that of the program's file."""
        if self.url:
            return urlsplit(self.url).hostname or "server"
        return Path(next(iter(self._script), self.command[0])).stem

    @property
    def _script(self) -> list[str]:
        """What an interpreter or a package runner is told to run; the arguments of that are nobody's business."""
        rest = itertools.dropwhile(lambda word: word in _RUNNERS_FLAGS, self.command[1:])
        return [word for word in itertools.islice(rest, 1) if not word.startswith("-")]


def read_live(server: Server, terms: Terms) -> tuple[Catalog, ImportReport]:
    """The tools that the server lists now; ids and risks as of a saved answer.

    Raises InputError for a server that cannot be started or reached, that does not answer in time, ends the
    connection, or answers with an error or with something that is no list of tools.
    """
    pages = fetch_pages(server)
    return mcp_catalog(pages, server.shown, terms.server if terms.server is not None else server.name, terms)


def fetch_pages(server: Server) -> list[dict[str, Any]]:
    """Every page of the server's `tools/list`, as the protocol's JSON. Raises as `read_live`."""
    import anyio

    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        try:
            return anyio.run(_fetch, server, said)
        except Exception as error:  # whatever a foreign server makes the protocol's library raise
            first = _first(error)
            if isinstance(first, InputError):
                raise first from None
            raise _explained(first, server, _last_line(said)) from error


async def _fetch(server: Server, said: TextIO) -> list[dict[str, Any]]:
    import anyio
    from mcp.client import Client

    garbage: list[Exception] = []

    async def note(message: object) -> None:
        if isinstance(message, Exception):
            garbage.append(message)

    async with AsyncExitStack() as stack:
        try:
            with anyio.fail_after(server.timeout_s):
                transport = await _transport(server, said, stack)
                # a server of before the probe for its version may leave it unanswered; then it is asked the old way
                patience = server.timeout_s / 3
                async with Client(transport, message_handler=note, cache=None, read_timeout_seconds=patience) as client:
                    return await _pages(client, server)
        except Exception as error:
            if garbage:
                problem = "what it answers is not the protocol's JSON"
                raise InputError(problem, source=server.shown, hint="is it an MCP server?") from error
            raise


async def _transport(server: Server, said: TextIO, stack: AsyncExitStack) -> Transport:
    if server.command:
        from mcp.client.stdio import StdioServerParameters, stdio_client

        program, *arguments = server.command
        environment = dict(server.environment)
        return stdio_client(StdioServerParameters(command=program, args=arguments, env=environment), errlog=said)
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    timeout = httpx2.Timeout(server.timeout_s)
    http = await stack.enter_async_context(httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout))
    return streamable_http_client(server.url, http_client=http)


async def _pages(client: Client, server: Server) -> list[dict[str, Any]]:
    pages: list[dict[str, Any]] = []
    cursor: str | None = None
    seen: set[str] = set()
    tools = 0
    while True:
        listed = await client.list_tools(cursor=cursor)
        pages.append(listed_page(listed.tools, client))
        tools += len(listed.tools)
        cursor = listed.next_cursor
        if cursor is None:
            return pages
        if cursor in seen or len(pages) >= MAX_PAGES or tools > MAX_TOOLS:
            problem = f"its list of tools does not end ({len(pages):,} pages, {tools:,} tools)"
            raise InputError(problem, source=server.shown)
        seen.add(cursor)


def _first(error: BaseException) -> BaseException:
    """The first error inside the groups that several tasks at once make of one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _explained(error: BaseException, server: Server, last_said: str) -> InputError:
    heard = f"; it said: {last_said}" if last_said else ""
    if isinstance(error, TimeoutError) or "timed out" in str(error).lower():
        problem, hint = f"did not answer within {server.timeout_s:g} s", "is it the right address or command?"
    elif isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError) and server.command:
        problem, hint = f"cannot be started: {error.strerror}", "check the command"
    elif "connection closed" in str(error).lower():
        problem, hint = "ended before it had listed its tools", ""
    elif isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        problem, hint = f"its answer is not a list of tools: {_safe(field)}: {_safe(first['msg'])}", ""
    else:
        problem, hint = f"cannot be asked for its tools: {_safe(str(error) or type(error).__name__)}", ""
    return InputError(f"{problem}{heard}", source=server.shown, hint=hint)


def _last_line(said: TextIO) -> str:
    said.seek(0)
    lines = [line.strip() for line in said.read()[-20_000:].splitlines() if line.strip()]
    return _safe(lines[-1]) if lines else ""


def _safe(text: str) -> str:
    shown = escaped(" ".join(text.split()))
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."

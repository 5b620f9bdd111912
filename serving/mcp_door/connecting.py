"""Connecting: a client for a server by stdio or streamable HTTP, with the credentials of the moment."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2
from mcp.client import Client, Transport
from mcp.client.session import MessageHandlerFnT
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from data.importers.live import Server
from serving.mcp_door.credentials import Credentials
from serving.mcp_door.settings import UpstreamSettings
from serving.mcp_door.upstream import Connect

_PROBE_SHARE = 1 / 3
"""Of the time that a server has, for the question which protocol it speaks: an old one may leave it unanswered."""


def connector(settings: UpstreamSettings, credentials: Credentials) -> Connect:
    """Opens connections to the server; a credential that changed is taken as it is at the next one.

    What a started server writes to its stderr is dropped: nobody can say what is in it.
    """

    @asynccontextmanager
    async def connect(heard: MessageHandlerFnT) -> AsyncIterator[Client]:
        server = credentials.server(settings)
        async with AsyncExitStack() as stack:
            transport = await _transport(server, stack)
            patience = server.timeout_s * _PROBE_SHARE
            probing = Client(transport, message_handler=heard, cache=None, read_timeout_seconds=patience)
            yield await stack.enter_async_context(probing)

    return connect


async def _transport(server: Server, stack: AsyncExitStack) -> Transport:
    if server.command:
        program, *arguments = server.command
        said = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (the stack closes it)
        parameters = StdioServerParameters(command=program, args=arguments, env=dict(server.environment))
        return stdio_client(parameters, errlog=said)
    # every request has a bound of its own; a stream of changes may be silent for as long as nothing changes
    patience = httpx2.Timeout(server.timeout_s, read=None)
    http = await stack.enter_async_context(httpx2.AsyncClient(headers=dict(server.headers), timeout=patience))
    return streamable_http_client(server.url, http_client=http)

"""HTTP: the door under `/mcp` beside the service's own routes, every request of it by somebody who is let in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST
from sse_starlette.sse import AppStatus
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from serving.door.assembly import Assembly
from serving.door.errors import DoorError, as_json
from serving.door.identity import Authenticator, Identity, is_loopback
from serving.mcp_door.running import McpDoor
from serving.mcp_door.server import Context

PATH = "/mcp"
_IDENTITY = "toolcrib.identity"
_LOCAL_HOSTS = ["127.0.0.1:*", "localhost:*", "[::1]:*"]


def identity_of_request(context: Context) -> Identity:
    """Who sent the HTTP request that this one came in."""
    found = getattr(context.request, "scope", {}).get(_IDENTITY)
    if not isinstance(found, Identity):
        raise MCPError(INVALID_REQUEST, "who asks cannot be told")
    return found


class Identified:
    """ASGI middleware: lets in whom the authenticator knows. A session is its beginner's alone."""

    def __init__(self, app: ASGIApp, authenticator: Authenticator) -> None:
        self._app, self._authenticator = app, authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        client = request.client.host if request.client is not None else ""
        try:
            identity = await anyio.to_thread.run_sync(self._authenticator.identify, request.headers, client)
        except DoorError as error:
            refusal = JSONResponse(as_json(error), status_code=error.status, headers=dict(error.headers))
            await refusal(scope, receive, send)
            return
        who = identity.caller
        token = AccessToken(token="", client_id=who.tenant, subject=who.principal, scopes=[])
        # the session manager compares the user of a request with the one who began the session
        await self._app({**scope, _IDENTITY: identity, "user": AuthenticatedUser(token)}, receive, send)


def application(door: McpDoor, assembly: Assembly, authenticator: Authenticator, host: str) -> Starlette:
    """The whole application: the door under `/mcp`, and the service's routes, by which a person may confirm.

    Under a loopback `host`, requests must name this machine: a web page of elsewhere has no business here.
    """
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=is_loopback(host),
        allowed_hosts=_LOCAL_HOSTS,
        allowed_origins=[f"http://{local}" for local in _LOCAL_HOSTS],
    )
    sessions = StreamableHTTPSessionManager(door.server.protocol, security_settings=security)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        async with assembly.running(), door.running(), sessions.run():
            yield

    mcp = Identified(StreamableHTTPASGIApp(sessions), authenticator)
    return Starlette(routes=[Route(PATH, mcp), Mount("/", assembly.application())], lifespan=life)


def keep_streams() -> None:
    """Let streams go on while the server lingers: left alone, they are cut by the first signal, answers and all."""
    AppStatus.enable_automatic_graceful_drain = False


def end_streams() -> None:
    """End this process's streams, for good."""
    AppStatus.should_exit = True

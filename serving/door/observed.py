"""Every request seen: one span, one metric, one log line, and no error that leaves as a bare traceback."""

from __future__ import annotations

import logging
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.door.errors import INTERNAL, DoorError, as_json
from serving.door.logs import access
from serving.door.metrics import Metrics
from serving.door.spans import span

_LOG = logging.getLogger("toolcrib.door")


class Observed:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0
        fields: dict[str, Any] = scope.setdefault("state", {}).setdefault("fields", {})

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with span(scope["method"], {"http.request.method": scope["method"]}) as current:
            scope["state"]["span"] = current
            try:
                await self._app(scope, receive, noting)
            except Exception:
                _LOG.exception("a request failed")
                if status == 0:
                    await internal_error()(scope, receive, noting)
            route = _route_of(scope)
            current.update_name(f"{scope['method']} {route}")
            current.set_attributes({"http.route": route, "http.response.status_code": status})
        seconds = time.perf_counter() - started
        self._metrics.answered(route, status, seconds)
        access(route, status, seconds * 1000, fields)


def _route_of(scope: Scope) -> str:
    """The pattern of the route that was taken, so that ids make no new label; `unmatched` where none was."""
    route = scope.get("route")
    return str(getattr(route, "path_format", "") or getattr(route, "path", "")) or "unmatched"


def internal_error() -> JSONResponse:
    """What a caller sees of a failure that is ours: nothing of it."""
    error = DoorError(500, INTERNAL, "the service failed to answer", hint="try again; the operator's log has the cause")
    return JSONResponse(as_json(error), status_code=500)


def note(request: Request, **fields: Any) -> None:
    """Add fields to the request's log line and, where they are plain, to its span."""
    request.state.fields.update(fields)

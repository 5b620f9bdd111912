"""The HTTP application: routes, one form of error, one document. What it decides with is given to it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from data.errors import InputError
from serving.door import agent_routes, health_routes, operator_routes, otlp_routes
from serving.door.crowd import Crowd
from serving.door.errors import (
    CODES,
    INVALID_REQUEST,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    DoorError,
    answered,
    overloaded,
)
from serving.door.observed import Observed
from serving.door.requests import Door
from serving.pool import LateError, OverloadedError
from serving.service.errors import ServiceError

_LOG = logging.getLogger("toolcrib.door")

_DESCRIPTION = """Menus of tools for an agent, and a gate for its calls.

A turn: `POST /v1/select` for a menu, `POST /v1/check` before a call, `POST /v1/outcomes` after it. Every error has one
form: `{"error": {"code", "message", "path", "hint"}}`.
"""


Hook = Callable[[], Awaitable[None]]

_STORE_AGAIN_S = "5"
"""After how many seconds to come back to a store that was out of reach."""


def create_app(door: Door, *, started: Hook | None = None, stopped: Hook | None = None) -> FastAPI:
    """The application on `door`. `started` and `stopped` are awaited around its life."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        if started is not None:
            await started()
        yield
        if stopped is not None:
            await stopped()

    app = FastAPI(
        title="toolcrib",
        version="1",
        description=_DESCRIPTION,
        lifespan=life,
        docs_url="/docs",
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.door = door
    for routes in (agent_routes, operator_routes, health_routes):
        app.include_router(routes.router, responses=_error_responses() if routes is not health_routes else {})
    if door.intake is not None:
        app.include_router(otlp_routes.router)
    app.add_exception_handler(DoorError, _refused)
    app.add_exception_handler(ServiceError, _refused_by_service)
    app.add_exception_handler(InputError, _bad_input)
    app.add_exception_handler(OverloadedError, _overloaded)
    app.add_exception_handler(LateError, _overloaded)
    app.add_exception_handler(RequestValidationError, _bad_parameter)
    app.add_exception_handler(HTTPException, _bad_route)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    app.add_middleware(Observed, metrics=door.metrics)
    app.add_middleware(Crowd, max_wait_ms=door.pool.max_wait_ms, refused=door.metrics.turned_away)
    return app


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, DoorError)
    return answered(error)


async def _refused_by_service(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ServiceError)
    status = CODES[error.code][0]
    headers = {"Retry-After": _STORE_AGAIN_S} if status == 503 else {}
    return answered(DoorError(status, error.code, error.message, error.path, error.hint, headers))


async def _bad_input(_: Request, error: Exception) -> JSONResponse:
    """What the decision refuses of its input: a blank goal, say."""
    assert isinstance(error, InputError)
    path = f"$.{error.field}" if error.field else ""
    return answered(DoorError(422, "invalid_body", f"{path or 'the body'}: {error.problem}", path, error.hint))


async def _overloaded(_: Request, error: Exception) -> JSONResponse:
    seconds = error.retry_after_s if isinstance(error, OverloadedError) else 1
    return answered(overloaded(seconds))


async def _bad_parameter(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    return answered(DoorError(422, "invalid_body", f"{name}: {first['msg']}", name, "see GET /openapi.json"))


async def _bad_route(request: Request, error: Exception) -> JSONResponse:
    """No such path, or not with this method."""
    assert isinstance(error, HTTPException)
    code, message = {
        404: (NOT_FOUND, "nothing is served under this path"),
        405: (METHOD_NOT_ALLOWED, "the path is served, with another method"),
    }.get(error.status_code, (INVALID_REQUEST, "the request cannot be served"))
    return answered(
        DoorError(error.status_code, code, message, hint="see GET /openapi.json", headers=error.headers or {})
    )


def _error_responses() -> dict[int | str, dict[str, Any]]:
    """One entry a status for the document."""
    meanings: dict[int, list[str]] = {}
    for code, (status, meaning) in CODES.items():
        meanings.setdefault(status, []).append(f"`{code}`: {meaning}")
    schema = {"$ref": "#/components/schemas/Error"}
    return {
        status: {"description": "; ".join(said), "content": {"application/json": {"schema": schema}}}
        for status, said in sorted(meanings.items())
    }


def _document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document: the schemas of bodies, which the routes read themselves, join the others."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    text = {"type": "string"}
    fields = {"code": {"type": "string", "enum": sorted(CODES)}, "message": text, "path": text, "hint": text}
    inner = {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}
    schemas["Error"] = {
        "type": "object",
        "properties": {"error": inner},
        "required": ["error"],
        "additionalProperties": False,
    }
    for path, item in made["paths"].items():
        for operation in item.values():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is not None:
                schemas.update(body["schema"].pop("$defs", {}))
            if path.startswith("/v1"):
                operation["security"] = [{"bearer": []}, {"key": []}]
    made["components"]["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    }
    app.openapi_schema = made
    return made

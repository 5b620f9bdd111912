"""The route of instrumented agents: spans in, by OTLP/HTTP."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from serving.door.errors import NOT_PERMITTED, DoorError, overloaded
from serving.door.observed import note
from serving.door.otlp_body import document_of, failure, kind_of, success, too_large
from serving.door.requests import DoorOf, Who

_AT_ONCE = 8
"""Requests that are read and kept at the same time: bounds the memory that their bodies take."""


class OtlpRoute(APIRoute):
    """A route whose refusals have the form that OTLP's senders read."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, with refusals worded for the sender."""
        handler = super().get_route_handler()

        async def worded(request: Request) -> Response:
            try:
                return await handler(request)
            except DoorError as error:
                kind = kind_of(request.headers.get("content-type"))
                if kind is None:
                    raise
                return failure(kind, error)

        return worded


router = APIRouter(prefix="/v1", route_class=OtlpRoute)

_BODY = {"schema": {"type": "object"}, "examples": {"example": {"value": {"resourceSpans": []}}}}
_DOCUMENTED = {"requestBody": {"required": True, "content": {"application/json": _BODY, "application/x-protobuf": {}}}}


@router.post("/traces", openapi_extra=_DOCUMENTED, response_class=Response)
async def traces(request: Request, door: DoorOf, identity: Who) -> Response:
    """Spans of agents, as OTLP/HTTP sends them. Only for credentials with `may_send_spans`.

    What is acknowledged survives a crash of the service, and becomes traces once its trace is whole.
    """
    intake = door.intake
    assert intake is not None
    if not identity.may_send_spans:
        raise DoorError(
            403, NOT_PERMITTED, "this credential may not send spans", hint="use one with 'may_send_spans: true'"
        )
    if intake.inside >= _AT_ONCE:
        raise overloaded(1)
    with intake.one_inside():
        limit = intake.settings.request_bytes
        document = await run_in_threadpool(document_of, await _raw(request, limit), request.headers, limit)
        taken = await intake.take(identity.caller, document)
    note(request, spans=taken.accepted, rejected=taken.rejected.total())
    kind = kind_of(request.headers.get("content-type"))
    assert kind is not None  # else `document_of` would have refused
    return success(kind, taken.rejected)


async def _raw(request: Request, limit: int) -> bytes:
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > limit:
            raise too_large(limit)
    return bytes(raw)

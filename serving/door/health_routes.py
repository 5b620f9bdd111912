"""The routes of whoever runs the service: alive, ready, metrics. They need no credential and tell no secret."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from starlette.responses import JSONResponse, PlainTextResponse

from serving.door.requests import DoorOf

router = APIRouter()


_STATES = {
    "status": "ok",
    "catalog": "5f1c9a72d0e84b36",
    "bundle": "a83e10c4b7f2966d",
    "policy": "0d4b7e91c25fa386",
    "store": "ok",
}


def _example(value: Any, kind: str = "application/json") -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {kind: {"example": value}}}}


@router.get("/healthz", responses=_example({"status": "ok"}))
async def alive() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz", responses={**_example(_STATES), 503: {"description": "Draining.", "model": dict[str, str]}})
async def ready(door: DoorOf) -> JSONResponse:
    """Whether requests should be sent here, and what serves. A store that is down degrades and does not stop."""
    status = "draining" if door.draining else "ok"
    body = {
        "status": status,
        "catalog": door.service.versions.catalog,
        "bundle": door.service.versions.bundle,
        "policy": door.service.versions.policy,
        "store": door.service.store_state,
    }
    return JSONResponse(body, status_code=503 if door.draining else 200)


@router.get("/metrics", response_class=PlainTextResponse, responses=_example("toolcrib_pool_depth 0.0", "text/plain"))
async def metrics(door: DoorOf) -> Response:
    """Prometheus metrics."""
    return Response(door.metrics.exposition(), media_type=door.metrics.content_type)

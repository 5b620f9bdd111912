"""The routes of whoever runs the service: alive, ready, metrics. They need no credential and tell no secret."""

from __future__ import annotations

from fastapi import APIRouter, Response
from starlette.responses import JSONResponse

from serving.door.requests import DoorOf

router = APIRouter()


@router.get("/healthz")
async def alive() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz", responses={503: {"description": "Draining, or nothing is loaded."}})
async def ready(door: DoorOf) -> JSONResponse:
    """Whether requests should be sent here. A store that is down degrades the service and does not stop it."""
    status = "draining" if door.draining else "ok"
    body = {
        "status": status,
        "catalog": door.service.versions.catalog,
        "bundle": door.service.versions.bundle,
        "policy": door.service.versions.policy,
        "store": door.service.store_state,
    }
    return JSONResponse(body, status_code=503 if door.draining else 200)


@router.get("/metrics", response_class=Response)
async def metrics(door: DoorOf) -> Response:
    """Prometheus metrics."""
    return Response(door.metrics.exposition(), media_type=door.metrics.content_type)

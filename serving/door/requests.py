"""What every route reads of a request: who asks, and a body within its bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from serving.door.body import BodyLimits, read_json, validated
from serving.door.errors import INVALID_BODY, NOT_PERMITTED, TOO_LARGE, DoorError
from serving.door.identity import Authenticator, Identity, is_token
from serving.door.intake import Intake
from serving.door.metrics import Metrics
from serving.door.observed import note
from serving.door.wire_fields import Body
from serving.pool import Pool
from serving.remote_splitter import Split
from serving.service.service import Service

B = TypeVar("B", bound=Body)

_MAX_NAME = 64


@dataclass
class Door:
    """What the routes work with. `split` gives the steps of a text; `pool` runs what encodes; `intake` takes spans,
    where they are taken; `draining`: no more requests should be sent here."""

    service: Service
    authenticator: Authenticator
    metrics: Metrics
    limits: BodyLimits
    pool: Pool
    split: Callable[[str], Split]
    intake: Intake | None = None
    draining: bool = False


async def door_of(request: Request) -> Door:
    """The door of the application that the request came in by."""
    door: Door = request.app.state.door
    return door


DoorOf = Annotated[Door, Depends(door_of)]


async def identity_of(request: Request, door: DoorOf) -> Identity:
    """Who asks. Raises DoorError 401 without a valid credential."""
    client, identify = request.client.host if request.client is not None else "", door.authenticator.identify
    if is_token(request.headers):  # its issuer may be asked for keys, and may take its time
        identity = await run_in_threadpool(identify, request.headers, client)
    else:
        identity = identify(request.headers, client)
    note(request, identity=identity.name, tenant=identity.caller.tenant)
    return identity


Who = Annotated[Identity, Depends(identity_of)]


async def operator_of(identity: Who) -> Identity:
    """Who asks, an operator. Raises DoorError 403 for anybody else."""
    if not identity.operator:
        raise DoorError(403, NOT_PERMITTED, "this is for operators", hint="use a credential with 'operator: true'")
    return identity


Operator = Annotated[Identity, Depends(operator_of)]


async def known_query(request: Request, _: Who) -> None:
    """Raises DoorError 422 for a query parameter that the route does not have, or that is there more than once."""
    known = {field.alias for field in request.scope["route"].dependant.query_params}
    seen: set[str] = set()
    for name, _value in request.query_params.multi_items():
        if name not in known or name in seen:
            place = f"query.{name[:_MAX_NAME]}" if name.isascii() and name.isprintable() else "query"
            said = "is there more than once" if name in seen else "is no parameter of this route"
            hint = f"it takes {', '.join(sorted(known))}" if known else "it takes none; the body says what is wanted"
            raise DoorError(422, INVALID_BODY, f"{place}: {said}", place, hint)
        seen.add(name)


async def body_of(request: Request, model: type[B], limits: BodyLimits) -> B:
    """The request's JSON body. Raises DoorError that names the first field at fault, 413 for one that is too large."""
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > limits.body_bytes:
            raise DoorError(
                413, TOO_LARGE, f"the body is over {limits.body_bytes} bytes", hint="send less, or in several requests"
            )
    return validated(model, read_json(bytes(raw), request.headers.get("content-type"), limits))


def documented(model: type[Body], example: dict[str, Any]) -> dict[str, Any]:
    """The request body of a route for the OpenAPI document; the body itself is read by `body_of`."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schema, "examples": {"example": {"value": example}}}},
        }
    }

"""The routes of an agent's turn: select, describe, check, confirm, outcomes, observations, rerank."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.concurrency import run_in_threadpool

from data.errors import InputError
from data.wire_names import wire_name
from serving.door import examples
from serving.door.errors import INVALID_BODY, NOT_PERMITTED, DoorError
from serving.door.grants import VISIBLE, is_name
from serving.door.narrowing import CallerBody, narrow
from serving.door.observed import note
from serving.door.requests import Door, DoorOf, Who, body_of, documented, known_query
from serving.door.spans import CONVERSATION, OPERATION, SLICE, TOOL, stage_events
from serving.door.translate import answer, ask_of, caller_of, checked, detail, outcomes_of, said_in, split_up
from serving.door.wire_calls import (
    CheckAnswer,
    CheckBody,
    ConfirmAnswer,
    ConfirmBody,
    ObservationAnswer,
    ObservationBody,
    OutcomesAnswer,
    OutcomesBody,
    RangeAnswer,
    StoredOutcome,
)
from serving.door.wire_fields import Id
from serving.door.wire_menus import DescribeAnswer, DescribeBody, SelectAnswer, SelectBody
from serving.door.wire_rerank import RerankAnswer, RerankBody, RerankResult
from serving.gate.gate import NOT_AVAILABLE, UNKNOWN_SLICE

T = TypeVar("T")

router = APIRouter(prefix="/v1", dependencies=[Depends(known_query)])


@router.post("/select", openapi_extra=documented(SelectBody, examples.SELECT))
async def select(request: Request, door: DoorOf, identity: Who) -> SelectAnswer:
    """A menu for one step, for several, for a conversation, or anew after a call that failed."""
    body = await body_of(request, SelectBody, door.limits)
    _within_limits(body, door)
    who, service = caller_of(identity, body), door.service
    ask = ask_of(body, who)
    if body.split and len(ask.subgoals) == 1:
        ask = split_up(ask, await run_in_threadpool(door.split, ask.subgoals[0].goal))  # a model may be asked
    known = service.known(ask)
    try:
        made = known if known is not None else await _off_the_loop(door, service.decide, ask)
    except InputError as error:
        raise InputError(error.problem, field=said_in(body, error.field), hint=error.hint) from error
    decided = await service.kept(ask, made)
    found = decided.found
    note(request, slice=found.slice_id, cached=decided.cached)
    span = request.state.span
    span.set_attributes({OPERATION: "select", SLICE: found.slice_id, "toolcrib.menu.size": len(found.menu)})
    if body.trace_id:
        span.set_attribute(CONVERSATION, body.trace_id)
    stage_events(span, found.timings_ms)
    return answer(decided, service.catalog, body.level, body.format)


@router.post("/describe", openapi_extra=documented(DescribeBody, examples.DESCRIBE))
async def describe(request: Request, door: DoorOf, identity: Who) -> DescribeAnswer:
    """More about a tool that a slice has shown, as far as the caller may still see it."""
    body = await body_of(request, DescribeBody, door.limits)
    who = narrow(identity, body.caller)
    card = await run_in_threadpool(door.service.describe, who, body.slice_id, body.tool_id)
    return DescribeAnswer(
        tool_id=card.tool_id,
        wire_name=wire_name(card.tool_id),
        level=body.level,
        format=body.format,
        content=detail(card, body.level, body.format),
    )


@router.post("/check", openapi_extra=documented(CheckBody, examples.CHECK))
async def check(request: Request, door: DoorOf, identity: Who) -> CheckAnswer:
    """The gate: whether this very call may be made now. Ask before every call, also of a tool shown just before."""
    body = await body_of(request, CheckBody, door.limits)
    who = narrow(identity, body.caller)
    result = await run_in_threadpool(door.service.check, who, body.slice_id, body.tool_id, body.arguments, body.ticket)
    note(request, verdict=result.verdict, rule=result.rule)
    request.state.span.set_attribute(OPERATION, "execute_tool")
    if result.rule != UNKNOWN_SLICE:  # else it is whatever was sent
        note(request, slice=body.slice_id)
        request.state.span.set_attribute(SLICE, body.slice_id)
        if result.rule != NOT_AVAILABLE:
            request.state.span.set_attribute(TOOL, body.tool_id)
    return checked(result)


@router.post("/confirm", openapi_extra=documented(ConfirmBody, examples.CONFIRM))
async def confirm(request: Request, door: DoorOf, identity: Who) -> ConfirmAnswer:
    """What a person decided about a call that waits. Only for credentials with `may_confirm`."""
    body = await body_of(request, ConfirmBody, door.limits)
    if not identity.may_confirm:
        raise DoorError(403, NOT_PERMITTED, "this credential may not confirm", hint="use one with 'may_confirm: true'")
    who = narrow(identity, body.caller)
    approve = body.decision == "approve"
    tool_id, expires = await run_in_threadpool(
        door.service.confirm, who, body.ticket, approve, identity.name, body.note
    )
    return ConfirmAnswer(state="approved" if approve else "refused", tool_id=tool_id, expires=expires.isoformat())


@router.post("/outcomes", openapi_extra=documented(OutcomesBody, examples.OUTCOMES))
async def outcomes(request: Request, door: DoorOf, identity: Who) -> OutcomesAnswer:
    """What became of calls. Each line of the answer is kept, and survives a crash of the service."""
    body = await body_of(request, OutcomesBody, door.limits)
    who = narrow(identity, body.caller)
    stored = await door.service.report(who, outcomes_of(body, who, datetime.now(UTC)))
    return OutcomesAnswer(
        results=[StoredOutcome(key=given.key, stored=place) for given, place in zip(body.outcomes, stored, strict=True)]
    )


@router.post("/observations", openapi_extra=documented(ObservationBody, examples.OBSERVATION))
async def observe(request: Request, door: DoorOf, identity: Who) -> ObservationAnswer:
    """Keep a tool's result; the beginning comes back for the model, with a handle to the rest."""
    body = await body_of(request, ObservationBody, door.limits)
    who = narrow(identity, body.caller)
    kept = await run_in_threadpool(
        functools.partial(
            door.service.observe,
            who,
            body.content,
            slice_id=body.slice_id,
            tool_id=body.tool_id,
            media_type=body.media_type,
            cap_characters=body.cap_characters,
        )
    )
    return ObservationAnswer(handle=kept.handle, text=kept.text, size=kept.size, truncated=kept.truncated)


@router.get("/observations/{handle}")
async def observation(
    door: DoorOf,
    identity: Who,
    handle: Annotated[Id, Path(examples=["Zr0pFgoJ5lyTTk7hQ7lNQ2Mx"])],
    principal: Annotated[
        str | None, Query(min_length=1, max_length=256, json_schema_extra={"pattern": VISIBLE})
    ] = None,
    start: Annotated[int, Query(ge=0, le=1_000_000_000, examples=[4000])] = 0,
    length: Annotated[int | None, Query(ge=1, le=100_000, examples=[2000])] = None,
) -> RangeAnswer:
    """A range of a kept result, in characters. `principal`: for whom it was kept, where that is not the credential."""
    if principal is not None and not is_name(principal):
        raise DoorError(
            422, INVALID_BODY, "query.principal: no name of a principal", "query.principal", "as in `caller`"
        )
    who = narrow(identity, CallerBody(principal=principal))
    part = await run_in_threadpool(door.service.observation, who, handle, start, length)
    return RangeAnswer(
        handle=part.handle, text=part.text, start=part.start, end=part.end, size=part.size, media_type=part.media_type
    )


@router.post("/rerank", openapi_extra=documented(RerankBody, examples.RERANK))
async def rerank(request: Request, door: DoorOf, identity: Who) -> RerankAnswer:
    """Documents in the order of their relevance to a query, by the bundle's cross-encoder."""
    body = await body_of(request, RerankBody, door.limits)
    texts = [given if isinstance(given, str) else given.text for given in body.documents]
    found = await _off_the_loop(door, door.service.rerank, body.query, texts, body.top_n)
    results = [
        RerankResult(
            index=one.index,
            relevance_score=one.relevance,
            document={"text": texts[one.index]} if body.return_documents else None,
        )
        for one in found
    ]
    return RerankAnswer(id=f"rerank-{id(request):x}", model=door.service.versions.bundle, results=results)


async def _off_the_loop(door: Door, run: Callable[..., T], *given: object) -> T:
    """Run what encodes on the bounded pool. Raises OverloadedError at once where it would wait too long."""
    return await asyncio.wrap_future(door.pool.submit(functools.partial(run, *given)))


def _within_limits(body: SelectBody, door: Door) -> None:
    """The configured bounds, which may be tighter than the wire's own."""
    if body.subgoals is not None and len(body.subgoals) > door.limits.subgoals:
        raise DoorError(
            422,
            INVALID_BODY,
            f"$.subgoals: {len(body.subgoals)} steps; at most {door.limits.subgoals} are taken at once",
            path="$.subgoals",
            hint="ask for the next steps only",
        )
    texts = [("$.goal", body.goal), ("$.search.query", body.search.query if body.search else None)]
    texts += [(f"$.subgoals[{i}].goal", part.goal) for i, part in enumerate(body.subgoals or ())]
    texts += [(f"$.messages[{i}].content", part.content) for i, part in enumerate(body.messages or ())]
    for path, text in texts:
        if text is not None and len(text) > door.limits.text_characters:
            raise DoorError(
                422,
                INVALID_BODY,
                f"{path}: over {door.limits.text_characters} characters",
                path=path,
                hint="give the step, not its material",
            )

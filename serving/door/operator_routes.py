"""The routes of an operator: a whole slice, and why a tool was or was not on it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from starlette.concurrency import run_in_threadpool

from serving.door.identity import Identity
from serving.door.requests import DoorOf, Operator, known_query
from serving.door.translate import versions
from serving.door.wire_fields import Id, ToolId
from serving.door.wire_menus import ExplainAnswer, StageFate

router = APIRouter(prefix="/v1", dependencies=[Depends(known_query)])


@router.get("/slices/{slice_id}")
async def whole_slice(
    door: DoorOf, operator: Operator, slice_id: Annotated[Id, Path(examples=["0123456789abcdef"])]
) -> dict[str, Any]:
    """A decision with the record of its stages. It names tools that its caller may not know of."""
    handed = await run_in_threadpool(door.service.recorded, slice_id, _tenant(operator))
    return {
        "tenant": handed.tenant,
        "principal": handed.principal,
        "slice": handed.found.model_dump(mode="json"),
    }


@router.get("/explain")
async def explain(
    door: DoorOf,
    operator: Operator,
    slice: Annotated[Id, Query(examples=["0123456789abcdef"])],
    tool: Annotated[ToolId, Query(examples=["shop.refund"])],
) -> ExplainAnswer:
    """Why a tool was or was not on the menu of a slice, from what was recorded then."""
    found, why = await run_in_threadpool(door.service.explain, slice, tool, _tenant(operator))
    return ExplainAnswer(
        slice_id=slice,
        tool_id=tool,
        shown=why.entry is not None,
        verdict=why.entry.verdict if why.entry is not None else None,
        rule=why.entry.rule if why.entry is not None else "",
        stages=[StageFate(stage=s.stage, fate=s.fate, rule=s.rule, score=s.score) for s in why.stages],
        summary=why.summary,
        versions=versions(found),
    )


def _tenant(operator: Identity) -> str | None:
    """The tenant whose slices an operator may read; an operator of no tenant reads all."""
    return operator.caller.tenant or None

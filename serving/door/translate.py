"""Between wire models and nouns: bodies into asks, slices into answers."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from data.card_text import query_text
from data.cards import ToolCard
from data.catalog import Catalog
from data.context import Caller, Recent, Subgoal
from data.store.records import OutcomeRecord
from data.wire_names import wire_name
from serving.disclosure import Format, Level, render
from serving.door.identity import Identity
from serving.door.narrowing import narrow
from serving.door.wire_calls import ArgumentProblem, CheckAnswer, OutcomesBody
from serving.door.wire_menus import (
    Advice,
    Degraded,
    MenuParts,
    MessageBody,
    Recovered,
    SelectAnswer,
    SelectBody,
    Shown,
    Step,
    SubgoalBody,
    Versions,
)
from serving.gate.gate import CheckResult
from serving.remote_splitter import Split
from serving.service.asking import Ask, Decided, Failed
from serving.several import subgoals_of
from serving.slice import Abstention, Degradation, MenuEntry, Slice

_STABLE = ("core", "used")
"""Reasons to be on the menu that hold from turn to turn."""


def caller_of(identity: Identity, body: SelectBody) -> Caller:
    """The caller of a select: what the credential grants, narrowed, with the state of the task."""
    who = narrow(identity, body.caller)
    if body.state is None and body.messages is None:
        return who
    state, turns = body.state, _turns(body.messages or [])
    recent = Recent(
        plan=state.plan if state is not None and state.plan else who.recent.plan,
        turns=turns or who.recent.turns,
        tools=tuple(state.tools) if state is not None and state.tools else who.recent.tools,
    )
    return who.model_copy(update={"recent": recent})


def wanted(body: SelectBody) -> tuple[Subgoal, ...]:
    """The steps that a body asks tools for; none where it only asks again after a failed call."""
    if body.goal is not None:
        return (Subgoal(goal=body.goal, mutation=body.mutation),)
    if body.search is not None:
        return (Subgoal(goal=body.search.query, mutation=_narrower(body.search.mutation, body.mutation)),)
    if body.messages is not None:
        return (Subgoal(goal=_last_said(body.messages), mutation=body.mutation),)
    return tuple(_subgoal(given, body.mutation) for given in body.subgoals or ())


def said_in(body: SelectBody, field: str) -> str:
    """Where in the body stands what the decision calls `field`: the goal may be that of a search or of a step."""
    if field != "goal" or body.goal is not None:
        return field
    if body.search is not None:
        return "search.query"
    blank = (f"subgoals[{i}].goal" for i, step in enumerate(body.subgoals or ()) if not query_text(step.goal))
    return next(blank, "subgoals" if body.subgoals is not None else "messages")


def answer(decided: Decided, catalog: Catalog, level: Level, format: Format) -> SelectAnswer:
    """The slice as its caller may see it, with the menu in the form asked for."""
    found = decided.found
    return SelectAnswer(
        slice_id=found.slice_id,
        request_id=found.request_id,
        versions=versions(found),
        query=found.query,
        menu=[_shown(entry) for entry in found.menu],
        rendered=rendered(found.menu, catalog, level, format),
        abstention=_advice(found.abstention),
        parts=[
            Step(goal=part.subgoal.goal, tools=list(part.menu), abstention=_advice(part.abstention))
            for part in found.parts
        ],
        recovery=None if found.recovery is None else Recovered.model_validate(found.recovery.model_dump()),
        degradations=[_degraded(part) for part in found.degradations],
        timings_ms={stage: round(ms, 3) for stage, ms in found.timings_ms.items()},
        cached=decided.cached,
        recorded=decided.recorded,
    )


def rendered(menu: Sequence[MenuEntry], catalog: Catalog, level: Level, format: Format) -> MenuParts:
    """The menu's stable part and this turn's, without tools whose call is denied."""
    shown = [entry for entry in menu if entry.verdict != "deny" and entry.tool_id in catalog]
    prefix = [catalog[entry.tool_id] for reason in _STABLE for entry in shown if entry.reason == reason]
    turn = [catalog[entry.tool_id] for entry in shown if entry.reason not in _STABLE]
    made = render(prefix, turn, level, format)
    if format == "text":
        return MenuParts(prefix=made.prefix, turn=made.turn)
    return MenuParts(prefix=json.loads(made.prefix), turn=json.loads(made.turn))


def detail(card: ToolCard, level: Level, format: Format) -> Any:
    """One tool, in the form asked for."""
    made = render((), (card,), level, format).turn
    return made if format == "text" else json.loads(made)


def versions(found: Slice) -> Versions:
    """What a slice was decided with."""
    return Versions(catalog=found.catalog_version, bundle=found.bundle_version, policy=found.policy_version)


def ask_of(body: SelectBody, who: Caller) -> Ask:
    """The ask of a body."""
    steps = wanted(body)
    request = "\n".join(step.goal for step in steps) if len(steps) > 1 else ""
    after = body.after
    failed = None if after is None else Failed(after.slice_id, after.tool_id, after.error_class)
    return Ask(who, steps, body.request_id or uuid.uuid4().hex, failed, request, body.trace_id, body.step)


def split_up(ask: Ask, found: Split) -> Ask:
    """An ask for one step as one for the steps that it was split into."""
    (whole,) = ask.subgoals
    degradations = () if found.degradation is None else (found.degradation,)
    return replace(
        ask,
        subgoals=subgoals_of(found.steps, whole),
        whole=whole if len(found.steps) > 1 else None,
        request=whole.goal,
        degradations=(*ask.degradations, *degradations),
    )


def checked(result: CheckResult) -> CheckAnswer:
    """The gate's answer."""
    return CheckAnswer(
        verdict=result.verdict,
        rule=result.rule,
        message=result.message,
        hint=result.hint,
        errors=[ArgumentProblem(path=e.path, code=e.code, message=e.message, hint=e.hint) for e in result.errors],
        available=list(result.available),
        available_wire_names=[wire_name(tool_id) for tool_id in result.available],
        ticket=result.ticket,
        expires=result.expires.isoformat() if result.expires is not None else None,
    )


def outcomes_of(body: OutcomesBody, who: Caller, now: datetime) -> list[OutcomeRecord]:
    """What was reported, as records of this caller."""
    return [
        OutcomeRecord(tenant=who.tenant, principal=who.principal, ts=now, **given.model_dump())
        for given in body.outcomes
    ]


def _subgoal(given: SubgoalBody, mutation: bool | None) -> Subgoal:
    return Subgoal(
        goal=given.goal,
        operations=tuple(given.operations),
        entities=tuple(given.entities),
        mutation=_narrower(given.mutation, mutation),
        required_access=tuple(given.required_access),
    )


def _narrower(own: bool | None, whole: bool | None) -> bool | None:
    """What one part says of writing, where it says anything; a whole that only reads has no part that writes."""
    if whole is False:
        return False
    return whole if own is None else own


def _last_said(messages: Sequence[MessageBody]) -> str:
    """The last words of the user; without any, the last that anybody said."""
    said = [message for message in messages if message.content.strip()]
    users = [message for message in said if message.role == "user"]
    return (users or said or list(messages))[-1].content


def _turns(messages: Sequence[MessageBody]) -> tuple[str, ...]:
    """What was said before the user's last words, oldest first, tool results left out: they are not requests."""
    last = _last_said(messages) if messages else ""
    said = [m.content for m in messages if m.role in ("user", "assistant") and m.content.strip()]
    if last in said:
        said = said[: len(said) - 1 - said[::-1].index(last)]
    return tuple(said)


def _shown(entry: MenuEntry) -> Shown:
    return Shown(
        tool_id=entry.tool_id,
        wire_name=wire_name(entry.tool_id),
        position=entry.position,
        rank=entry.rank,
        relevance=entry.relevance,
        reason=entry.reason,
        verdict=entry.verdict,
        rule=entry.rule,
    )


def _degraded(found: Degradation) -> Degraded:
    """What failed, without what a library said about it, which stands in brackets: that is for the operator."""
    what = re.sub(r" \(.*\)", "", found.what, flags=re.DOTALL) if found.kind == "failed" else found.what
    return Degraded(stage=found.stage, what=what)


def _advice(stance: Abstention) -> Advice:
    return Advice(
        outcome=stance.outcome,
        fit=stance.fit,
        advice=stance.advice,
        missing_connections=list(stance.missing_connections),
    )

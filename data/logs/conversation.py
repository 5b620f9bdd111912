"""Conversations as decisions: the turns of one task, walked from the first to the last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from data.logs.account import Account
from data.logs.events import Call, Decision, Result, Turn

UNANSWERED = "a call without a result"
UNCALLED = "a result without a call"


@dataclass(frozen=True)
class About:
    """What is known of a conversation as a whole."""

    trace_id: str
    tenant: str = ""
    agent: str = ""
    ts: datetime | None = None
    task_success: bool | None = None
    where: str = ""


def decisions(
    turns: Sequence[Turn],
    menus: Sequence[tuple[str, ...] | None],
    about: About,
    account: Account,
    *,
    elsewhere: Mapping[str, Result] | None = None,
    times: Sequence[datetime | None] = (),
    seen: set[str] | None = None,
    start: int = 0,
    told: Sequence[bool] | None = None,
) -> Iterator[Decision]:
    """The steps of a conversation, numbered from `start`.

    `menus` and `times` are what was offered at each turn, and when; `elsewhere` results that stand in other logs of the
    conversation, `seen` the ids of calls that were given already, `told` which turns are steps of this log (None: all).

    Calls of one message are one step. Its own words are those of the message itself, or of the last message since
    anything else was said. A request that is answered without a call, where tools were offered, is a step without a
    call, unless the answer asks back.
    """
    results = {**(elsewhere or {})}
    results |= {result.call_id: result for turn in turns for result in turn.results if result.call_id}
    loose = [result for turn in turns for result in turn.results if not result.call_id]
    seen = set() if seen is None else seen
    request = said = searched = ""
    step, alone = start, False
    found: tuple[str, ...] = ()
    used: set[str] = set()
    for number, turn in enumerate(turns):
        if turn.role == "user" and turn.text.strip():
            request, said, searched, alone = turn.text, "", "", True
        if turn.role != "assistant":
            continue
        if told is not None and not told[number]:
            used.update(call.call_id for call in turn.calls)
            said, alone = "", False
            continue
        said = turn.text if turn.text.strip() else said
        searched = turn.searched or searched
        found = (*found, *(turn.found or ()))
        offered = menus[number]
        menu = None if offered is None and not found else tuple(dict.fromkeys((*(offered or ()), *found)))
        step_of = Decision(
            about.trace_id,
            request,
            offered=menu,
            step=step,
            ts=turn.ts or (times[number] if times else None) or about.ts,
            tenant=about.tenant,
            agent=about.agent,
            task_success=about.task_success,
            where=about.where,
        )
        fresh = [call for call in turn.calls if call.call_id not in seen]
        seen.update(call.call_id for call in fresh if call.call_id)
        used.update(call.call_id for call in turn.calls)
        if fresh:
            calls = tuple(_answered(call, results, loose, account, about) for call in fresh)
            yield replace(step_of, said=said, searched=searched, calls=calls)
            step += 1
        elif alone and menu and not turn.calls and _is_answer(turns, number):
            yield step_of
            step += 1
        if turn.calls:
            said = ""
        alone = False
    mine = {result.call_id for turn in turns for result in turn.results if result.call_id}
    if lost := mine - used:
        account.skip(UNCALLED, f"{about.where}, id {sorted(lost)[0]}", len(lost))


def _is_answer(turns: Sequence[Turn], number: int) -> bool:
    """Whether a text answers the request: it is not a question, and nobody but the user speaks after it."""
    follows = turns[number + 1].role if number + 1 < len(turns) else "user"
    answer = turns[number].text.strip()
    return bool(answer) and not answer.endswith(("?", "？")) and follows == "user"


def _answered(call: Call, results: Mapping[str, Result], loose: list[Result], account: Account, about: About) -> Call:
    if call.answered:
        return call
    if call.call_id in results:
        return call.with_result(results[call.call_id])
    for result in loose:
        if result.name in {"", call.name}:
            loose.remove(result)
            return call.with_result(result)
    account.notice(UNANSWERED, about.where)
    return call

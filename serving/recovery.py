"""Recovery: what to show after a call was refused or failed, and when to stop asking.

| how it failed | the tool | what else |
|---|---|---|
| `validation` | stays, first: it was the right choice | a second time, it is left out |
| `auth`, `timeout`, `unavailable`, `rate_limited` | stays, last: it cannot now | its server's tools go last too |
| `wrong_tool`, `tool_error`, `empty_result` | is left out | |

What failed earlier for the same step counts on. The menu is wider than the one before: twice the candidates, tools and
tokens, and never more than 12 tools. Where nothing fits, or after `MAX_TRIES` failures, the answer is to ask the user,
with the tools that come nearest and the connections that are missing, as far as the caller may know of them.

The rules are asked again with the caller's grants of now: a tool that they withhold is not named, whoever named it.
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from data.context import Caller, Subgoal
from data.errors import InputError
from data.traces import SILENT_ERRORS, ErrorClass
from serving.disclosure import shown_id
from serving.judged import Judged
from serving.mask import Unavailable
from serving.menu import MAX_TOOLS, MenuLimits
from serving.missing import could_connect, missing_connections
from serving.selector import Selector
from serving.slice import Abstention, Failure, Recovery, Slice

MAX_TRIES = 3
"""So many failed calls end a step: the next answer is to ask."""

_WIDER = 2
_MOST_CANDIDATES = 200
_NAMED = 3

_ADVICE: dict[ErrorClass, str] = {
    "validation": "{tool} is the right choice: correct the arguments that the error names and call it once more.",
    "auth": "{tool} fits, but its credentials were refused. Use another tool, or ask the user to sign in again.",
    "timeout": "{tool} fits, but did not answer in time. Use another tool, or try it once more later.",
    "unavailable": "{tool} fits, but is down. Use another tool, or tell the user.",
    "rate_limited": "{tool} fits, but takes no more calls for now. Use another tool, or wait before the next call.",
    "tool_error": "{tool} failed and is left out. Choose another tool.",
    "empty_result": "{tool} found nothing and is left out. Choose another tool, or ask for something less narrow.",
    "wrong_tool": "{tool} does not do this and is left out. Choose another tool.",
}


@dataclass(frozen=True)
class Refused:
    """A call that was refused or failed: the slice that offered the tool, and how it failed."""

    slice: Slice
    tool_id: str
    error_class: ErrorClass


def recover(
    selector: Selector,
    after: Refused,
    caller: Caller | None = None,
    *,
    request_id: str = "",
    max_tools: int | None = None,
    token_budget: int | None = None,
) -> Slice:
    """Decide what to show for the step whose call failed; of a slice of several subgoals, the one the tool was for.

    Whether the slice is this caller's is for who keeps slices to check. `max_tools` and `token_budget` narrow the wider
    limits. The result's `recovery` says what to do, and carries what failed on to the next try. Raises InputError for
    an error class that is no failure, and for limits that are none.
    """
    if after.error_class == "none":
        raise InputError("the call did not fail", field="after.error_class", hint="say how it failed")
    who, down = caller or Caller(), selector.down
    limits = _wider(selector, max_tools, token_budget)
    request_id = request_id or uuid.uuid4().hex
    tries, failed = _so_far(selector, after, who, down)
    judged = selector.judge(
        _step(after),
        who,
        down=down,
        without=_left_out(selector, failed),
        candidates=min(_MOST_CANDIDATES, _WIDER * selector.settings.candidates),
    )
    judged = _reordered(selector, judged, failed)
    advice = _advice(selector, after, failed)
    fits = judged.stands and any(not selector.catalog.cards[row].core for row in judged.rows.tolist())
    if fits and tries < MAX_TRIES:
        return selector.show(judged, limits, request_id, Recovery(tries=tries, failed=failed, advice=advice))
    near = _near_misses(selector, judged)
    missing = missing_connections(selector, judged, down, _left_out(selector, failed))
    advice = _what_instead(tries, near, missing)
    stance = judged.stance
    if stance.outcome != "missing_capability":
        stance = Abstention(outcome="ask", fit=stance.fit, threshold=stance.threshold)
    recovery = Recovery(
        tries=tries, failed=failed, advice=advice, near_misses=near, missing_connections=missing, final=True
    )
    judged = replace(judged, stance=stance.model_copy(update={"advice": advice}))
    return selector.show(judged, limits, request_id, recovery)


def _wider(selector: Selector, max_tools: int | None, token_budget: int | None) -> MenuLimits:
    usual = selector.limits()
    tools, tokens = min(MAX_TOOLS, _WIDER * usual.max_tools), _WIDER * usual.token_budget
    asked = MenuLimits(tokens if token_budget is None else token_budget, tools if max_tools is None else max_tools)
    return MenuLimits(min(asked.token_budget, tokens), min(asked.max_tools, tools))


def _so_far(selector: Selector, after: Refused, who: Caller, down: Unavailable) -> tuple[int, tuple[Failure, ...]]:
    """How many calls failed for this step, and those of them that were of tools which the caller may see now."""
    before = after.slice.recovery
    calls = (*(before.failed if before else ()), Failure(tool_id=after.tool_id, error_class=after.error_class))
    allowed, row = selector.index.mask.apply(who, down.ids).allowed, selector.catalog.row
    seen = tuple(call for call in calls if call.tool_id in row and allowed[row[call.tool_id]])
    return (before.tries if before else 0) + 1, seen


def _step(after: Refused) -> Subgoal:
    """The subgoal that the tool was shown for."""
    parts = after.slice.parts
    return next((part.subgoal for part in parts if after.tool_id in part.menu), after.slice.subgoal)


def _left_out(selector: Selector, failed: tuple[Failure, ...]) -> dict[str, str]:
    """Tools that are not to be tried again, and why. A core tool stays: it is on every menu."""
    times = Counter(failed)
    return {
        call.tool_id: f"failed:{call.error_class}"
        for call in failed
        if call.error_class not in SILENT_ERRORS
        and (call.error_class != "validation" or times[call] > 1)
        and not selector.catalog[call.tool_id].core
    }


def _reordered(selector: Selector, judged: Judged, failed: tuple[Failure, ...]) -> Judged:
    """What only needs other arguments comes first; what cannot now comes last, after what runs on other servers."""
    catalog = selector.catalog
    cannot = [catalog[call.tool_id] for call in failed if call.error_class in SILENT_ERRORS]
    ids, servers = {card.tool_id for card in cannot}, {card.domain for card in cannot if card.domain}
    to_fix = {call.tool_id for call in failed[-1:] if call.error_class == "validation"}

    def place(row: int) -> int:
        card = catalog.cards[row]
        return 0 if card.tool_id in to_fix else 3 if card.tool_id in ids else 2 if card.domain in servers else 1

    order = np.argsort([place(row) for row in judged.rows.tolist()], kind="stable")
    # as wide as it may be: what was enough before the call failed was not
    return replace(judged, rows=judged.rows[order], relevant=judged.relevant[order], needed=None)


def _advice(selector: Selector, after: Refused, failed: tuple[Failure, ...]) -> str:
    call = Failure(tool_id=after.tool_id, error_class=after.error_class)
    if call not in failed:
        return "That tool is not available. Choose from the menu."
    tool = f"'{shown_id(selector.catalog[call.tool_id])}'"
    if call.error_class == "validation" and failed.count(call) > 1:
        return f"{tool} was called with wrong arguments again and is left out. Choose another tool."
    return _ADVICE[call.error_class].format(tool=tool)


def _near_misses(selector: Selector, judged: Judged) -> tuple[str, ...]:
    cards = (selector.catalog.cards[row] for row in judged.rows.tolist())
    return tuple(card.tool_id for card in cards if not card.core)[:_NAMED]


def _what_instead(tries: int, near: tuple[str, ...], missing: tuple[str, ...]) -> str:
    said = [
        f"{tries} calls for this step failed." if tries >= MAX_TRIES else "No other available tool fits this step.",
        "Do not ask for tools for it again.",
    ]
    if missing:
        said.append(could_connect(missing))
    said.append("Tell the user what failed and ask how to go on." if tries >= MAX_TRIES else "Say what is missing.")
    if near:
        said.append(f"Nearest: {', '.join(near)}.")
    return " ".join(said)

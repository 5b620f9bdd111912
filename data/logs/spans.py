"""Spans: the tree of one traced task, as steps of an agent.

Every tracer has the same four kinds of nodes, whatever it calls them: an agent, a request to a model, a call of a tool,
and the rest. A tool's node says how the call went; the request before it says what it was for and what was offered.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

from data.logs.account import Account
from data.logs.conversation import UNANSWERED, About
from data.logs.events import Call, Decision, Turn
from data.logs.exchanges import Exchange, exchange_decisions

Kind = Literal["agent", "chat", "tool", "other"]

ORPHAN = "a span whose parent never arrived"
REPEATED = "a span that was given already"
SKEWED = "a span that starts before its parent, as by another clock"
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Span:
    """One node. `asked`, `answer` and `offered` are a chat's, `call` a tool's, `request` what an agent was asked."""

    trace_id: str
    span_id: str
    parent_id: str
    kind: Kind
    start: datetime | None = None
    end: datetime | None = None
    call: Call | None = None
    asked: tuple[Turn, ...] = ()
    answer: tuple[Turn, ...] = ()
    offered: tuple[str, ...] | None = None
    request: str = ""
    agent: str = ""
    tenant: str = ""
    task_success: bool | None = None
    where: str = ""


@dataclass
class _Tree:
    spans: dict[str, Span]
    request: str = ""
    tenant: str = ""
    task_success: bool | None = None
    parents: dict[str, Span] = field(default_factory=dict)

    def above(self, span: Span) -> Iterator[Span]:
        """The ancestors that arrived, nearest first."""
        passed = {span.span_id}
        while (parent := self.spans.get(span.parent_id)) is not None and parent.span_id not in passed:
            passed.add(parent.span_id)
            yield parent
            span = parent

    def agent_of(self, span: Span) -> str:
        return span.agent or next((up.agent for up in self.above(span) if up.agent), "")

    def request_of(self, span: Span) -> str:
        return next((up.request for up in self.above(span) if up.request), self.request)


def span_decisions(spans: Sequence[Span], account: Account) -> Iterator[Decision]:
    """The steps of one trace, in the order of their times. `spans` come in any order, and some may be missing."""
    tree = _tree(spans, account)
    told = list(tree.spans.values())
    chats = sorted((span for span in told if span.kind == "chat"), key=_started)
    tools = sorted(_calls(tree), key=lambda pair: _started(pair[0]))
    exchanges = [
        Exchange(list(chat.asked), list(chat.answer), _offered(chat, tree), _about(chat, tree)) for chat in chats
    ]
    quiet = Account()
    steps = list(exchange_decisions(exchanges, quiet, history=False))
    for reason, count in quiet.skipped.items():
        account.skip(reason, quiet.first.get(reason, ""), count)
    steps, rest = _matched(steps, tools)
    steps += _unmatched(rest, chats, tree)
    unanswered = [call for step in steps for call in step.calls if not call.answered and call.flag is None]
    if unanswered:
        account.notice(UNANSWERED, steps[0].where, len(unanswered))
    steps.sort(key=lambda step: step.ts or _NEVER)
    for number, step in enumerate(steps):
        yield replace(
            step,
            step=number,
            request=step.request or tree.request,
            tenant=step.tenant or tree.tenant,
            task_success=tree.task_success,
        )


def _tree(spans: Iterable[Span], account: Account) -> _Tree:
    byid: dict[str, Span] = {}
    for span in spans:
        if span.span_id in byid:
            account.skip(REPEATED, span.where)
        byid.setdefault(span.span_id, span)
    tree = _Tree(byid)
    for span in sorted(byid.values(), key=_started):
        if span.parent_id and span.parent_id not in byid:
            account.notice(ORPHAN, span.where)
        if span.start is not None and (up := byid.get(span.parent_id)) is not None and span.start < _started(up):
            account.notice(SKEWED, span.where)
        tree.request = tree.request or span.request
        tree.tenant = tree.tenant or span.tenant
        tree.task_success = span.task_success if span.task_success is not None else tree.task_success
    return tree


def _calls(tree: _Tree) -> Iterator[tuple[Span, Call]]:
    """The calls, each once: client and server of one call, and a wrapper around it, are spans of their own."""
    inner: dict[str, list[Call]] = {}
    outer: list[Span] = []
    for span in tree.spans.values():
        if span.kind != "tool" or span.call is None:
            continue
        same = [up for up in tree.above(span) if up.kind == "tool" and up.call and _same(up.call.name, span.call.name)]
        if same:
            inner.setdefault(same[-1].span_id, []).append(span.call)
        else:
            outer.append(span)
    for span in outer:
        if span.call is not None:
            yield span, _merged(span.call, inner.get(span.span_id, ()))


def _same(outer: str, inner: str) -> bool:
    a, b = outer.lower(), inner.lower()
    return (
        a == b or a.endswith(("_" + b, "." + b, "-" + b, "/" + b)) or b.endswith(("_" + a, "." + a, "-" + a, "/" + a))
    )


def _merged(call: Call, others: Iterable[Call]) -> Call:
    """What the spans of one call know together: an error that one of them saw is an error."""
    for other in others:
        failed = other.flag is False and call.flag is not False
        call = replace(
            call,
            arguments=call.arguments if call.arguments is not None else other.arguments,
            server=call.server or other.server,
            call_id=call.call_id or other.call_id,
            answered=call.answered or other.answered,
            payload=call.payload if call.answered else other.payload,
            flag=False if failed else call.flag,
            error=call.error or other.error,
        )
    return call


def _matched(
    steps: Sequence[Decision], tools: Sequence[tuple[Span, Call]]
) -> tuple[list[Decision], list[tuple[Span, Call]]]:
    """The steps with what the tools' spans know of their calls, by id, else by name in order; and the other spans."""
    waiting = list(tools)

    def completed(call: Call) -> Call:
        found = next((pair for pair in waiting if call.call_id and pair[1].call_id == call.call_id), None)
        found = found or next(
            (pair for pair in waiting if not (call.call_id and pair[1].call_id) and _same(pair[1].name, call.name)),
            None,
        )
        if found is None:
            return call
        waiting.remove(found)
        span = found[1]
        failed = span.flag is False or call.flag is False
        return replace(
            call,
            server=call.server or span.server,
            arguments=call.arguments if call.arguments is not None else span.arguments,
            answered=call.answered or span.answered,
            payload=span.payload if span.answered else call.payload,
            flag=False if failed else call.flag if span.flag is None else span.flag,
            error=span.error or call.error,
            ts=span.ts or call.ts,
            latency_ms=span.latency_ms,
            cost_usd=span.cost_usd,
        )

    done = [replace(step, calls=tuple(completed(call) for call in step.calls)) for step in steps]
    return done, waiting


def _unmatched(rest: Sequence[tuple[Span, Call]], chats: Sequence[Span], tree: _Tree) -> list[Decision]:
    """Calls that no answer in the trace speaks of: what was said last before them is what they were for."""
    steps: list[Decision] = []
    by_chat: dict[str, int] = {}
    starts = {agent: [c for c in chats if tree.agent_of(c) == agent] for agent in {tree.agent_of(c) for c in chats}}
    for span, call in rest:
        agent = tree.agent_of(span)
        mine = starts.get(agent) or chats
        place = bisect_right([_started(chat) for chat in mine], _started(span)) - 1
        chat = mine[place] if 0 <= place < len(mine) else None
        if chat is not None and chat.span_id in by_chat:
            at = by_chat[chat.span_id]
            steps[at] = replace(steps[at], calls=(*steps[at].calls, call))
            continue
        users = [turn.text for turn in (chat.asked if chat else ()) if turn.role == "user" and turn.text.strip()]
        said = [turn.text for turn in (chat.answer if chat else ()) if turn.text.strip() and not turn.calls]
        if chat is not None:
            by_chat[chat.span_id] = len(steps)
        steps.append(
            Decision(
                span.trace_id,
                users[-1] if users else tree.request_of(span),
                said=said[-1] if said else "",
                offered=_offered(chat or span, tree),
                calls=(call,),
                ts=call.ts,
                agent=agent,
                where=span.where,
            )
        )
    return steps


def _offered(span: Span, tree: _Tree) -> tuple[str, ...] | None:
    known = (one.offered for one in (span, *tree.above(span)) if one.offered is not None)
    return next(known, None)


def _about(chat: Span, tree: _Tree) -> About:
    return About(chat.trace_id, chat.tenant, tree.agent_of(chat), chat.end or chat.start, None, chat.where)


def _started(span: Span) -> datetime:
    return span.start or span.end or _NEVER

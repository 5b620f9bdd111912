"""Exchanges: what was sent to a model and what came back, each with all that was said before, as one conversation.

An agent sends its whole conversation again with every request. Exchanges that another one goes on from are told by
that one; what they offered, and when, stays with the step that it was offered at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from data.logs.account import Account
from data.logs.conversation import About, decisions
from data.logs.events import Call, Decision, Result, Turn

Menu = tuple[str, ...] | None


@dataclass(frozen=True)
class Exchange:
    """One request to a model with its answer; `offered` None = the log does not say. A transcript has no answer."""

    asked: list[Turn]
    answer: list[Turn]
    offered: Menu
    about: About

    @cached_property
    def told(self) -> list[Turn]:
        """All turns."""
        return [*self.asked, *self.answer]

    @cached_property
    def digests(self) -> list[str]:
        """`chain` of all turns."""
        return chain(self.told)


def exchange_decisions(exchanges: Sequence[Exchange], account: Account, *, history: bool = True) -> Iterator[Decision]:
    """The steps of the conversations that the exchanges are parts of; steps of one trace id are numbered on.

    A trace id that is blank becomes a digest of the whole conversation. `history` False leaves out steps that no
    answer here has, but only a request tells of.
    """
    told = [exchange.told for exchange in exchanges]
    elsewhere = {result.call_id: result for turns in told for turn in turns for result in turn.results}
    elsewhere.pop("", None)
    offered, times, answers = _offers(exchanges)
    step, seen = 0, set[str]()
    for exchange in _longest(exchanges):
        turns, digests = exchange.told, exchange.digests
        before = ["", *digests[:-1]]
        about = exchange.about
        if not about.trace_id:
            about, step, seen = replace(about, trace_id=f"chat:{digests[-1][:24]}"), 0, set()
        for decision in decisions(
            turns,
            [offered.get(digest) for digest in before],
            about,
            account,
            elsewhere=elsewhere,
            times=[times.get(digest) for digest in before],
            seen=seen,
            start=step,
            told=None if history else [digest in answers for digest in digests],
        ):
            yield decision
            step += 1


def chain(turns: Iterable[Turn]) -> list[str]:
    """A digest of the conversation up to and with each of its turns; equal where everything said so far is."""
    digest = hashlib.sha256()
    digests = []
    for turn in turns:
        parts = [turn.role, turn.text.strip(), *map(_call_identity, turn.calls), *map(_result_identity, turn.results)]
        digest.update("\0".join(parts).encode("utf-8", "surrogatepass") + b"\1")
        digests.append(digest.hexdigest())
    return digests


def _offers(exchanges: Sequence[Exchange]) -> tuple[dict[str, Menu], dict[str, datetime | None], set[str]]:
    """What was offered and when, by what had been said before the answer; and the digests of the answers."""
    offered: dict[str, Menu] = {}
    times: dict[str, datetime | None] = {}
    answers: set[str] = set()
    for exchange in exchanges:
        if exchange.answer:
            digests = exchange.digests
            place = len(exchange.asked)
            before = digests[place - 1] if place else ""
            answers.update(digests[place:])
            if exchange.offered is not None or before not in offered:
                offered[before] = exchange.offered
            times.setdefault(before, exchange.about.ts)
    for exchange in exchanges:  # steps of a history whose own requests are not in the log
        for digest in ("", *exchange.digests):
            offered.setdefault(digest, exchange.offered)
    return offered, times, answers


def _longest(exchanges: Sequence[Exchange]) -> Iterator[Exchange]:
    """The conversations that no other one goes on from, each once."""
    inner = {digest for exchange in exchanges for digest in exchange.digests[:-1]}
    given: set[str] = set()
    for exchange in exchanges:
        digests = exchange.digests
        if digests and digests[-1] not in inner and digests[-1] not in given:
            given.add(digests[-1])
            yield exchange


def _call_identity(call: Call) -> str:
    return f"{call.call_id} {call.name}"


def _result_identity(result: Result) -> str:
    return result.call_id or f"{result.name} {result.payload}"

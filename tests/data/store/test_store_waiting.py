"""Spans that wait: kept once, ripe when they should be, and what their trace makes stands in place of what it made."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from store_material import NOON, at, decision, outcome

from data.store.database import open_database
from data.store.errors import StoreError
from data.store.ledger import Ledger
from data.store.privacy import TextRules
from data.store.records import Decision, OutcomeRecord, SpanBatch, SpanRow
from data.store.rows import packed_with_size
from data.store.spool import Spool
from data.store.waiting import Held, Ripeness, TraceKey, Waiting

SETTLE, IDLE, AGE = timedelta(seconds=10), timedelta(minutes=2), timedelta(hours=1)
WHEN = Ripeness(SETTLE, IDLE, AGE)
KEY = TraceKey("acme", "ann", "t")
SALTED = TextRules(b"salt" * 8)


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    opened = open_database(database_url)
    yield Ledger(opened)
    opened.close()


@pytest.fixture
def waiting(ledger: Ledger) -> Waiting:
    return Waiting(ledger, TextRules())


def row(span_id: str, *, trace_id: str = "t", root: bool = False) -> SpanRow:
    body, size = packed_with_size({"span": span_id})
    return SpanRow(trace_id=trace_id, span_id=span_id, root=root, size=size, body=body)


def batch(*rows: SpanRow, ts: datetime = NOON, principal: str = "ann") -> SpanBatch:
    return SpanBatch(tenant="acme", principal=principal, ts=ts, spans=rows)


def settled(waiting: Waiting, calls: int, key: TraceKey = KEY) -> bool:
    """Have the trace make so many calls of the spans that it has."""
    gathered = waiting.gathered(key)
    made: list[Decision | OutcomeRecord] = []
    for name in (gathered.numbered(place) for place in range(calls)):
        made += [decision(name, goal=f"{calls} calls"), outcome(name, name)]
    return waiting.settle(key, gathered, made)


def test_a_span_counts_once_however_often_it_comes(ledger: Ledger, waiting: Waiting) -> None:
    ledger.append([batch(row("a"), row("b"))])
    ledger.append([batch(row("b"), row("c", root=True), ts=at(1))])
    found = waiting.gathered(KEY)
    assert ([one["span"] for one in found.bodies], found.first) == (["a", "b", "c"], NOON)
    size = len('{"span":"a"}')
    assert waiting.held("acme", "ann", ["t", "other"]) == {"t": Held(3, 3 * size)}
    assert (waiting.total("acme", "ann"), waiting.total("acme", "bob"), waiting.waiting()) == (3 * size, 0, 3)


def test_the_same_trace_id_of_two_senders_is_two_traces(ledger: Ledger, waiting: Waiting) -> None:
    ledger.append([batch(row("a", root=True)), batch(row("a", root=True), principal="bob")])
    keys = waiting.ripe(NOON + SETTLE, WHEN)
    assert sorted(key.principal for key in keys) == ["ann", "bob"]
    assert len({waiting.gathered(key).numbered(0) for key in keys}) == 2


def test_a_trace_is_ripe_soon_after_its_root_and_late_without(ledger: Ledger, waiting: Waiting) -> None:
    ledger.append([batch(row("a"), row("r", root=True))])
    ledger.append([batch(row("b", trace_id="rootless"))])
    second = timedelta(seconds=1)
    assert waiting.ripe(NOON + SETTLE - second, WHEN) == []
    assert waiting.ripe(NOON + SETTLE, WHEN) == [KEY]
    ledger.append([batch(row("late"), ts=NOON + SETTLE)])
    assert waiting.ripe(NOON + SETTLE, WHEN) == [], "not quiet any more"
    assert {key.trace_id for key in waiting.ripe(NOON + IDLE, WHEN)} == {"t", "rootless"}


def test_a_trace_that_never_rests_is_ripe_at_an_age(ledger: Ledger, waiting: Waiting) -> None:
    for minute in range(61):
        ledger.append([batch(row(str(minute)), ts=at(minute))])
    assert waiting.ripe(at(59), WHEN) == []
    assert waiting.ripe(at(60), WHEN) == [KEY]
    settled(waiting, 0)
    ledger.append([batch(row("more"), ts=at(61))])
    assert waiting.ripe(at(62), WHEN) == [], "what was made does not count again"


def test_what_a_trace_makes_replaces_what_it_made(ledger: Ledger, waiting: Waiting) -> None:
    ledger.append([decision("of the service"), outcome("k", "of the service")])
    ledger.append([batch(row("a"), row("b"))])
    assert settled(waiting, 3)
    assert waiting.ripe(at(1000), WHEN) == []
    ledger.append([batch(row("c"))])
    assert waiting.ripe(at(1000), WHEN) == [KEY]
    assert settled(waiting, 2)
    assert sorted(trace.goal for trace in ledger.traces()) == ["2 calls", "2 calls", "find the invoice"]


def test_a_trace_of_more_spans_than_were_read_is_left_as_it_is(ledger: Ledger, waiting: Waiting) -> None:
    ledger.append([batch(row("a"), row("b"))])
    gathered = waiting.gathered(KEY)
    ledger.append([batch(row("c"))])
    name = gathered.numbered(0)
    assert not waiting.settle(KEY, gathered, [decision(name), outcome(name, name)])
    assert list(ledger.traces()) == []
    assert waiting.waiting() == 3


def test_what_was_given_up_is_not_ripe_and_nothing_is_lost_by_it(ledger: Ledger, waiting: Waiting) -> None:
    ledger.append([batch(row("a"))])
    settled(waiting, 1)
    ledger.append([batch(row("b"))])
    waiting.give_up(KEY)
    assert waiting.ripe(at(1000), WHEN) == []
    assert len(list(ledger.traces())) == 1


def test_spans_are_let_go_when_the_whole_trace_was_made_and_has_rested(ledger: Ledger, waiting: Waiting) -> None:
    ledger.append([batch(row("a")), batch(row("b"), ts=at(5)), batch(row("c", trace_id="other"))])
    assert waiting.let_go(at(100)) == 0, "not made yet"
    settled(waiting, 1)
    assert waiting.let_go(at(5)) == 0, "its last span came at five"
    assert waiting.let_go(at(6)) == 2
    assert waiting.held("acme", "ann", ["t", "other"]).keys() == {"other"}
    assert len(list(ledger.traces())) == 1


def test_what_comes_when_all_else_was_let_go_replaces_nothing(ledger: Ledger, waiting: Waiting) -> None:
    ledger.append([batch(row("a"))])
    settled(waiting, 2)
    waiting.let_go(at(1))
    ledger.append([batch(row("late"), ts=at(30))])
    settled(waiting, 1)
    assert sorted(trace.goal for trace in ledger.traces()) == ["1 calls", "2 calls", "2 calls"]


def test_a_replica_whose_clock_is_behind_makes_the_same_trace(ledger: Ledger, waiting: Waiting) -> None:
    ledger.append([batch(row("a"))])
    settled(waiting, 2)
    ledger.append([batch(row("b"), ts=at(-3))])
    settled(waiting, 3)
    assert [trace.goal for trace in ledger.traces()] == ["3 calls"] * 3


def test_a_person_is_forgotten_with_the_spans_and_old_ones_expire(ledger: Ledger, waiting: Waiting) -> None:
    ledger.append([batch(row("a")), batch(row("b"), principal="bob")])
    assert ledger.unpaired().spans == 2
    assert ledger.forget(["ann"])["spans"] == 1
    assert ledger.expire(at(1))["spans"] == 1
    assert waiting.waiting() == 0


def test_sealed_spans_are_read_with_their_salt_alone(ledger: Ledger) -> None:
    kept = SALTED.applied(batch(row("a")))
    assert isinstance(kept, SpanBatch)
    assert b"span" not in kept.spans[0].body
    ledger.append([kept])
    key = KEY._replace(principal=SALTED.principal("ann"))
    assert Waiting(ledger, SALTED).gathered(key).bodies == [{"span": "a"}]
    assert Waiting(ledger, SALTED).held("acme", "ann", ["t"]).keys() == {"t"}
    for other in (TextRules(), TextRules(b"another salt" * 3)):
        with pytest.raises(StoreError, match="salt"):
            Waiting(ledger, other).gathered(key)


def test_what_a_sealed_trace_makes_is_hashed_and_its_senders_name_only_once(ledger: Ledger) -> None:
    ledger.append([SALTED.applied(batch(row("a")))])
    key = KEY._replace(principal=SALTED.principal("ann"))
    waiting = Waiting(ledger, SALTED)
    assert settled(waiting, 1, key)
    found = ledger.decision(waiting.gathered(key).numbered(0))
    assert found is not None
    assert (found.principal, found.hashed) == (key.principal, True)
    assert ledger.unpaired().hashed == 1


def test_spans_in_the_spool_come_home_once(ledger: Ledger, waiting: Waiting, tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s.spool")
    spool.append([batch(row("a"), row("b"))])
    spool.append([batch(row("b"), row("c"))])
    spool.replay(ledger.append)
    spool.close()
    assert len(waiting.gathered(KEY).bodies) == 3

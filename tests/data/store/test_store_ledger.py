"""The ledger: what is appended is found again, once; pairs become traces; a person and a past can be removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import ValidationError
from store_material import DROPPED, NOON, at, body, decision, outcome

from data.cards import ToolCard
from data.catalog import Catalog
from data.context import Subgoal
from data.store.database import open_database
from data.store.ledger import Ledger, Unpaired
from data.store.records import Decision
from data.store.tables import masks, observations, outcomes, tickets
from data.traces import Shown
from serving.selector import Selector
from serving.several import select_several
from serving.slice import Slice


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    database = open_database(database_url)
    yield Ledger(database)
    database.close()


def test_a_decision_comes_back_whole(ledger: Ledger) -> None:
    ledger.append([decision()])
    found = ledger.decision("s1")
    assert found is not None
    assert found.model_dump(exclude={"mask_digest"}) == decision().model_dump(exclude={"mask_digest"})


def test_a_decision_that_was_never_kept_is_none(ledger: Ledger) -> None:
    assert ledger.decision("s1") is None


def test_a_record_that_comes_twice_is_kept_once_as_it_came_first(ledger: Ledger) -> None:
    ledger.append([decision(), outcome()])
    ledger.append([decision(goal="another"), outcome(outcome="failure"), outcome("k2")])
    ledger.append([outcome("k2"), outcome("k2", outcome="failure")])
    assert [(trace.goal, trace.outcome) for trace in ledger.traces()] == [("find the invoice", "success")] * 2
    assert count(ledger, outcomes) == 2


def test_one_key_of_two_principals_or_two_tenants_is_two_outcomes(ledger: Ledger) -> None:
    ledger.append([outcome(), outcome(principal="bob"), outcome(tenant="other")])
    assert count(ledger, outcomes) == 3


def test_an_append_is_kept_whole_or_not_at_all(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="JSON"):
        ledger.append([outcome("k1"), decision(body={"score": float("nan")})])
    assert count(ledger, outcomes) == 0


def test_what_a_mask_dropped_is_kept_once_for_all_decisions_that_share_it(ledger: Ledger) -> None:
    ledger.append([decision("s1"), decision("s2")])
    ledger.append([decision("s3")])
    assert count(ledger, masks) == 1
    for name in ("s1", "s2", "s3"):
        found = ledger.decision(name)
        assert found is not None
        assert found.body["record"][0]["dropped"] == DROPPED


def test_a_digest_that_is_known_spares_the_look_at_what_was_dropped(ledger: Ledger) -> None:
    ledger.append([decision("s1", mask_digest="m1")])
    unreadable = body(record=[{"stage": "mask", "kept": 3, "dropped": {"no": object()}, "scores": {}}])
    ledger.append([decision("s2", mask_digest="m1", body=unreadable)])
    found = ledger.decision("s2")
    assert found is not None
    assert found.body["record"][0]["dropped"] == DROPPED


def test_what_somebody_wrote_is_kept_where_a_database_has_no_such_character(ledger: Ledger) -> None:
    ledger.append([decision(goal="nul \x00 and half \ud83d of it", body=body(goal="nul \x00"))])
    found = ledger.decision("s1")
    assert found is not None
    assert (found.goal, found.body["query"]) == ("nul \ufffd and half \ufffd of it", "nul \x00")


@pytest.mark.parametrize(
    ("field", "value"), [("tenant", "a\x00"), ("principal", "\ud83d"), ("slice_id", ""), ("principal", "x" * 257)]
)
def test_a_name_that_a_database_would_alter_is_refused(field: str, value: str) -> None:
    with pytest.raises(ValidationError, match=field):
        decision(**{field: value})


def test_the_longest_names_are_kept(ledger: Ledger) -> None:
    wide = "\U0001f527"
    longest = outcome(wide * 256, tenant=wide * 128, principal=wide * 256, slice_id=wide * 256)
    ledger.append([longest])
    assert count(ledger, outcomes) == 1


# Traces


def test_a_decision_and_its_outcome_are_a_trace(ledger: Ledger) -> None:
    ledger.append([decision(), outcome()])
    (trace,) = ledger.traces()
    assert trace.model_dump(exclude={"menu"}) == {
        **{"trace_id": "run 7", "step": 3, "ts": at(1), "tenant": "acme", "request": "find the invoice and pay it"},
        **{"goal": "find the invoice", "mutation": False, "tool_id": "files.find", "arguments": {"name": "invoice"}},
        **{"caller": None, "catalog_version": "c1", "bundle_version": "b1", "slice_id": "s1", "gold": None},
        **{"retrieved": ("mail.search", "files.find", "web.search")},
        **{"filtered": ("files.find", "mail.search", "web.search")},
        **{"outcome": "success", "error_class": "none", "latency_ms": 12.5, "cost_usd": 0.01, "task_success": True},
    }
    assert trace.menu == (
        Shown(tool_id="files.find", position=0, relevance=0.9, propensity=1.0, explored=False),
        Shown(tool_id="mail.search", position=1, relevance=0.4, propensity=0.25, explored=True),
    )


def test_calls_of_one_decision_come_in_their_order_and_share_its_trace(ledger: Ledger) -> None:
    second = outcome("a", ts=at(2), step=4)
    ledger.append([decision(trace_id=""), second, outcome("b", ts=at(1), outcome="failure", error_class="timeout")])
    found = list(ledger.traces())
    assert [(trace.trace_id, trace.step) for trace in found] == [("s1", 3), ("s1", 4)]
    assert [trace.error_class for trace in found] == ["timeout", "none"]


def test_a_report_that_nothing_was_called_is_a_trace(ledger: Ledger) -> None:
    ledger.append([decision(), outcome(tool_id=None, arguments=None, outcome="unknown")])
    assert [trace.tool_id for trace in ledger.traces()] == [None]


def test_what_gives_no_trace_is_counted(ledger: Ledger) -> None:
    ledger.append([decision("s1"), decision("s2"), decision("s3", hashed=True)])
    ledger.append([outcome("k1", "s1"), outcome("k2", "gone"), outcome("k3", "s3"), outcome("k4", "s2", dry_run=True)])
    assert [trace.slice_id for trace in ledger.traces()] == ["s1"]
    assert ledger.unpaired() == Unpaired(decisions=1, outcomes=1, hashed=1, spans=0)


@pytest.mark.parametrize("other", [{"principal": "eve"}, {"tenant": "rival"}])
def test_nobody_can_report_an_outcome_of_anothers_decision(ledger: Ledger, other: dict[str, Any]) -> None:
    ledger.append([decision(), outcome(**other)])
    assert list(ledger.traces()) == []
    assert ledger.unpaired() == Unpaired(decisions=1, outcomes=1, hashed=0, spans=0)


def test_traces_of_a_time_and_of_a_tenant(ledger: Ledger) -> None:
    for minute in (0, 1, 2):
        ledger.append([decision(f"s{minute}", ts=at(minute)), outcome(f"k{minute}", f"s{minute}")])
    ledger.append([decision("other", ts=at(1), tenant="rival"), outcome("k", "other", tenant="rival")])
    assert [trace.slice_id for trace in ledger.traces(at(1), at(2), "acme")] == ["s1"]
    assert [trace.slice_id for trace in ledger.traces(tenant="rival")] == ["other"]
    assert [trace.slice_id for trace in ledger.traces(until=at(1))] == ["s0"]


def test_a_real_slice_comes_back_as_the_slice_it_was(ledger: Ledger) -> None:
    found = Selector.load(None, CATALOG).select(Subgoal(goal="search my mail", mutation=False), request_id="r")
    ledger.append([of_slice(found), outcome("k", found.slice_id, tool_id="mail.search")])
    kept = ledger.decision(found.slice_id)
    assert kept is not None
    assert Slice.model_validate(kept.body) == found
    (trace,) = ledger.traces()
    assert trace.menu is not None
    assert [shown.tool_id for shown in trace.menu] == [entry.tool_id for entry in found.menu]
    assert set(trace.retrieved or ()) == set(trace.filtered or ()) == set(found.ranking)


def test_a_call_for_one_of_several_subgoals_counts_for_that_one(ledger: Ledger) -> None:
    steps = [Subgoal(goal="search my mail", mutation=False), Subgoal(goal="pay the invoice", mutation=True)]
    found = select_several(Selector.load(None, CATALOG), steps, request_id="r")
    ledger.append([of_slice(found), outcome("k", found.slice_id, tool_id="bank.pay")])
    (trace,) = ledger.traces()
    assert (trace.goal, trace.mutation) == ("pay the invoice", True)
    assert trace.menu is not None
    assert [shown.tool_id for shown in trace.menu] == ["bank.pay"]


# Removing


def test_a_person_is_forgotten_and_nobody_else(ledger: Ledger) -> None:
    ledger.append([decision("s1"), decision("s2", principal="bob"), decision("s3", tenant="other")])
    ledger.append([outcome("k1"), outcome("k2", principal="bob")])
    with_ticket(ledger, "t1", "ann")
    with_observation(ledger, "h1", "ann")
    with_observation(ledger, "h2", "bob")
    assert ledger.forget(["ann"], "acme") == {
        "decisions": 1,
        "outcomes": 1,
        "tickets": 1,
        "observations": 1,
        "spans": 0,
    }
    assert ledger.decision("s1") is None
    assert ledger.decision("s2") is not None
    assert ledger.decision("s3") is not None
    assert ledger.forget(["ann"]) == {"decisions": 1, "outcomes": 0, "tickets": 0, "observations": 0, "spans": 0}


def test_what_was_forgotten_is_in_no_file_of_the_database(tmp_path: Any) -> None:
    ledger = Ledger(open_database(tmp_path / "t.db"))
    ledger.append([decision(f"s{number}", goal="a most particular wish") for number in range(200)])
    ledger.forget(["ann"])
    files = [path.read_bytes() for path in tmp_path.iterdir()]
    assert files
    assert not any(b"a most particular wish" in content for content in files)
    ledger.database.close()


def test_what_is_old_expires_with_the_masks_that_nothing_needs_any_more(ledger: Ledger) -> None:
    old = body(record=[{"stage": "mask", "kept": 0, "dropped": {"a.b": "tenant"}, "scores": {}}])
    ledger.append([decision("old", ts=at(-10), body=old), decision("new"), outcome("old", ts=at(-10)), outcome("new")])
    with_ticket(ledger, "open", "ann", created=at(-10), expires=at(10))
    with_ticket(ledger, "over", "ann", created=at(-10), expires=at(-5))
    with_observation(ledger, "over", "ann", created=at(-1), expires=at(-1))
    with_observation(ledger, "open", "ann", created=at(-1), expires=at(10))
    gone = ledger.expire(at(-5), now=NOON)
    assert gone == {"decisions": 1, "outcomes": 1, "tickets": 1, "spans": 0, "observations": 1, "masks": 1}
    assert ledger.decision("old") is None
    kept = ledger.decision("new")
    assert kept is not None
    assert kept.body["record"][0]["dropped"] == DROPPED


def test_more_than_one_portion_expires(ledger: Ledger) -> None:
    ledger.append([outcome(f"k{number}") for number in range(2500)])
    assert ledger.expire(at(5))["outcomes"] == 2500


CATALOG = Catalog(
    ToolCard.model_validate({"tool_id": tool, "name": tool.partition(".")[2], "description": text, "risk": risk})
    for tool, text, risk in (
        ("mail.search", "Search the mail of a mailbox.", "read_only"),
        ("mail.send", "Send an email to somebody.", "write"),
        ("files.find", "Find files by name.", "read_only"),
        ("bank.pay", "Pay an invoice from the account.", "write"),
    )
)


def of_slice(found: Slice) -> Decision:
    """The slice's decision, made for ann of acme."""
    dumped = json.loads(found.model_dump_json())
    return decision(found.slice_id, goal=found.subgoal.goal, mutation=found.subgoal.mutation, body=dumped)


def count(ledger: Ledger, table: sa.Table) -> int:
    with ledger.database.engine.connect() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0


def with_ticket(ledger: Ledger, ticket: str, principal: str, created: Any = NOON, expires: Any = NOON) -> None:
    row = {"ticket": ticket, "created": created, "expires": expires, "tenant": "acme", "principal": principal}
    rest = {"tool_id": "bank.pay", "arguments_hash": "h", "slice_id": "s1", "kind": "confirm", "state": "pending"}
    with ledger.database.engine.begin() as connection:
        connection.execute(sa.insert(tickets).values(**row, **rest))


def with_observation(ledger: Ledger, handle: str, principal: str, created: Any = NOON, expires: Any = NOON) -> None:
    row = {"handle": handle, "created": created, "expires": expires, "tenant": "acme", "principal": principal}
    rest = {"slice_id": "s1", "tool_id": "t", "media_type": "text/plain", "size": 0, "body": b""}
    with ledger.database.engine.begin() as connection:
        connection.execute(sa.insert(observations).values(**row, **rest))

"""One turn after another over HTTP: a menu, the gate, the outcome, and the trace that training learns from."""

from __future__ import annotations

from pathlib import Path

from shop import Shop, error_of, shown

from data.jsonl import load_catalog
from data.mining.miner import mine
from data.store.ledger import Ledger
from data.trace_store import write_traces
from data.traces import Trace

REFUND = {"order": "A-17", "amount": 12.5}


def traces(shop: Shop) -> list[Trace]:
    assert shop.assembly.writer.drain(10)
    return list(Ledger(shop.assembly.database).traces())


def test_a_menu_offers_what_fits_and_the_way_out(shop: Shop) -> None:
    found = shop.select("refund the order")
    assert "shop.refund" in shown(found)
    assert {"help.topics", "toolcrib.search_tools"} <= set(shown(found)), "core tools are on every menu"
    assert [entry["position"] for entry in found["menu"]] == list(range(len(found["menu"])))
    assert found["recorded"] is True
    assert found["cached"] is False


def test_a_read_is_allowed_and_the_search_tool_too(shop: Shop) -> None:
    found = shop.select("list the orders")
    assert shop.check(found["slice_id"], "shop.orders")["verdict"] == "allow"
    assert shop.check(found["slice_id"], "toolcrib.search_tools", {"query": "cancel it"})["verdict"] == "allow"
    assert shop.check(found["slice_id"], "toolcrib.search_tools", {})["verdict"] == "invalid"


def test_arguments_that_do_not_fit_are_named_by_their_path(shop: Shop) -> None:
    found = shop.select()
    refused = shop.check(found["slice_id"], "shop.refund", {"order": "17", "amount": -1, "why": "x"})
    assert refused["verdict"] == "invalid"
    assert {problem["path"] for problem in refused["errors"]} == {"$", "$.order", "$.amount"}
    assert all(problem["message"] and problem["code"] for problem in refused["errors"])
    assert refused["ticket"] is None


def test_a_call_that_waits_for_a_person_goes_once_the_person_agrees(shop: Shop) -> None:
    slice_id = shop.select("cancel the order")["slice_id"]
    waits = shop.check(slice_id, "shop.cancel", REFUND)
    assert waits["verdict"] == "confirm"
    error_of(shop.post("/v1/confirm", {"ticket": waits["ticket"], "decision": "approve"}), 403, "not_permitted")
    assert shop.check(slice_id, "shop.cancel", REFUND, ticket=waits["ticket"])["verdict"] == "confirm"

    said = shop.ok("/v1/confirm", {"ticket": waits["ticket"], "decision": "approve", "note": "ok"}, "carl")
    assert (said["state"], said["tool_id"], said["expires"]) == ("approved", "shop.cancel", waits["expires"])
    other = shop.check(slice_id, "shop.cancel", REFUND | {"amount": 9000}, ticket=waits["ticket"])
    assert (other["verdict"], other["rule"]) == ("deny", "ticket_mismatch")
    reordered = dict(reversed(REFUND.items()))
    assert shop.check(slice_id, "shop.cancel", reordered, ticket=waits["ticket"])["verdict"] == "allow"
    again = shop.check(slice_id, "shop.cancel", REFUND, ticket=waits["ticket"])
    assert (again["verdict"], again["rule"]) == ("deny", "ticket_used")


def test_a_refusal_ends_the_call(shop: Shop) -> None:
    slice_id = shop.select("cancel the order")["slice_id"]
    ticket = shop.check(slice_id, "shop.cancel", REFUND)["ticket"]
    assert shop.ok("/v1/confirm", {"ticket": ticket, "decision": "refuse"}, "carl")["state"] == "refused"
    assert shop.check(slice_id, "shop.cancel", REFUND, ticket=ticket)["rule"] == "ticket_refused"
    error_of(shop.post("/v1/confirm", {"ticket": ticket, "decision": "approve"}, "carl"), 404, "unknown_ticket")


def test_a_dry_run_comes_first_then_a_person_then_the_call(shop: Shop) -> None:
    slice_id = shop.select()["slice_id"]
    dry = shop.check(slice_id, "shop.refund", REFUND)
    assert dry["verdict"] == "dry_run"
    assert shop.check(slice_id, "shop.refund", REFUND, ticket=dry["ticket"])["verdict"] == "dry_run", "not run yet"
    shop.report("dry", slice_id, "shop.refund", dry_run=True, ticket=dry["ticket"])
    waits = shop.check(slice_id, "shop.refund", REFUND, ticket=dry["ticket"])
    assert waits["verdict"] == "confirm"
    assert waits["ticket"] != dry["ticket"]
    shop.ok("/v1/confirm", {"ticket": waits["ticket"], "decision": "approve"}, "carl")
    assert shop.check(slice_id, "shop.refund", REFUND, ticket=waits["ticket"])["verdict"] == "allow"
    shop.report("real", slice_id, "shop.refund", arguments=REFUND)
    assert [trace.tool_id for trace in traces(shop)] == ["shop.refund"], "a dry run is no call"


def test_a_dry_run_that_fails_ends_the_call(shop: Shop) -> None:
    slice_id = shop.select()["slice_id"]
    ticket = shop.check(slice_id, "shop.refund", REFUND)["ticket"]
    shop.report(
        "dry", slice_id, "shop.refund", dry_run=True, ticket=ticket, outcome="failure", error_class="tool_error"
    )
    assert shop.check(slice_id, "shop.refund", REFUND, ticket=ticket)["rule"] == "ticket_refused"


def test_nobody_else_can_settle_a_dry_run(shop: Shop) -> None:
    slice_id = shop.select()["slice_id"]
    ticket = shop.check(slice_id, "shop.refund", REFUND)["ticket"]
    shop.report("dry", slice_id, "shop.refund", who="bob", dry_run=True, ticket=ticket)
    assert shop.check(slice_id, "shop.refund", REFUND, ticket=ticket)["verdict"] == "dry_run"


def test_an_outcome_counts_once_however_often_it_is_sent(shop: Shop) -> None:
    slice_id = shop.select("list the orders", trace_id="run-7", step=3)["slice_id"]
    line = {"key": "run-7/3", "slice_id": slice_id, "tool_id": "shop.orders", "outcome": "success", "latency_ms": 12.0}
    batch = {
        "outcomes": [line, line, {**line, "outcome": "failure", "error_class": "timeout"}, {**line, "key": "other"}]
    }
    for _ in range(2):
        kept = shop.ok("/v1/outcomes", batch)
        assert kept == {"results": [{"key": one["key"], "stored": "database"} for one in batch["outcomes"]]}
    found = traces(shop)
    assert [(one.trace_id, one.step, one.outcome, one.latency_ms) for one in found] == [
        ("run-7", 3, "success", 12.0)
    ] * 2


def test_an_outcome_of_somebody_elses_slice_makes_no_trace(shop: Shop) -> None:
    slice_id = shop.select("list the orders")["slice_id"]
    shop.report("k", slice_id, "shop.orders", who="bob")
    assert traces(shop) == []


def test_what_was_served_is_what_training_learns_from(shop: Shop, tmp_path: Path) -> None:
    for number, (goal, tool_id) in enumerate(
        [("list the orders of a customer", "shop.orders"), ("send an email to a customer", "mail.send")] * 3
    ):
        found = shop.select(f"{goal} {number}", trace_id=f"run-{number}")
        assert tool_id in shown(found)
        shop.report(f"run-{number}", found["slice_id"], tool_id, task_success=True)
    write_traces(tmp_path / "traces.parquet", traces(shop))
    mined = mine(tmp_path / "traces.parquet", load_catalog(shop.folder / "catalog.jsonl"))
    learned = {(row["tool_id"], row["reason"]) for row in mined.examples.to_pylist() if row["label"] == 1.0}
    assert {("shop.orders", "chosen_succeeded"), ("mail.send", "chosen_succeeded")} <= learned


def test_a_bare_yes_is_kept_as_what_it_meant(shop: Shop) -> None:
    messages = [
        {"role": "user", "content": "my parcel is broken"},
        {"role": "assistant", "content": "Shall I refund the order?"},
        {"role": "user", "content": "yes, do it"},
    ]
    found = shop.ok("/v1/select", {"messages": messages})
    assert "shop.refund" in shown(found)
    shop.report("k", found["slice_id"], "shop.refund")
    (trace,) = traces(shop)
    assert trace.goal == "Shall I refund the order?"

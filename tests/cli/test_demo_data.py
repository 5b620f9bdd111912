"""The demo's split never moves, and its permission table guards what it says."""

from __future__ import annotations

from data.cards import Risk, ToolCard
from data.catalog import Catalog
from data.importers.bfcl import Bfcl
from data.importers.report import ImportReport
from data.queries import Query
from data.traces import Trace
from toolcrib.demo_data import EVERYTHING, guarded, is_held_out, split


def card(tool_id: str, risk: Risk) -> ToolCard:
    return ToolCard(tool_id=tool_id, name=tool_id, risk=risk)


def test_the_held_out_share_is_two_fifths_and_fixed() -> None:
    held_out = [number for number in range(10_000) if is_held_out(f"q{number}")]
    assert 3_850 < len(held_out) < 4_150
    assert [number for number in held_out if number < 12] == [0, 1, 7]


def test_no_request_is_on_both_sides_of_the_split() -> None:
    ids = [f"r{n}" for n in range(50)]
    source = Bfcl(
        catalog=Catalog([]),
        traces=tuple(Trace(trace_id=i, goal="g", step=step) for i in ids for step in (0, 1)),
        queries=tuple(Query(qid=i, text="g") for i in ids),
        report=ImportReport(source="test", format="bfcl", read=50, imported=50),
        functions=0,
    )
    sides = split(source)
    trained, held_out = {t.trace_id for t in sides.traces}, {q.qid for q in sides.queries}
    assert trained | held_out == set(ids)
    assert not trained & held_out
    assert len(sides.traces) == 2 * len(trained)


def test_the_table_guards_money_destruction_and_a_connection() -> None:
    cards = [
        card("bank_account.transfer", Risk.WRITE),
        card("bank.get_balance", Risk.READ_ONLY),
        card("delete_team", Risk.DESTRUCTIVE),
        card("uber.ride", Risk.READ_ONLY),
        card("weather.now", Risk.READ_ONLY),
    ]
    needs = [(c.requires.scopes, c.requires.connections) for c in guarded(cards)]
    assert needs == [(("payments",), ()), ((), ()), (("admin",), ()), ((), ("uber",)), ((), ())]


def test_the_unrestricted_caller_holds_all_that_the_table_asks_for() -> None:
    for guarded_card in guarded([card("uber.delete_payment", Risk.DESTRUCTIVE)]):
        assert set(guarded_card.requires.scopes) <= set(EVERYTHING.scopes)
        assert set(guarded_card.requires.connections) <= set(EVERYTHING.connections)

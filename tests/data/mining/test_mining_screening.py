"""Screening: negatives that are right after all, requests that repeat, tools that crowd out the rest."""

from __future__ import annotations

import pytest
from mining_log import CATALOG, at, call, catalog_of, menu, mined, rows

from data.catalog import Catalog
from data.mining import screening
from data.mining.miner import Mined
from data.mining.options import MiningOptions

EQUIVALENTS = {"maps.route": ("sheets.append",)}
LOG = (
    # one trace in which files.read failed and mail.send served; another in which files.read served the same
    call("files.read", "tool_error", trace_id="served-1", goal="open it", step=1),
    call("mail.send", trace_id="served-1", goal="open it", step=2),
    call("files.read", trace_id="served-2", goal="Open  it"),
    # two servers with a `search`
    call(
        "mail.search", trace_id="name", goal="find the invoice", menu=menu("mail.search", "files.search", "maps.route")
    ),
    # stated equivalents, either way round
    call("maps.route", trace_id="twin-1", goal="note the way", menu=menu("sheets.append", "maps.route", "mail.send")),
    call(
        "sheets.append", trace_id="twin-2", goal="note the sum", menu=menu("sheets.append", "maps.route", "mail.send")
    ),
    # a loop: fifty times the same request in as many traces, and twenty calls in one
    *(call("mail.send", trace_id=f"loop-{n:02}", goal="ping", ts=at(n)) for n in range(50)),
    *(call("files.read", trace_id="one-loop", goal="poll", step=n) for n in range(20)),
    # the same request of two tenants, and of one tenant with firmer and weaker evidence
    call("mail.send", trace_id="a", tenant="acme", goal="pay"),
    call("mail.send", trace_id="b", tenant="birch", goal="pay"),
    call("files.read", "validation", trace_id="weak", goal="print", ts=at(0)),
    call("files.read", trace_id="firm", goal="print", ts=at(9)),
    # nothing fits: twice for one tenant, once for another; and once against a call that served
    call(None, "unknown", trace_id="none-1", goal="brew a coffee", ts=at(2)),
    call(None, "unknown", trace_id="none-2", goal="Brew a coffee", ts=at(1)),
    call(None, "unknown", trace_id="none-3", tenant="acme", goal="brew a coffee"),
    call(None, "unknown", trace_id="none-4", tenant="acme", goal="pay"),
    call(None, "unknown", trace_id="none-5", tenant="cedar", goal="pay"),
)


@pytest.fixture(scope="module")
def screened() -> Mined:
    return mined(LOG, equivalents=EQUIVALENTS)


def negatives(mining: Mined, goal: str) -> list[str]:
    return [row["tool_id"] for row in rows(mining) if row["goal"] == goal and row["label"] == 0.0]


def test_a_tool_that_served_the_goal_elsewhere_is_no_negative_for_it(screened: Mined) -> None:
    assert negatives(screened, "open it") == []
    assert screened.preferences.num_rows == 0
    assert screened.report.found["failed_then_other_succeeded"] == 1
    assert screened.report.dropped[screening.SERVED] == 1


def test_a_tool_of_the_same_name_on_another_server_is_no_negative(screened: Mined) -> None:
    assert negatives(screened, "find the invoice") == ["maps.route"]
    assert screened.report.dropped[screening.SAME_NAME] == 1


def test_a_stated_equivalent_is_no_negative_in_either_direction(screened: Mined) -> None:
    assert negatives(screened, "note the way") == ["mail.send"]
    assert negatives(screened, "note the sum") == ["mail.send"]
    assert screened.report.dropped[screening.EQUIVALENT] == 2


def test_the_same_request_logged_fifty_times_counts_once_and_is_the_earliest(screened: Mined) -> None:
    assert [row["trace_id"] for row in rows(screened) if row["goal"] == "ping"] == ["loop-00"]


def test_a_loop_of_calls_inside_a_decision_is_one_example(screened: Mined) -> None:
    assert [row["step"] for row in rows(screened) if row["goal"] == "poll"] == [0]
    assert screened.report.calls_folded == 19


def test_the_same_request_of_two_tenants_counts_for_each(screened: Mined) -> None:
    assert [row["tenant"] for row in rows(screened) if row["goal"] == "pay"] == ["acme", "birch"]


def test_of_a_repeated_request_the_firmest_evidence_stays(screened: Mined) -> None:
    assert [(row["trace_id"], row["reason"]) for row in rows(screened) if row["goal"] == "print"] == [
        ("firm", "chosen_succeeded")
    ]


def test_no_tool_requests_count_once_a_tenant_and_not_where_a_tool_served_them(screened: Mined) -> None:
    assert [(row["trace_id"], row["tenant"], row["goal"]) for row in screened.no_tool.to_pylist()] == [
        ("none-2", "", "Brew a coffee"),
        ("none-3", "acme", "brew a coffee"),
        ("none-5", "cedar", "pay"),
    ]
    assert screened.report.dropped[screening.NO_TOOL_SERVED] == 1


def test_what_was_found_is_kept_or_accounted_for(screened: Mined) -> None:
    report = screened.report
    assert sum(report.found.values()) == sum(report.examples.values()) + report.no_tool + sum(report.dropped.values())


def test_a_repeated_request_counts_as_often_as_the_cap_says() -> None:
    log = [call("mail.send", trace_id=f"loop-{n}", goal="ping", ts=at(n)) for n in range(9)]
    assert [row["trace_id"] for row in rows(mined(log, repeat_cap=3))] == ["loop-0", "loop-1", "loop-2"]


POPULAR = [
    *(call("mail.send", trace_id=f"p{n:02}", goal=f"send letter {n}") for n in range(30)),
    *(
        call("files.read", trace_id=f"q{n}", goal=f"read page {n}", menu=menu("files.read", "maps.route"))
        for n in range(4)
    ),
    call("maps.route", "tool_error", trace_id="r", goal="read the map", step=1),
    call("files.read", trace_id="r", goal="read the map", step=2),
]


def test_a_popular_tool_keeps_as_many_examples_as_its_cap_and_the_others_theirs() -> None:
    mining = mined(POPULAR, positives_per_tool=8, negatives_per_tool=2)
    kept = [row["tool_id"] for row in rows(mining) if row["label"] == 1.0]
    assert (kept.count("mail.send"), kept.count("files.read")) == (8, 5)
    assert mining.report.dropped == {screening.OVER_POSITIVES: 22, screening.OVER_NEGATIVES: 3}
    against = [row["reason"] for row in rows(mining) if row["label"] == 0.0]
    assert sorted(against) == ["failed_then_other_succeeded", "shown_not_chosen"]
    assert mining.preferences.num_rows == 1


def test_what_a_cap_keeps_of_a_tools_history_does_not_depend_on_how_calls_ended() -> None:
    log = [
        call("mail.send", "success" if n % 4 else "tool_error", trace_id=f"p{n:03}", goal=f"send letter {n}")
        for n in range(400)
    ]
    whole = mined(log, positives_per_tool=20, negatives_per_tool=20).history.to_pylist()
    assert sum(row["won"] for row in whole) == 300, "the caps of examples are not those of history"
    kept = mined(log, history_per_tool=100).history.to_pylist()
    assert len(kept) == 100
    assert sum(row["won"] for row in kept) == pytest.approx(75, abs=15)


def test_a_request_repeated_by_one_tenant_is_in_a_tools_history_once() -> None:
    log = [call("mail.send", "tool_error", trace_id=f"t{n}", goal="ping", tenant="acme") for n in range(9)]
    log += [call("mail.send", goal="ping", trace_id="other")]
    ended = mined(log).history.to_pylist()
    assert [(row["tenant"], row["won"]) for row in ended] == [("", True), ("acme", False)]


def test_the_seed_decides_which_examples_a_cap_keeps() -> None:
    first, other = (mined(POPULAR, positives_per_tool=8, seed=seed).examples for seed in (1, 2))
    assert not first.equals(other)
    assert first.num_rows == other.num_rows


CARDS = Catalog(
    card.model_copy(
        update={"summary": "Plan a way", "examples": ("fastest way to Bern", "FASTEST way to bern"), "aliases": ("",)}
    )
    if card.tool_id == "maps.route"
    else card.model_copy(update={"summary": "Sends a letter"})
    for card in catalog_of("maps.route", "mail.send", "files.read")
)


def test_a_card_speaks_for_a_tool_that_no_trace_speaks_for() -> None:
    mining = mined([call("mail.send"), call("files.read", trace_id="t2")], CARDS)
    spoken = rows(mining, "card_text_positive")
    assert [(row["trace_id"], row["goal"], row["tool_id"], row["step"]) for row in spoken] == [
        ("card:maps.route", "Plan a way", "maps.route", 0),
        ("card:maps.route", "fastest way to Bern", "maps.route", 1),
    ]
    assert {(row["label"], row["weight"], row["ts"]) for row in spoken} == {
        (1.0, MiningOptions().card_text_weight, None)
    }
    assert mining.report.tools_with_positive == 2
    assert mining.report.tools_without_positive == ("maps.route",)


def test_what_a_card_says_of_itself_is_no_negative_for_its_tool() -> None:
    log = [call("mail.send", goal="fastest way to bern", menu=menu("mail.send", "maps.route"))]
    mining = mined(log, CARDS)
    assert negatives(mining, "fastest way to bern") == []
    assert negatives(mined(log, CARDS, card_text_weight=0.0), "fastest way to bern") == ["maps.route"]


def test_equivalents_may_name_tools_that_the_catalog_does_not_have() -> None:
    log = [call("mail.send", menu=menu("mail.send", "files.read"))]
    assert negatives(mined(log, CATALOG, equivalents={"gone.a": ("gone.b",)}), "send the report") == ["files.read"]

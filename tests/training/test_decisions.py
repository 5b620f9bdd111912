"""Decisions: mined rows gathered by request, each on one side."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest

from data.cards import ToolCard
from data.catalog import Catalog
from data.mining.miner import EXAMPLE_SCHEMA, HISTORY_SCHEMA, NO_TOOL_SCHEMA, PREFERENCE_SCHEMA, Mined, mine
from data.mining.options import MiningOptions
from data.trace_store import write_traces
from data.traces import Trace
from training.decisions import Decision, gather_decisions, gather_history, same_names, times

START = datetime(2026, 1, 1, tzinfo=UTC)


def row(trace: str, goal: str, tool: str, label: float = 1.0, reason: str = "chosen_succeeded", **rest: Any) -> Any:
    return {
        "trace_id": trace,
        "step": 0,
        "ts": START,
        "tenant": "",
        "goal": goal,
        "tool_id": tool,
        "label": label,
        "weight": 1.0,
        "reason": reason,
        **rest,
    }


def gathered(
    rows: list[Any], nothing: tuple[Any, ...] = (), *, valid_share: float = 0.0, cold_share: float = 0.0
) -> list[Decision]:
    mined = Mined(
        pa.Table.from_pylist(rows, EXAMPLE_SCHEMA),
        pa.Table.from_pylist([], PREFERENCE_SCHEMA),
        pa.Table.from_pylist(list(nothing), NO_TOOL_SCHEMA),
        pa.Table.from_pylist([], HISTORY_SCHEMA),
        report=None,  # type: ignore[arg-type]
    )
    return gather_decisions(mined, valid_share=valid_share, cold_share=cold_share, seed=0)


def mined_of(traces: list[Trace], catalog: Catalog, card_text_weight: float) -> Mined:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "traces.parquet"
        write_traces(path, traces)
        return mine(path, catalog, options=MiningOptions(card_text_weight=card_text_weight))


def test_rows_of_one_request_become_one_decision() -> None:
    (decision,) = gathered(
        [
            row("t", "send it", "mail", weight=0.5),
            row("t", "send it", "post"),
            row("t", "send it", "fax", 0.0, "shown_not_chosen"),
            row("t", "send it", "pigeon", 0.0, "failed_then_other_succeeded", weight=0.25),
        ]
    )
    assert decision.tools == (("mail", 0.5), ("post", 1.0))
    assert decision.wrong == (("fax", 1.0), ("pigeon", 0.25))
    assert (decision.side, decision.asked, decision.previous) == ("train", True, None)
    assert decision.menu_known, "a tool was passed over, so the menu was logged"


def test_a_request_with_negatives_alone_is_no_decision() -> None:
    assert gathered([row("t", "send it", "fax", 0.0, "shown_not_chosen")]) == []


def test_the_same_words_are_one_group_within_a_tenant_only() -> None:
    made = gathered(
        [
            row("t1", "Send  IT", "mail"),
            row("t2", "send it", "mail"),
            row("t3", "send it", "mail", tenant="other"),
            row("t4", "read it", "mail"),
        ]
    )
    groups = {decision.goal + decision.tenant: decision.group for decision in made}
    assert groups["Send  IT"] == groups["send it"]
    assert len({groups["send it"], groups["send itother"], groups["read it"]}) == 3


def test_what_nothing_fitted_is_a_decision_without_tools() -> None:
    nothing = {"trace_id": "n", "step": 0, "ts": START, "tenant": "x", "goal": "sing"}
    made = gathered([row("t", "send it", "mail")], (nothing,))
    assert made[-1].tools == ()
    assert (made[-1].goal, made[-1].tenant, made[-1].asked) == ("sing", "x", True)


def test_ends_of_calls_share_the_group_of_what_asks_the_same_and_tell_nothing_where_none_failed() -> None:
    traces = [
        Trace(trace_id="a", goal="Send it", tool_id="mail.send", outcome="success"),
        Trace(trace_id="b", goal="send  it", tool_id="post.send", outcome="failure", error_class="tool_error"),
        Trace(trace_id="c", goal="sing", tool_id="post.send", outcome="failure", error_class="tool_error"),
        Trace(trace_id="d", goal="SING", tool_id="mail.send", outcome="failure", error_class="tool_error"),
    ]
    catalog = Catalog(ToolCard(tool_id=tool, name="send", description="d") for tool in ("mail.send", "post.send"))
    mined = mined_of(traces, catalog, 0.0)
    (decision,) = gather_decisions(mined, valid_share=0.0, cold_share=0.0, seed=0)
    ended = gather_history(mined, [decision])
    assert [(one.goal, one.tool, one.won) for one in ended] == [
        ("Send it", "mail.send", True),
        ("send  it", "post.send", False),
        ("sing", "post.send", False),
        ("SING", "mail.send", False),
    ]
    groups = [one.group for one in ended]
    assert groups[0] == groups[1] == decision.group
    assert groups[2] == groups[3] != decision.group
    assert gather_history(mined_of(traces[:1], catalog, 0.0), [decision]) == []


def test_card_text_was_asked_by_nobody_and_teaches_only_the_encoders() -> None:
    made = gathered(
        [
            *(row(f"t{i}", f"goal {i}", "mail", ts=START + timedelta(days=i)) for i in range(8)),
            row("card:fax", "send a fax", "fax", reason="card_text_positive", ts=None),
        ],
        valid_share=0.9,
    )
    of_card = next(decision for decision in made if decision.goal == "send a fax")
    assert (of_card.asked, of_card.side) == (False, "train")
    assert {decision.side for decision in made} == {"train", "valid"}


def test_the_latest_requests_are_held_out() -> None:
    made = gathered(
        [row(f"t{i}", f"goal {i}", "mail", ts=START + timedelta(days=i)) for i in range(10)], valid_share=0.3
    )
    assert sorted(d.goal for d in made if d.side == "valid") == ["goal 7", "goal 8", "goal 9"]


@pytest.mark.parametrize("cold_share", [0.25, 0.5])
def test_a_cold_tool_is_on_no_side_but_its_own(cold_share: float) -> None:
    rows = [row(f"{tool}{i}", f"{tool} goal {i}", tool) for tool in "abcdefgh" for i in range(3)]
    rows += [row(f"{tool}{0}", f"{tool} goal 0", other, 0.0, "shown_not_chosen") for tool in "abcd" for other in "efgh"]
    made = gathered(rows, valid_share=0.3, cold_share=cold_share)
    cold = {tool for decision in made if decision.side == "cold" for tool, _ in decision.tools}
    assert len(cold) == int(8 * cold_share)
    for decision in made:
        if decision.side != "cold":
            assert not cold & {tool for tool, _ in decision.tools}
        assert not cold & {tool for tool, _ in decision.wrong}, "as a negative a cold tool would be taught to be wrong"


def test_the_tool_of_the_step_before_is_known_and_never_the_one_of_the_same_request() -> None:
    made = gathered(
        [
            row("t", "find it", "search", step=1),
            row("t", "send it", "mail", step=2),
            row("t", "send it", "post", step=3),
            row("u", "send it", "mail", step=0),
        ]
    )
    previous = {(d.goal, d.tools[0][0], len(d.tools)): d.previous for d in made}
    assert previous == {("find it", "search", 1): None, ("send it", "mail", 2): "search", ("send it", "mail", 1): None}


def test_tools_of_one_name_are_never_each_others_negatives() -> None:
    catalog = Catalog(
        ToolCard(tool_id=tool_id, name=tool_id.partition(".")[2]) for tool_id in ("a.search", "b.search", "a.read")
    )
    assert same_names(catalog) == {
        "a.search": frozenset(["a.search", "b.search"]),
        "b.search": frozenset(["a.search", "b.search"]),
        "a.read": frozenset(["a.read"]),
    }


@pytest.mark.parametrize("weight", [0.3, 1.0, 2.5, 10.0])
def test_an_example_is_taken_as_often_as_it_weighs(weight: float) -> None:
    draw = random.Random(0)
    taken = [times(weight, draw) for _ in range(4000)]
    assert sum(taken) / 4000 == pytest.approx(weight, abs=0.04)
    assert max(taken) - min(taken) <= 1


def test_a_tool_without_a_trace_teaches_the_encoders_by_its_card_and_one_with_a_trace_by_its_log() -> None:
    catalog = Catalog(
        [ToolCard(tool_id=name, name=name, examples=(f"an example of {name}",)) for name in ("fax", "mail")]
    )
    traces = [Trace(trace_id=f"t{n}", goal=f"send letter {n}", tool_id="mail", outcome="success") for n in range(3)]
    with_cards, without = (
        gather_decisions(mined_of(traces, catalog, weight), valid_share=0.0, cold_share=0.0, seed=0)
        for weight in (0.3, 0.0)
    )
    made = {(one.goal, *one.tools) for one in with_cards if not one.asked}
    assert made == {("an example of fax", ("fax", 0.3))}
    assert {tool for one in without for tool, _ in one.tools} == {"mail"}, "nothing would teach what the fax is for"

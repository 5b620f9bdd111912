"""Chances that a log gives, gives wrongly, or keeps to itself; and clocks that run backwards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.cards import ToolCard
from data.catalog import Catalog
from data.errors import InputError
from data.mining.miner import mine
from data.mining.options import MiningOptions
from data.mining.propensities import effective_size, propensity_counts
from data.trace_store import read_traces, write_traces
from data.traces import Shown, Trace

CATALOG = Catalog([ToolCard(tool_id="a", name="a"), ToolCard(tool_id="b", name="b")])

START = datetime(2026, 3, 1, tzinfo=UTC)


def counts(*rows: dict[str, Any]) -> dict[str, int]:
    """Of rows with `tool`, `menu` ((tool, chance), ...), `trace`, `step` and `minute`."""
    entry = pa.struct([("tool_id", pa.string()), ("position", pa.int64()), ("propensity", pa.float64())])
    schema = pa.schema(
        [
            ("trace_id", pa.string()),
            ("step", pa.int64()),
            ("ts", pa.timestamp("us", tz="UTC")),
            ("tool_id", pa.string()),
            ("menu", pa.list_(entry)),
        ]
    )
    made = [
        {
            "trace_id": row.get("trace", "t"),
            "step": row.get("step", 0),
            "ts": START + timedelta(minutes=row["minute"]) if "minute" in row else None,
            "tool_id": row.get("tool"),
            "menu": [{"tool_id": t, "position": p, "propensity": c} for p, (t, c) in enumerate(row["menu"])]
            if "menu" in row
            else None,
        }
        for row in rows
    ]
    table = ibis.memtable(pa.Table.from_pylist(made, schema=schema))
    return propensity_counts(table, MiningOptions())


def effective(weights: list[float]) -> float:
    return effective_size(ibis.memtable(pa.table({"weight": pa.array(weights, pa.float64())})))


def test_calls_without_a_propensity_are_counted_as_unknown() -> None:
    found = counts(
        {"tool": "a"},
        {"tool": "a", "menu": [("b", 0.5)]},
        {"tool": "a", "menu": [("a", None)]},
        {"tool": "a", "menu": [("a", 1.0)]},
        {"menu": [("a", 0.5)]},
    )
    assert (found["calls"], found["unknown"], found["improper"], found["by_chance"]) == (4, 3, 0, 0)


@pytest.mark.parametrize("chance", [0.0, -0.5, 1.5, float("nan"), float("inf")])
def test_what_is_no_chance_is_counted_as_improper(chance: float) -> None:
    found = counts({"tool": "a", "menu": [("a", chance)]}, {"tool": "a", "menu": [("a", 0.5)]})
    assert (found["unknown"], found["improper"], found["by_chance"]) == (0, 1, 1)


def test_chances_at_the_bound_of_their_inverse_are_counted_as_clipped() -> None:
    found = counts(*({"tool": "a", "menu": [("a", chance)]} for chance in (0.01, 0.1, 0.11)))
    assert (found["by_chance"], found["clipped"]) == (3, 2)


def test_a_trace_whose_clock_runs_backwards_is_counted_once() -> None:
    found = counts(
        {"trace": "fine", "step": 0, "minute": 0},
        {"trace": "fine", "step": 1, "minute": 1},
        {"trace": "turned", "step": 0, "minute": 9},
        {"trace": "turned", "step": 1, "minute": 5},
        {"trace": "turned", "step": 2, "minute": 1},
        {"trace": "timeless", "step": 0},
    )
    assert found["clocks_backwards"] == 1


def test_an_empty_log_has_nothing_to_count() -> None:
    assert set(counts({"minute": 1}).values()) == {0}


@settings(deadline=None, max_examples=20)
@given(st.lists(st.floats(0.01, 10.0), min_size=1, max_size=50))
def test_equal_weights_are_worth_their_number_and_others_less(weights: list[float]) -> None:
    assert effective(weights) <= len(weights) * (1 + 1e-9)
    assert effective([weights[0]] * len(weights)) == pytest.approx(len(weights))


def test_no_weights_are_worth_nothing() -> None:
    assert effective([]) == 0.0


def logged(path: Path, chances: list[float]) -> Path:
    """A trace file as another program may have written it, one successful call a chance of its tool."""
    traces = [
        Trace(
            trace_id=f"t{n}", goal=f"goal {n}", tool_id="a", outcome="success", menu=(Shown(tool_id="a", position=0),)
        )
        for n in range(len(chances))
    ]
    write_traces(path, traces)
    rows = pq.read_table(path).to_pylist()
    for row, chance in zip(rows, chances, strict=True):
        row["menu"][0]["propensity"] = chance
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path)
    return path


def test_what_is_no_chance_weighs_as_if_shown_for_certain_and_the_report_says_so(tmp_path: Path) -> None:
    made = mine(logged(tmp_path / "t.parquet", [0.0, 7.0, float("nan"), 0.2, 0.001]), CATALOG)
    weights = dict(zip(made.examples["goal"].to_pylist(), made.examples["weight"].to_pylist(), strict=True))
    assert [weights[f"goal {n}"] for n in range(5)] == [1.0, 1.0, 1.0, 5.0, 10.0]
    assert made.report.propensities | {"calls": 5, "improper": 3, "by_chance": 2, "clipped": 1} == (
        made.report.propensities
    )
    assert made.report.effective_positives == pytest.approx(18**2 / 128)


def test_a_log_without_propensities_is_mined_and_the_report_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_traces(path, [Trace(trace_id=f"t{n}", goal=f"g {n}", tool_id="a", outcome="success") for n in range(4)])
    report = mine(path, CATALOG).report
    assert (report.propensities["calls"], report.propensities["unknown"]) == (4, 4)
    assert report.effective_positives == 4.0


def test_reading_traces_refuses_what_is_no_chance_by_row_and_field(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="propensity") as refused:
        read_traces(logged(tmp_path / "t.parquet", [1.0, 0.0]))
    assert refused.value.line == 2

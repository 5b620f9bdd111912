"""Chances that a log gives, gives wrongly, or keeps to itself; and clocks that run backwards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import ibis
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.mining.options import MiningOptions
from data.mining.propensities import effective_size, propensity_counts

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


@given(st.lists(st.floats(0.01, 10.0), min_size=1, max_size=50))
def test_equal_weights_are_worth_their_number_and_others_less(weights: list[float]) -> None:
    assert effective_size(weights) <= len(weights) * (1 + 1e-9)
    assert effective_size([weights[0]] * len(weights)) == pytest.approx(len(weights))
    assert effective_size([]) == 0.0

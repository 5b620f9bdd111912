"""The evaluation table says what the report says, and a dash for what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.reports import show_evaluation


def group(n: int, ndcg: float) -> dict[str, Any]:
    recalls = {f"recall@{k}": 0.25 for k in (1, 3, 5, 10, 40)}
    return {"n": n, "ndcg@10": ndcg, "mrr": 0.5, "ndcg@10_interval": [ndcg - 0.1, ndcg + 0.1], **recalls}


REPORT: dict[str, Any] = {
    "rungs": {
        "bm25": {"all": group(3, 0.5), "warm": group(2, 0.4), "cold": group(1, 0.6)},
        "selector": {"all": group(3, 0.75), "warm": group(2, 0.8), "cold": {"n": 0}},
    },
    "gains": {"bm25": {"all": {"gain": 0.25, "interval": [0.05, 0.4]}}},
    "abstention": {"auroc": 0.7, "precision": None, "recall": 0.0},
    "calibration": {"ece": 0.031, "bins": [{"predicted": 0.1, "observed": 0.1, "count": 3}]},
    "chain": {"R_decompose": None, "R_retrieve": 0.9},
    "latency_ms": {"mask": {"p50": 0.1, "p95": 0.25}},
}


def test_rungs_intervals_gains_and_times_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    show_evaluation(REPORT)
    out = capsys.readouterr().out
    selector = next(line for line in out.splitlines() if "selector" in line and "0.750" in line)
    assert "0.750 [0.650, 0.850]" in selector
    assert "cold (n = 1)" in out
    assert "selector against bm25 +0.250 [+0.050, +0.400]" in out
    assert "abstention: auroc 0.700, precision -, recall 0.000" in out
    assert "calibration: ece 0.031\n" in out
    assert "chain: R_decompose -, R_retrieve 0.900" in out
    assert "0.25" in next(line for line in out.splitlines() if "mask" in line)


def test_an_empty_group_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    show_evaluation({"rungs": {"bm25": {"all": group(1, 0.5), "warm": group(1, 0.5)}, "rrf": {"all": {"n": 0}}}})
    row = next(line for line in capsys.readouterr().out.splitlines() if "rrf" in line)
    assert row.count("-") >= 2


def test_counterfactual_estimates_come_with_their_doubts(capsys: pytest.CaptureFixture[str]) -> None:
    estimate = {"value": 0.75, "interval": [0.7, 0.8], "gain": 0.25, "gain_interval": [0.2, 0.3]}
    nothing = {"value": None, "interval": None, "gain": None, "gain_interval": None}
    section = {
        "logged": {"value": 0.5, "interval": [0.4, 0.6]},
        "estimates": {"clipped": estimate, "self_normalised": nothing},
        "because": ["there are only 7 decisions"],
    }
    show_evaluation({"rungs": {}, "counterfactual": section})
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if "clipped" in line)
    assert "0.750 [0.700, 0.800]" in row
    assert "+0.250 [+0.200, +0.300]" in row
    assert "0.500 [0.400, 0.600]" in next(line for line in out.splitlines() if "logged" in line)
    assert "do not believe the estimates: there are only 7 decisions" in out


def test_what_was_not_estimated_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    section = {"estimates": {}, "because": ["no decision can be replayed: no menu was logged (3)"]}
    show_evaluation({"rungs": {}, "counterfactual": section})
    assert "not estimated: no decision can be replayed: no menu was logged (3)" in capsys.readouterr().out

"""Figures hold what the report says, and nothing for what it does not."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from training.plots import evaluation_figures, latency_figure, reliability_figure, rungs_figure, save_figures


def group(n: int, ndcg: float) -> dict[str, Any]:
    return {"n": n, "ndcg@10": ndcg, "ndcg@10_interval": [ndcg - 0.03, ndcg + 0.03]}


def report() -> dict[str, Any]:
    names = ("bm25", "dense", "rrf", "retriever", "usage", "reranker", "selector")
    return {
        "rungs": {
            name: {
                "all": group(900, 0.5 + i / 20),
                "warm": group(620, 0.48 + i / 18),
                "cold": group(280, 0.55 + i / 40),
            }
            for i, name in enumerate(names)
        },
        "chain": {"R_retrieve": 0.93, "R_filter": 0.99, "R_menu": 0.97, "R_select": 0.9, "product": 0.804},
        "calibration": {
            "ece": 0.031,
            "bins": [
                {"predicted": p / 15, "observed": min(1.0, (p / 15) ** 1.1), "count": 60 + 10 * (p % 4)}
                for p in range(15)
            ],
        },
        "latency_ms": {
            stage: {"p50": p50, "p95": 1.6 * p50}
            for stage, p50 in (("mask", 0.05), ("encode", 9.0), ("retrieve", 1.2), ("rerank", 8.0), ("total", 20.0))
        },
    }


def texts(figure: Figure) -> list[str]:
    axes = figure.axes[0]
    shown = [t.get_text() for t in (*axes.texts, *axes.get_yticklabels(), axes.title)]
    return [
        *shown,
        axes.get_title(loc="left"),
        *(t.get_text() for legend in figure.legends for t in legend.get_texts()),
    ]


def test_a_full_report_gives_four_images() -> None:
    figures = evaluation_figures(report())
    assert sorted(figures) == ["chain.png", "latency.png", "reliability.png", "rungs.png"]
    for figure in figures.values():
        image = BytesIO()
        figure.savefig(image, format="png")
        assert image.getvalue().startswith(b"\x89PNG")


def test_figures_are_saved_as_images_and_nothing_else(tmp_path: Path) -> None:
    paths = save_figures(report(), tmp_path / "plots")
    assert sorted((tmp_path / "plots").iterdir()) == sorted(paths)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_an_empty_report_gives_no_figure() -> None:
    empty = {"rungs": {}, "chain": {"product": None}, "calibration": {"ece": None}, "latency_ms": {}}
    assert evaluation_figures(empty) == {}


def test_every_rung_is_named_with_its_figures() -> None:
    shown = texts(rungs_figure(report()["rungs"]))
    assert {"bm25", "selector", "0.500", "0.800"} <= set(shown)
    assert "all (n = 900)" in shown
    assert "tools never seen (n = 280)" in shown


def test_a_group_without_queries_is_left_out() -> None:
    rungs = {"bm25": {"all": group(3, 0.4), "warm": group(3, 0.4), "cold": {"n": 0}}}
    assert not any("never seen" in text for text in texts(rungs_figure(rungs)))


def test_a_rung_without_an_interval_is_still_drawn() -> None:
    assert "0.400" in texts(rungs_figure({"bm25": {"all": {"n": 3, "ndcg@10": 0.4}}}))


@pytest.mark.parametrize(("error", "said"), [(0.031, "calibration error 0.031"), (None, "Relevance, said and true")])
def test_the_reliability_diagram_states_the_error_where_there_is_one(error: float | None, said: str) -> None:
    calibration = {**report()["calibration"], "ece": error}
    assert any(said in text for text in texts(reliability_figure(calibration)))


def test_latency_shows_both_percentiles_of_each_stage() -> None:
    assert "9 / 14.4" in texts(latency_figure(report()["latency_ms"]))


def test_a_stage_too_fast_to_measure_is_drawn_all_the_same() -> None:
    assert "0 / 0.01" in texts(latency_figure({"mask": {"p50": 0.0, "p95": 0.01}}))

"""Figures of an evaluation: rungs, recall chain, reliability and latency, each from the dict that `evaluate` gives.

Beside the contract's keys two optional ones are drawn where they are there: `rungs.R.G["ndcg@10_interval"]`, the
[low, high] of the mean, and `calibration["bins"]`, a list of {predicted, observed, count}.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from data.atomic import replacing

GROUPS = ("all", "warm", "cold")

_INK = "#1f2430"
_MUTED = "#6b7280"
_GRID = "#e3e6ea"
_COLOR = {"all": "#1f2430", "warm": "#c2571a", "cold": "#2563a8"}
_MARKER = {"all": "o", "warm": "s", "cold": "D"}
_LABEL = {"all": "all", "warm": "tools seen in training", "cold": "tools never seen"}


def evaluation_figures(report: Mapping[str, Any]) -> dict[str, Figure]:
    """File name -> figure, for every part of the report that holds something to draw."""
    figures: dict[str, Figure] = {}
    if report.get("rungs"):
        figures["rungs.png"] = rungs_figure(report["rungs"])
    if any(_is_number(value) for value in (report.get("chain") or {}).values()):
        figures["chain.png"] = chain_figure(report["chain"])
    if (report.get("calibration") or {}).get("bins"):
        figures["reliability.png"] = reliability_figure(report["calibration"])
    if report.get("latency_ms"):
        figures["latency.png"] = latency_figure(report["latency_ms"])
    return figures


def save_figures(report: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the figures as PNG files into `folder`, each whole or not at all; gives their paths."""
    paths = []
    for name, figure in evaluation_figures(report).items():
        paths.append(folder / name)
        with replacing(paths[-1]) as fresh:
            figure.savefig(fresh, format="png")
    return paths


def rungs_figure(rungs: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Figure:
    """nDCG@10 of each rung for all, warm and cold, with intervals; the first rung on top, empty groups left out."""
    figure, axes = _canvas(7.2, 0.62 * len(rungs) + 1.9)
    groups = [group for group in GROUPS if any(rows.get(group, {}).get("n") for rows in rungs.values())]
    for group, offset in zip(groups, (-0.2, 0.0, 0.2), strict=False):
        points = [
            (position + offset, rows[group])
            for position, rows in enumerate(rungs.values())
            if rows.get(group, {}).get("n")
        ]
        for y, row in points:
            interval = row.get("ndcg@10_interval")
            if interval:
                axes.plot(interval, [y, y], color=_COLOR[group], linewidth=2, alpha=0.45, solid_capstyle="butt")
            axes.annotate(
                f"{row['ndcg@10']:.3f}",
                (interval[1] if interval else row["ndcg@10"], y),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=_COLOR[group],
            )
        counts = {int(row["n"]) for _, row in points}
        count = f"n = {counts.pop()}" if len(counts) == 1 else "n differs"
        axes.scatter(
            [row["ndcg@10"] for _, row in points],
            [y for y, _ in points],
            color=_COLOR[group],
            marker=_MARKER[group],
            s=28,
            zorder=3,
            label=f"{_LABEL[group]} ({count})",
        )
    axes.set_yticks(range(len(rungs)), list(rungs))
    axes.set_ylim(len(rungs) - 0.5, -0.5)
    axes.set_xlim(0, 1.08)
    axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    _titled(axes, "Ranking quality by rung", "nDCG@10")
    axes.grid(axis="x", color=_GRID)
    _legend_below(axes, len(groups))
    return figure


def chain_figure(chain: Mapping[str, Any]) -> Figure:
    """The recall chain as bars: each conditional recall, then whatever else the chain holds (its product)."""
    links = {name: float(value) for name, value in chain.items() if _is_number(value)}
    figure, axes = _canvas(7.2, 0.5 * len(links) + 1.3)
    axes.barh(list(links), list(links.values()), color="#2563a8", height=0.55)
    for position, value in enumerate(links.values()):
        axes.annotate(
            f"{value:.3f}", (value, position), xytext=(5, 0), textcoords="offset points", va="center", fontsize=9
        )
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12)
    axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    _titled(axes, "Where the right tool is lost", "share of requests that keep it, given the link before")
    axes.grid(axis="x", color=_GRID)
    return figure


def reliability_figure(calibration: Mapping[str, Any]) -> Figure:
    """What was said against what came true, one dot a bin, its area by the number of cases; the diagonal is honest.

    Candidates with and without a past have a line of their own, with their calibration error, where it is known.
    """
    figure, axes = _canvas(5.2, 5.0)
    bins = calibration["bins"]
    largest = max(b["count"] for b in bins)
    axes.plot([0, 1], [0, 1], color=_MUTED, linewidth=1, linestyle=(0, (4, 3)))
    axes.plot([b["predicted"] for b in bins], [b["observed"] for b in bins], color="#2563a8", linewidth=1, alpha=0.5)
    axes.scatter(
        [b["predicted"] for b in bins],
        [b["observed"] for b in bins],
        s=[18 + 60 * b["count"] / largest for b in bins],
        color="#2563a8",
        zorder=3,
    )
    parts = {name: (calibration.get("slices") or {}).get(name) or {} for name in ("warm", "cold")}
    for name, part in parts.items():
        if _is_number(part.get("ece")):
            axes.plot(
                [b["predicted"] for b in part["bins"]],
                [b["observed"] for b in part["bins"]],
                color=_COLOR[name],
                marker=_MARKER[name],
                markersize=4,
                linewidth=1,
                label=f"{_LABEL[name]} ({part['ece']:.3f}, n = {part['n']})",
            )
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", frameon=False, fontsize=8)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_aspect("equal")
    error = calibration.get("ece")
    title = "Relevance, said and true" + (f" (calibration error {error:.3f})" if _is_number(error) else "")
    _titled(axes, title, "mean relevance said")
    axes.set_ylabel("share that was right", color=_MUTED)
    axes.grid(color=_GRID)
    return figure


def latency_figure(latency: Mapping[str, Mapping[str, float]]) -> Figure:
    """p50 and p95 of each stage in milliseconds, on a logarithmic axis: stages differ by orders of magnitude.

    A time under a microsecond, which has no place on such an axis, is drawn at one.
    """
    figure, axes = _canvas(7.2, 0.42 * len(latency) + 1.5)
    p50 = [max(row["p50"], 0.001) for row in latency.values()]
    p95 = [max(row["p95"], 0.001) for row in latency.values()]
    for position, row in enumerate(latency.values()):
        axes.plot([p50[position], p95[position]], [position, position], color=_GRID, linewidth=4, zorder=1)
        axes.annotate(
            f"{row['p50']:.3g} / {row['p95']:.3g}",
            (p95[position], position),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    places = range(len(latency))
    axes.scatter(p50, places, color="#2563a8", s=32, zorder=3, label="p50")
    axes.scatter(p95, places, color="#c2571a", marker="D", s=26, zorder=3, label="p95")
    axes.set_yticks(places, list(latency))
    axes.set_ylim(len(latency) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.margins(x=0.18)
    _titled(axes, "Latency by stage", "milliseconds (logarithmic)")
    axes.grid(axis="x", color=_GRID)
    _legend_below(axes, 2)
    return figure


def _canvas(width: float, height: float) -> tuple[Figure, Axes]:
    # a Figure of its own, not pyplot's: no window system, no global state, nothing to close
    figure = Figure(figsize=(width, height), dpi=130, layout="constrained")
    axes = figure.subplots()
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_GRID)
    axes.tick_params(colors=_INK, length=0)
    axes.set_axisbelow(True)
    return figure, axes


def _titled(axes: Axes, title: str, unit: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=_INK)
    axes.set_xlabel(unit, color=_MUTED)


def _legend_below(axes: Axes, columns: int) -> None:
    axes.figure.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)

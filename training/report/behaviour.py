"""Behaviour: menus, the worth of more logs, stated relevance, saying no, the log replayed, and times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from training.report.charts import Axis, Bar, Series, bars, lines
from training.report.markup import Html, el, join, table
from training.report.words import count, milliseconds, percent, range_of

_LOOKS = {"all": "all queries", "warm": "tools with a past", "cold": "tools without"}


def menu_sizes(report: Mapping[str, Any]) -> Html | None:
    """Recall by the length of the menu."""
    found = report.get("menu_curve") or {}
    points = found.get("points") or []
    series = [
        Series(name, group, [(p["size"], p[group]) for p in points if p[group] is not None])
        for group, name in _LOOKS.items()
        if any(p[group] is not None for p in points)
    ]
    if not series:
        return None
    lowest = min(value for one in series for _, value in one.points)
    served = found["served"]
    by_size = {p["size"]: p for p in points}
    twelve = by_size.get(12, points[-1])
    caption = (
        f"Share of right tools on a menu of the first k tools. Menus as served: {served['size']:.1f} tools and "
        f"{count(served['tokens'])} tokens on average, recall {percent(served['recall'])}. The first {twelve['size']} "
        f"would hold {percent(twelve['all'])}; 5 hold {percent(by_size[5]['all'])} for {count(by_size[5]['tokens'])} "
        "tokens."
    )
    x = Axis("tools on the menu", 1, 40, [(k, str(k)) for k in (1, 2, 5, 10, 20, 40)], logarithmic=True)
    return _chart(
        "How long a menu has to be", caption, lines("recall by menu size", series, x, _shares(lowest, "recall"))
    )


def learning(report: Mapping[str, Any]) -> Html | None:
    """Quality by how much of the past the memory holds."""
    found = report.get("learning_curve") or {}
    points = found.get("points") or []
    if len(points) < 2:
        return None
    most = points[-1]["requests"]
    series = [
        Series(
            "nDCG@10",
            "good",
            [(p["requests"], p["ndcg@10"]) for p in points],
            [(p["interval"][0], p["interval"][1]) for p in points],
        )
    ]
    lowest = min(p["interval"][0] for p in points)
    x = Axis("past requests in the memory", 0, most, _marks(points))
    caption = join(
        _would_help(found),
        f" {count(found['queries'])} queries; the encoder and heads as trained on the whole log, so the true curve is"
        " steeper. Band: 95%.",
    )
    return _chart(
        "Would more logs help?", caption, lines("quality by size of the log", series, x, _shares(lowest, "nDCG@10"))
    )


def _would_help(found: Mapping[str, Any]) -> Html:
    doubling = found.get("doubling")
    if doubling is None:
        return join("There was no time to measure half of the log.")
    low, high = doubling["interval"]
    gain = f"The last doubling of the log brought {doubling['gain']:+.3f} ({range_of((low, high), '+')}): "
    if low > 0.0:
        return join(el("strong", "Yes. "), gain, "as many traces again may bring up to as much.")
    if high < 0.01:
        return join(el("strong", "Not much. "), gain, "work on the cards or the log's quality instead.")
    return join(el("strong", "Perhaps. "), gain, "these queries cannot tell.")


def _marks(points: list[Mapping[str, Any]]) -> list[tuple[float, str]]:
    """Places for the shares that stand far enough apart to be read."""
    most, marks = points[-1]["requests"], []
    last = -math.inf
    for point in points:
        if point["requests"] - last > most * 0.12:
            marks.append((float(point["requests"]), count(point["requests"])))
            last = point["requests"]
    return marks


def reliability(report: Mapping[str, Any]) -> Html | None:
    """What was said against what came true."""
    calibration = report.get("calibration") or {}
    bins = calibration.get("bins") or []
    if not bins:
        return None
    parts = {name: part for name, part in (calibration.get("slices") or {}).items() if part.get("ece") is not None}
    said = [Series("all candidates", "all", [(b["predicted"], b["observed"]) for b in bins])]
    said += [
        Series(_LOOKS[name], name, [(b["predicted"], b["observed"]) for b in part["bins"]])
        for name, part in parts.items()
    ]
    apart = "".join(f", {_LOOKS[name]} {part['ece']:.3f}" for name, part in parts.items())
    marks = [(v, f"{v:g}") for v in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    highest = bins[-1]
    caption = (
        f"On the dashed line, what was said came true. Calibration error {calibration['ece']:.3f}{apart}. In the "
        f"highest bin {percent(highest['predicted'])} was said and {percent(highest['observed'])} was right "
        f"({count(highest['count'])} cases): {_honest(highest)}."
    )
    drawn = lines(
        "reliability", said, Axis("relevance said", 0, 1, marks), Axis("share right", 0, 1, marks), diagonal=True
    )
    return _chart("Is the stated relevance true?", caption, drawn)


def _honest(highest: Mapping[str, Any]) -> str:
    apart = highest["predicted"] - highest["observed"]
    spread = 1.96 * math.sqrt(max(highest["observed"] * (1 - highest["observed"]), 1e-9) / max(highest["count"], 1))
    if abs(apart) <= max(spread, 0.02):
        return "as good as said"
    return "too sure of itself" if apart > 0 else "better than it says"


def abstention(report: Mapping[str, Any]) -> Html | None:
    """How well requests that nothing fits are told from the others."""
    found = report.get("abstention") or {}
    rows = [
        ("requests that nothing fits, turned away", found.get("recall"), "good"),
        ("of the turned away, rightly so", found.get("precision"), "good"),
        ("requests that a tool fits, turned away", found.get("turned_away"), "lost"),
    ]
    known = [Bar(label, 0.0, value, percent(value), look) for label, value, look in rows if value is not None]
    if not known:
        return None
    gone = found.get("removed_gold") or {}
    if gone.get("recall") is not None:
        label = f"the same requests without their right tools (n = {count(gone['n'])}), turned away"
        known.append(Bar(label, 0.0, gone["recall"], percent(gone["recall"]), "good"))
    auroc = found.get("auroc")
    told = "" if auroc is None else f" Told apart {percent(auroc)} of the time (AUROC; a coin: 50%)."
    return join(
        el("h2", "Saying no", id="abstention"),
        el("p", f"Whether the system knows when nothing in the catalog fits.{told}", class_="muted"),
        bars(known),
    )


def replayed(report: Mapping[str, Any]) -> Html | None:
    """What the bundle would have made of the logged decisions."""
    found = report.get("counterfactual") or {}
    if not found:
        return None
    estimates: Mapping[str, Any] = found.get("estimates") or {}
    rows: list[list[str | Html]] = [
        [name.replace("_", " "), *(_estimate(row, key) for key in ("value", "gain"))]
        for name, row in ([("logged", found["logged"]), *estimates.items()] if estimates else [])
    ]
    doubts = [el("li", reason) for reason in found.get("because") or ()]
    return join(
        el("h2", "Had it served the log", id="counterfactual"),
        el("p", "Success of the logged decisions, had this bundle chosen the menus; 95% intervals.", class_="muted"),
        table(["estimate", "success", "gain on the log"], rows) if rows else None,
        join(el("p", el("strong", "Do not decide by these figures:" if rows else "Not estimated:")), el("ul", *doubts))
        if doubts
        else None,
    )


def _estimate(row: Mapping[str, Any], key: str) -> str | Html:
    value, interval = row.get(key), row.get("interval" if key == "value" else "gain_interval")
    if value is None:
        return "–"
    sign = "+" if key == "gain" else ""
    return join(f"{value:{sign}.3f} ", el("small", range_of(interval, sign)) if interval else None)


def latency(report: Mapping[str, Any]) -> Html | None:
    """The time of each stage: half of the requests, and all but the slowest twentieth."""
    found: Mapping[str, Any] = report.get("latency_ms") or {}
    if not found:
        return None
    longest = max(row["p95"] for row in found.values()) or 1.0
    rows = [
        Bar(
            el("strong", stage) if stage == "total" else stage,
            0.0,
            row["p95"] / longest,
            f"{milliseconds(row['p50'])} / {milliseconds(row['p95'])}",
            "good" if stage == "total" else "plain",
        )
        for stage, row in found.items()
    ]
    return join(
        el("h2", "Time of a decision", id="latency"),
        el(
            "p",
            "Milliseconds, median / 95th percentile (the bar), one thread, on the machine that evaluated.",
            class_="muted",
        ),
        bars(rows),
    )


def _shares(lowest: float, title: str) -> Axis:
    """An axis up to 1 that begins at a round share below the lowest."""
    low = math.floor(max(lowest - 0.02, 0.0) * 10) / 10
    step = 0.2 if low < 0.4 else 0.1
    marks = [round(low + i * step, 2) for i in range(int((1.0 - low) / step + 1e-6) + 1)]
    return Axis(title, low, 1.0, [(mark, f"{mark:g}") for mark in marks])


def _chart(title: str, caption: str | Html, drawn: Html) -> Html:
    return el("figure", el("h3", title), drawn, el("figcaption", caption))

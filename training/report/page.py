"""The page: one report as one HTML file that needs nothing else, no script, no network, no other file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data.atomic import replacing
from training.report import behaviour, losses, quality
from training.report.failures import KINDS
from training.report.look import STYLE
from training.report.losses import NAMES
from training.report.markup import Html, el, join
from training.report.words import count, percent, range_of

_BASELINES = ("bm25", "dense", "rrf")
_NOTHING_ELSE = "default-src 'none'; style-src 'unsafe-inline'"


def page(report: Mapping[str, Any], title: str = "toolcrib report", note: str = "") -> str:
    """The report of an evaluation (the dict of `evaluate`) as a whole HTML document; `note` says what was measured on.

    A part that the report does not hold is left out. Texts of tools and requests are shown, never obeyed.
    """
    parts = [
        quality.rungs(report),
        quality.waterfall(report),
        losses.classes(report),
        losses.confused(report),
        losses.per_domain(report),
        _curves(report),
        behaviour.abstention(report),
        behaviour.replayed(report),
        behaviour.latency(report),
    ]
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=_NOTHING_ELSE),
        el("title", title),
        el("style", Html(STYLE)),
    )
    body = el("body", el("main", _header(report, title, note), _in_short(report), _contents(report), *parts))
    return "<!doctype html>\n" + el("html", head, body, lang="en") + "\n"


def save_page(report: Mapping[str, Any], path: Path, title: str = "toolcrib report", note: str = "") -> Path:
    """Write the page, whole or not at all. InputError where the place cannot be written."""
    with replacing(path) as fresh:
        fresh.write_text(page(report, title, note), encoding="utf-8")
    return path


def _header(report: Mapping[str, Any], title: str, note: str) -> Html:
    asked = report["queries"]
    facts = [
        f"bundle {report['bundle_version']}",
        f"catalog {report['catalog_version']}",
        f"{count(asked['answered'])} requests that a tool fits, {count(asked['cold'])} by one without a past",
        f"{count(asked['no_tool'])} that nothing fits",
    ]
    return join(
        el("h1", title), el("div", " · ".join(facts), class_="facts"), el("p", note, class_="muted") if note else None
    )


def _in_short(report: Mapping[str, Any]) -> Html:
    """What a reader in a hurry takes away."""
    said = [_first_places(report), _against_baselines(report), _worst(report), _no_tool(report), _more_logs(report)]
    return el("ul", *(el("li", one) for one in said if one is not None), class_="short")


def _first_places(report: Mapping[str, Any]) -> Html:
    row = report["rungs"]["selector"]["all"]
    shown = report["menu_curve"]["served"]
    return join(
        el("strong", percent(row["recall@1"])), " of the right tools come first, ",
        el("strong", percent(shown["recall"])), f" are on a menu of {shown['size']:.1f} tools on average.",
    )  # fmt: skip


def _against_baselines(report: Mapping[str, Any]) -> Html | None:
    gains = {rung: row["all"] for rung, row in report["gains"].items() if rung in _BASELINES and "all" in row}
    if not gains:
        return None
    rung, row = min(gains.items(), key=lambda item: item[1]["gain"])
    low, high = row["interval"]
    sure = "better than" if low > 0 else "worse than" if high < 0 else "not surely different from"
    return join(
        "The ranking is ", el("strong", sure), " the best baseline, ", el("code", rung),
        f": nDCG@10 {row['gain']:+.3f} ({range_of((low, high), '+')}).",
    )  # fmt: skip


def _worst(report: Mapping[str, Any]) -> Html | None:
    kinds = [kind for kind in KINDS[:-1] if report["failures"][kind]["count"]]
    if not kinds:
        return join("No request failed.")
    worst = max(kinds, key=lambda kind: report["failures"][kind]["count"])
    row = report["failures"][worst]
    return join(
        "Most are lost as ", el("a", NAMES[worst].title, href="#failures"), f": {percent(row['count'] / row['of'])} of"
        f" requests. The fix is in {NAMES[worst].where}.",
    )  # fmt: skip


def _no_tool(report: Mapping[str, Any]) -> Html | None:
    found = report["abstention"]
    if found["recall"] is None:
        return None
    price = "" if found["turned_away"] is None else f", and {percent(found['turned_away'])} of those that a tool fits"
    return join(f"{percent(found['recall'])} of the requests that nothing fits are turned away{price}.")


def _more_logs(report: Mapping[str, Any]) -> Html | None:
    doubling = (report.get("learning_curve") or {}).get("doubling")
    if doubling is None:
        return None
    return join(
        f"The last doubling of the log brought {doubling['gain']:+.3f} nDCG@10 "
        f"({range_of(doubling['interval'], '+')}) by the memory alone."
    )


_SECTIONS = {
    "quality": ("rungs", "Quality"),
    "chain": ("chain", "Where lost"),
    "failures": ("failures", "What went wrong"),
    "confusions": ("confusions", "Confused pairs"),
    "curves": ("menu_curve", "Curves"),
    "abstention": ("abstention", "Saying no"),
    "counterfactual": ("counterfactual", "Had it served"),
    "latency": ("latency_ms", "Time"),
}


def _contents(report: Mapping[str, Any]) -> Html:
    links = [el("a", name, href=f"#{anchor}") for anchor, (key, name) in _SECTIONS.items() if report.get(key)]
    return el("nav", *links, aria_label="contents")


def _curves(report: Mapping[str, Any]) -> Html | None:
    charts = [behaviour.menu_sizes(report), behaviour.learning(report), behaviour.reliability(report)]
    if not any(charts):
        return None
    return join(el("h2", "Curves", id="curves"), el("div", *charts, class_="charts"))

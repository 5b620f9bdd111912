"""Quality: how well the ranking does beside its baselines, and at which stage right tools are lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training.report.charts import Bar, bars, interval_bar
from training.report.failures import KINDS
from training.report.losses import NAMES
from training.report.markup import Html, el, join, table
from training.report.words import count, percent, range_of

GROUPS = ("all", "warm", "cold")
_RUNGS = {
    "bm25": "keyword search",
    "dense": "the untrained encoder",
    "rrf": "those two, fused",
    "retriever": "the trained encoder",
    "usage": "card and past requests",
    "reranker": "candidates, reranked",
    "selector": "what serves",
}
_LINKS = {
    "R_retrieve": ("among the candidates", "of the right tools"),
    "R_filter": ("still in the ranking", "of those"),
    "R_menu": ("on the menu", "of those"),
    "R_select": ("a right tool in first place", "of menus with one"),
    "product": ("all of these", "the product"),
}


def rungs(report: Mapping[str, Any]) -> Html:
    """The table of rungs: nDCG@10 of each group with its interval, and recalls over all."""
    found: Mapping[str, Any] = report["rungs"]
    groups = [group for group in GROUPS if any(row[group].get("n") for row in found.values())]
    names = {group: f"{group} (n = {count(max(row[group]['n'] for row in found.values()))})" for group in groups}
    recalls = ("recall@1", "recall@5", "recall@40")
    rows = [
        [
            join(el("code", rung), " ", el("small", _RUNGS.get(rung, ""))),
            *(_cell(row[group], group) for group in groups),
            *(percent(row["all"].get(recall)) for recall in recalls),
        ]
        for rung, row in found.items()
    ]
    return join(
        el("h2", "Ranking quality, rung by rung", id="quality"),
        el(
            "p",
            "nDCG@10: 1 where the right tools come first. Each row has one thing more than those above it. Warm: a"
            " right tool has served a request in the bundle's past; cold: none has. The bar is the 95% interval.",
            class_="muted",
        ),
        table(["rung", *names.values(), *recalls], rows, numbers=recalls),
        _gains(report),
    )


def _cell(row: Mapping[str, Any], group: str) -> Html | str:
    if not row.get("n"):
        return "–"
    interval = row.get("ndcg@10_interval")
    return join(
        f"{row['ndcg@10']:.3f} ",
        el("small", range_of(interval)) if interval else None,
        interval_bar(row["ndcg@10"], interval, group),
    )


def _gains(report: Mapping[str, Any]) -> Html | None:
    rows = []
    for rung, groups in (report.get("gains") or {}).items():
        cells: list[str | Html] = [el("code", rung)]
        for group in GROUPS:
            row = groups.get(group)
            cells.append("–" if row is None else join(_sure(row), el("small", f" {range_of(row['interval'], '+')}")))
        rows.append(cells)
    if not rows:
        return None
    return el(
        "details",
        el("summary", "What the selector gains on each rung, on the same queries"),
        table(["against", *GROUPS], rows),
        el("p", "Paired intervals. One that holds 0 shows nothing on these queries.", class_="muted"),
    )


def _sure(row: Mapping[str, Any]) -> str:
    low, high = row["interval"]
    return f"{row['gain']:+.3f}" + ("" if low > 0 or high < 0 else " (not sure)")


def waterfall(report: Mapping[str, Any]) -> Html | None:
    """Of all answerable requests, what each stage loses, down to those with a right tool in first place."""
    found: Mapping[str, Any] = report.get("failures") or {}
    asked = max((found[kind]["of"] for kind in KINDS if kind in found and kind != "not_turned_away"), default=0)
    if not asked:
        return None
    left = float(asked)
    rows = [Bar("requests that a tool fits", 0.0, 1.0, count(asked), "plain")]
    for kind in KINDS[:-1]:
        lost = found[kind]["count"]
        label = NAMES[kind].title if lost else el("span", NAMES[kind].title, class_="none")
        said = f"−{percent(lost / asked)}" if lost else "0"
        rows.append(Bar(label, (left - lost) / asked, left / asked, said, "lost"))
        left -= lost
    rows.append(Bar(el("strong", "right tools shown, one first"), 0.0, left / asked, percent(left / asked), "good"))
    return join(
        el("h2", "Where requests are lost", id="chain"),
        el(
            "p",
            "Every answerable request, stage by stage in the order of the decision. The longest red bar is the place to"
            " work on; what to do there is below.",
            class_="muted",
        ),
        bars(rows),
        links(report),
    )


def links(report: Mapping[str, Any]) -> Html | None:
    """The recall chain: each conditional recall with its interval."""
    chain, intervals = report.get("chain") or {}, report.get("chain_intervals") or {}
    rows = []
    for link, (what, of) in _LINKS.items():
        value = chain.get(link)
        if value is None:
            continue
        interval = intervals.get(link)
        rows.append(
            [
                el("code", link),
                join(what, " ", el("small", of)),
                join(f"{value:.3f} ", el("small", range_of(interval)) if interval else None),
                interval_bar(value, interval, "all"),
            ]
        )
    if not rows:
        return None
    return join(
        el("h3", "The recall chain"),
        el(
            "p",
            "The same by right tool: each share is of what the link before it kept, with its 95% interval.",
            class_="muted",
        ),
        table(["link", "share of right tools", "recall", ""], rows),
    )

"""Charts as markup: bars of HTML that fold on a narrow page, and lines of SVG that scale with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from training.report.markup import Html, el, join

_WIDTH, _HEIGHT = 420.0, 270.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 24.0, 26.0, 42.0


@dataclass(frozen=True)
class Bar:
    """One bar from `start` to `end` (shares of the track); `value` stands beside it; `look` is a class of the style."""

    label: str | Html
    start: float
    end: float
    value: str
    look: str = "plain"


@dataclass(frozen=True)
class Series:
    """Points (x, y) as one line; `low` and `high`, where given, are its band; `look`: all, warm, cold or good."""

    name: str
    look: str
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float]] = ()
    dots: bool = True


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, with marks (place, text); `logarithmic`: the logarithm of 1 + x."""

    title: str
    low: float
    high: float
    marks: Sequence[tuple[float, str]]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Share of the way from low to high, in [0, 1]."""
        low, high, at = (math.log1p(v) if self.logarithmic else v for v in (self.low, self.high, value))
        return min(max((at - low) / ((high - low) or 1.0), 0.0), 1.0)


def bars(rows: Sequence[Bar]) -> Html:
    """Rows of label, bar and value; on a narrow page the bar goes below."""
    cells = []
    for row in rows:
        style = f"left:{row.start * 100:.2f}%;width:{max(row.end - row.start, 0.0) * 100:.2f}%"
        bar = el("i", class_=row.look, style=style) if row.end > row.start else None
        track = el("div", bar, class_="track")
        cells += [el("div", row.label), track, el("div", row.value, class_="value")]
    return el("div", *cells, class_="bars")


def interval_bar(value: float, interval: Sequence[float] | None, look: str) -> Html:
    """A share in [0, 1] as a mark on a track, with its interval."""
    low, high = interval if interval else (value, value)
    band = el("i", class_=look, style=f"left:{low * 100:.2f}%;width:{max(high - low, 0.0) * 100:.2f}%")
    mark = el("b", class_=look, style=f"left:{value * 100:.2f}%")
    return el("span", band, mark, class_="range", aria_hidden="true")


def lines(title: str, series: Sequence[Series], x: Axis, y: Axis, *, diagonal: bool = False) -> Html:
    """A line chart with its legend. `diagonal`: the line on which both axes are equal."""

    def at(point: tuple[float, float]) -> tuple[float, float]:
        across = _LEFT + x.place(point[0]) * (_WIDTH - _LEFT - _RIGHT)
        return across, _HEIGHT - _BOTTOM - y.place(point[1]) * (_HEIGHT - _TOP - _BOTTOM)

    drawn: list[Html] = [_frame(x, y)]
    if diagonal:
        (x1, y1), (x2, y2) = at((x.low, y.low)), at((x.high, y.high))
        drawn.append(el("line", x1=x1, y1=y1, x2=x2, y2=y2, class_="honest"))
    for one in series:
        places = [at(point) for point in one.points]
        if one.band:
            upper = [at((p[0], high)) for p, (_, high) in zip(one.points, one.band, strict=True)]
            lower = [at((p[0], low)) for p, (low, _) in zip(one.points, one.band, strict=True)]
            drawn.append(el("polygon", points=_joined([*upper, *reversed(lower)]), class_=f"s-{one.look} band"))
        path = "M" + " L".join(f"{px:.1f} {py:.1f}" for px, py in places)
        drawn.append(el("path", d=path, class_=f"s-{one.look}"))
        if one.dots:
            drawn += [el("circle", cx=px, cy=py, r=3.0, class_=f"s-{one.look}") for px, py in places]
    picture = el(
        "svg", *drawn, viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", role="img", aria_label=title,
        xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip
    return join(_legend(series), picture)


def _frame(x: Axis, y: Axis) -> Html:
    parts: list[Html] = []
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for value, text in y.marks:
        up = bottom - y.place(value) * (bottom - _TOP)
        parts.append(el("line", x1=_LEFT, y1=up, x2=right, y2=up, class_="grid"))
        parts.append(el("text", text, x=_LEFT - 6, y=up + 4, text_anchor="end"))
    for value, text in x.marks:
        across = _LEFT + x.place(value) * (right - _LEFT)
        parts.append(el("text", text, x=across, y=bottom + 16, text_anchor="middle"))
    parts.append(el("line", x1=_LEFT, y1=bottom, x2=right, y2=bottom, class_="axis"))
    parts.append(el("text", x.title, x=(_LEFT + right) / 2, y=_HEIGHT - 6, text_anchor="middle"))
    parts.append(el("text", y.title, x=4.0, y=10.0))
    return join(*parts)


def _legend(series: Sequence[Series]) -> Html:
    if len(series) < 2:
        return Html("")
    return el("div", *(el("span", el("i", class_=one.look), one.name) for one in series), class_="legend")


def _joined(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{px:.1f},{py:.1f}" for px, py in points)

"""Markup: HTML built from elements, in which a plain string is text, so that nobody's words become a tag."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from data.invisible import escaped

_VOID: Final = frozenset({"br", "line", "rect", "circle", "path", "meta"})


class Html(str):
    """Text that is HTML already. Made by `el` and `join` alone, out of parts that are escaped."""

    __slots__ = ()


def el(tag: str, *children: str | Html | None, **attributes: str | float | None) -> Html:
    """One element. A child that is no Html is escaped, its invisible characters written out; None is left out.

    Attributes are escaped alike; `class_` is `class`, other underscores are hyphens, and None leaves one out.
    """
    said = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_text(_figure(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID:
        return Html(f"<{tag}{said}>" if tag in ("br", "meta") else f"<{tag}{said}/>")
    return Html(f"<{tag}{said}>{join(*children)}</{tag}>")


def join(*children: str | Html | None) -> Html:
    """Several children as one; plain strings are escaped."""
    parts = [child if isinstance(child, Html) else _text(child) for child in children if child is not None]
    return Html("".join(parts))


def table(columns: Sequence[str], rows: Sequence[Sequence[str | Html]], numbers: Sequence[str] = ()) -> Html:
    """A table that scrolls inside itself where the page is narrow; columns in `numbers` are right-aligned."""
    looks = ["n" if column in numbers else None for column in columns]
    head = el("tr", *(el("th", column, class_=look) for column, look in zip(columns, looks, strict=True)))
    body = [el("tr", *(el("td", cell, class_=look) for cell, look in zip(row, looks, strict=True))) for row in rows]
    return el("div", el("table", el("thead", head), el("tbody", *body)), class_="scroll")


def _text(text: str) -> str:
    whole = text.encode("utf-8", "backslashreplace").decode("utf-8")  # half a surrogate pair is no text
    return escape(escaped(whole), quote=True)


def _figure(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")

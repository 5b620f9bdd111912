"""The screen: tables and text for a person, and JSON for a program, with untrusted text made harmless."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from data.invisible import escaped

_PIPE_WIDTH = 160


def visible(text: str) -> str:
    """`text` with control, invisible and bidi characters written out: a terminal must not obey other people's text."""
    return escaped(text).replace("\r", "\\r")


def say(text: str = "", style: str = "") -> None:
    """One line of trusted or untrusted text on stdout; markup in it is shown, not followed."""
    _console().print(Text("\n".join(visible(line) for line in text.split("\n")), style=style), soft_wrap=True)


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] = ()) -> None:
    """A table on stdout; columns named in `right` are right-aligned. Long cells wrap, nothing is cut off."""
    table = Table(title=Text(visible(title)) if title else None, title_justify="left", title_style="bold")
    aligned = set(right)
    for name in columns:
        table.add_column(name, justify="right" if name in aligned else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    _console().print(table)


def print_json(value: Mapping[str, object] | str) -> None:
    """One JSON object on stdout, unstyled; a string is JSON already."""
    print(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False))


def _console() -> Console:
    console = Console(highlight=False, emoji=False)
    # a pipe has no width: the default of 80 columns would fold every tool id
    return console if console.is_terminal else Console(highlight=False, emoji=False, width=_PIPE_WIDTH)

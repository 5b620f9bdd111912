"""The face of toolcrib: the public names, loaded when they are first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from toolcrib.floors import check_floors

if TYPE_CHECKING:
    from data.cards import ToolCard
    from data.catalog import Catalog
    from data.context import Caller, Subgoal
    from serving.selector import Selector

__all__ = ["Caller", "Catalog", "Selector", "Subgoal", "ToolCard"]

_HOME = {
    "Caller": "data.context",
    "Catalog": "data.catalog",
    "Selector": "serving.selector",
    "Subgoal": "data.context",
    "ToolCard": "data.cards",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'toolcrib' has no attribute '{name}'")
    check_floors()
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

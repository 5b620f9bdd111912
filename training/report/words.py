"""Words: numbers as a report says them."""

from __future__ import annotations

from collections.abc import Sequence


def percent(share: float | None) -> str:
    """0.8123 -> 81.2%; a dash for what was not measured."""
    return "–" if share is None else f"{share * 100:.1f}%"


def count(number: float) -> str:
    """1234 -> 1,234."""
    return f"{number:,.0f}"


def range_of(interval: Sequence[float], sign: str = "") -> str:
    """[0.8123, 0.9] -> 0.812 to 0.900; with sign "+", +0.812 to +0.900."""
    return f"{interval[0]:{sign}.3f} to {interval[1]:{sign}.3f}"


def milliseconds(value: float) -> str:
    """Three digits, whatever the size: 0.0123, 4.56, 123."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

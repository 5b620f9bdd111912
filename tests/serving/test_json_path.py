"""A path says where something is, and cannot be made long or unprintable by what it leads through."""

from __future__ import annotations

import pytest

from serving.json_path import MAX_PATH, json_path


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        ((), "$"),
        (("a", 0, "b_c"), "$.a[0].b_c"),
        (("a b", "x-y", ""), '$["a b"]["x-y"][""]'),
        (("é\n",), '$["\\u00e9\\n"]'),
        (("x" * 99,), '$["' + "x" * 64 + '..."]'),
    ],
)
def test_a_path_is_short_and_printable_whatever_the_names_are(parts: tuple[str | int, ...], path: str) -> None:
    assert json_path(parts) == path


def test_a_path_through_a_thousand_levels_is_cut() -> None:
    path = json_path(["level"] * 1000)
    assert len(path) == MAX_PATH + 3
    assert path.endswith("...")

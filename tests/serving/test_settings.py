"""Settings: bounded, and refused when misspelt."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from serving.settings import SelectorSettings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tools", 13),
        ("max_tools", 0),
        ("candidates", 0),
        ("margin", -0.1),
        ("margin", 0.6),
        ("explore_rate", 1.01),
        ("menu_alpha", 0.0),
        ("menu_alpha", 1.0),
        ("explore_rate", float("nan")),
        ("token_budget", -1),
        ("rerank_budget_ms", -1.0),
        ("threads", 0),
        ("maximum_tools", 5),
    ],
)
def test_a_setting_out_of_bounds_or_unknown_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ValidationError, match=name):
        SelectorSettings.model_validate({name: value})


def test_settings_do_not_change_once_made() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        SelectorSettings().explore_writes = True

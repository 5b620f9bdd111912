"""The shop, open: without a trained model, and with one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_spans import Agent
from shop import Shop, open_shop


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A service on the shop's catalog, without a bundle."""
    with open_shop(tmp_path) as opened:
        yield opened


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The same for a whole module, for tests that leave no trace that another would notice."""
    with open_shop(tmp_path_factory.mktemp("shop")) as opened:
        yield opened


@pytest.fixture(scope="module")
def agent() -> Agent:
    """An instrumented agent that has run once."""
    traced = Agent()
    traced.run()
    return traced

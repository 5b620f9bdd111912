"""MLflow stores for tests: the tables are made once, each module gets a copy."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from training.tracking import open_client


@pytest.fixture(scope="session")
def new_store(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Gives a fresh root with an empty store; making MLflow's tables takes seconds, copying them none."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("MLFLOW_TRACKING_URI", raising=False)
        blank = tmp_path_factory.mktemp("blank")
        open_client(blank)

    def make() -> Path:
        root = tmp_path_factory.mktemp("store with a space")
        shutil.copy(blank / "mlflow.db", root)
        return root

    return make

"""What takes seconds to make and many tests read: MLflow's tables, and one training on the small workshop."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny
from tiny import Trained

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


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, new_store: Callable[[], Path]) -> Trained:
    """The small workshop, trained once by the pipeline that users run."""
    from training.pipeline import train  # noqa: PLC0415 (torch: only for who asks)

    folder, store = tmp_path_factory.mktemp("workshop"), new_store()
    base, catalog = tiny.make_base(folder / "base"), tiny.catalog()
    traces = tiny.write_traces_jsonl(folder / "traces.jsonl", tiny.traces())
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("MLFLOW_TRACKING_URI", raising=False)
        result = train(catalog, traces, tiny.recipe(base), folder / "bundle", tracking_root=store)
    return Trained(catalog, base, traces, result.bundle, store, result.metrics)


@pytest.fixture
def own_bundle(trained: Trained, tmp_path: Path) -> Path:
    """A copy of the trained bundle that a test may damage."""
    return Path(shutil.copytree(trained.bundle, tmp_path / "bundle"))

"""What takes seconds to make and many tests need: MLflow's tables, one training on the small workshop, a PostgreSQL."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import postgres_server
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


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server for tests, one that is given or a private one; else the test is skipped."""
    given = os.environ.get(postgres_server.VARIABLE)
    if given:
        yield given
        return
    try:
        with postgres_server.private_server() as server:
            yield server.url
    except postgres_server.UnavailableError as error:
        pytest.skip(f"no PostgreSQL: {error}")


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh, empty database; the test runs on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/toolcrib.db"
        return
    import psycopg  # noqa: PLC0415 (for who asks)

    server = request.getfixturevalue("postgres")
    name = f"test_{secrets.token_hex(8)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    yield f"{server.rpartition('/')[0]}/{name}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

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


DIALECTS = ("sqlite", "postgresql")


@pytest.fixture(params=DIALECTS)
def blank_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without any table; the test runs on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/toolcrib.db"
        return
    server = request.getfixturevalue("postgres")
    yield (url := _new_database(server, "template0"))
    _drop_database(server, url)


@pytest.fixture(params=DIALECTS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database with empty tables; the test runs on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("_sqlite_tables"), tmp_path / "toolcrib.db")
        yield f"sqlite:///{tmp_path}/toolcrib.db"
        return
    server, tables = request.getfixturevalue("postgres"), request.getfixturevalue("_postgres_tables")
    yield (url := _new_database(server, tables.rpartition("/")[2]))
    _drop_database(server, url)


@pytest.fixture(scope="session")
def _sqlite_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with empty tables: making them takes ten times as long as a copy."""
    from data.store.database import open_database  # noqa: PLC0415 (SQLAlchemy: only for who asks)

    path = tmp_path_factory.mktemp("tables") / "toolcrib.db"
    open_database(path).close()
    return path


@pytest.fixture(scope="session")
def _postgres_tables(postgres: str) -> Iterator[str]:
    from data.store.database import open_database  # noqa: PLC0415 (SQLAlchemy: only for who asks)

    url = _new_database(postgres, "template0")
    open_database(url).close()
    yield url
    _drop_database(postgres, url)


def _new_database(server: str, template: str) -> str:
    import psycopg  # noqa: PLC0415 (for who asks)

    name = f"test_{secrets.token_hex(8)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return f"{server.rpartition('/')[0]}/{name}"


def _drop_database(server: str, url: str) -> None:
    import psycopg  # noqa: PLC0415 (for who asks)

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{url.rpartition("/")[2]}" WITH (FORCE)')

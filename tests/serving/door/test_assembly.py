"""The service put together: every setting does something, and what has had its time is let go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from pydantic import BaseModel
from shop import Shop, error_of, open_shop

import serving
from data.errors import InputError
from data.store.errors import StoreError
from data.store.tables import decisions, observations
from serving.door.settings import ServiceSettings, load_settings

SOURCES = Path(serving.__file__).parent


def keys_of(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield name
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from keys_of(kind)


@pytest.mark.parametrize("key", sorted(set(keys_of(ServiceSettings))))
def test_every_setting_is_read_by_something(key: str) -> None:
    read = re.compile(rf"\.{key}\b")
    files = [path for path in SOURCES.rglob("*.py") if path.name not in ("settings.py", "grants.py")]
    assert any(read.search(path.read_text()) for path in files)


def rows(shop: Shop, table: sa.Table) -> int:
    with shop.assembly.database.engine.connect() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0


def age(shop: Shop, **days: int) -> None:
    """Make what was kept older than it is."""
    with shop.assembly.database.writing() as connection:
        for table, column in ((decisions, "ts"), (observations, "expires")):
            past = datetime.now(UTC) - timedelta(**days)
            connection.execute(sa.update(table).values({column: past}))


@pytest.mark.parametrize(("days", "left"), [(None, 1), (30, 0)])
def test_traces_go_when_their_days_are_over_and_results_when_they_expire(
    tmp_path: Path, days: int | None, left: int
) -> None:
    with open_shop(tmp_path) as shop:
        slice_id = shop.select()["slice_id"]
        shop.ok("/v1/observations", {"slice_id": slice_id, "tool_id": "t", "content": "c"})
        age(shop, days=40)
    with open_shop(tmp_path, traces={"retention_days": days}) as shop:
        shop.assembly.let_go()
        assert (rows(shop, decisions), rows(shop, observations)) == (left, 0)


def test_the_bounds_of_the_file_hold(tmp_path: Path) -> None:
    limits = {"body_bytes": 2048, "json_depth": 4, "text_characters": 100}
    with open_shop(tmp_path, limits=limits, observations={"cap_characters": 64}) as shop:
        error_of(shop.post("/v1/select", {"goal": "a" * 3000}), 413, "too_large")
        error_of(shop.post("/v1/select", {"goal": "a" * 101}), 422, "invalid_body")
        error_of(
            shop.post("/v1/check", {"slice_id": "s", "tool_id": "t", "arguments": {"a": [[[1]]]}}), 422, "invalid_body"
        )
        slice_id = shop.select()["slice_id"]
        kept = shop.ok("/v1/observations", {"slice_id": slice_id, "tool_id": "t", "content": "b" * 200})
        assert kept["text"].startswith("b" * 64 + "\n[... 136 more characters")


def test_a_tenants_name_is_no_longer_than_the_store_can_hold(tmp_path: Path) -> None:
    with open_shop(tmp_path, people={"ann": {"tenant": "t" * 128}}) as shop:
        assert shop.select()["recorded"]
    with pytest.raises(InputError, match="tenant"), open_shop(tmp_path, people={"ann": {"tenant": "t" * 129}}):
        pass


def test_a_database_named_by_a_variable_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", f"sqlite:///{tmp_path}/elsewhere.db")
    with open_shop(tmp_path, traces={"database_env": "WHERE"}) as shop:
        shop.select()
    assert (tmp_path / "elsewhere.db").exists()
    assert not (tmp_path / "traces.db").exists()


def test_two_services_do_not_share_a_spool(tmp_path: Path) -> None:
    with open_shop(tmp_path):
        with pytest.raises(StoreError, match="in use by another process"), open_shop(tmp_path):
            pass
        config = tmp_path / "service.yaml"
        assert load_settings(config).traces.spool == str(tmp_path / "traces.spool")

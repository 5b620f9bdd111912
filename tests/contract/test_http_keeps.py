"""Contract 8 over HTTP: what was acknowledged is kept exactly once, whatever becomes of the database meanwhile."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shop import Shop, open_shop

from data.store.tables import decisions, outcomes

TABLES = ("decisions", "outcomes")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("report"), st.integers(0, 5), st.sampled_from(["success", "failure", "unknown"])),
        st.tuples(st.just("select"), st.integers(0, 5)),
        st.tuples(st.just("away")),
        st.tuples(st.just("back")),
        st.tuples(st.just("restart")),
    ),
    min_size=1,
    max_size=12,
)


def rename(shop: Shop, old: str, new: str) -> None:
    with shop.assembly.database.engine.begin() as connection:
        for table in TABLES:
            connection.exec_driver_sql(f"ALTER TABLE {old}{table} RENAME TO {new}{table}")


def run(shop: Shop, script: list[tuple[object, ...]], first: dict[str, str], made: set[str]) -> None:
    """One process's life. The database is there when it ends, as a restart would find it."""
    away = False
    for step in script:
        match step:
            case ("report", int() as number, str() as outcome):
                kept = shop.report(f"key {number}", "s", "t", outcome=outcome)["results"]
                assert kept[0]["stored"] in ("database", "spool")
                first.setdefault(f"key {number}", outcome)
            case ("select", int() as number):
                found = shop.select(request_id=f"r{number}")
                if found["recorded"]:
                    made.add(found["slice_id"])
            case ("away",) if not away:
                rename(shop, "", "hidden_")
                away = True
            case ("back",) if away:
                rename(shop, "hidden_", "")
                shop.assembly.writer.recover()
                away = False
    if away:
        rename(shop, "hidden_", "")


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=steps)
def test_each_acknowledged_record_is_there_once_and_as_it_was_first_said(
    tmp_path_factory: object, script: list[tuple[object, ...]]
) -> None:
    folder: Path = tmp_path_factory.mktemp("shop")  # type: ignore[attr-defined]
    first: dict[str, str] = {}
    made: set[str] = set()
    lives: list[list[tuple[object, ...]]] = [[]]
    for step in script:
        if step == ("restart",):
            lives.append([])
        else:
            lives[-1].append(step)
    for life in lives:
        with open_shop(folder) as shop:
            run(shop, life, first, made)
    with open_shop(folder) as shop:
        shop.assembly.writer.recover()
        with shop.assembly.database.engine.connect() as connection:
            kept = connection.execute(sa.select(outcomes.c.key, outcomes.c.outcome)).all()
            slices = Counter(connection.scalars(sa.select(decisions.c.slice_id)))
    assert sorted((key, outcome) for key, outcome in kept) == sorted(first.items())
    assert set(slices.values()) <= {1}
    assert made <= slices.keys()

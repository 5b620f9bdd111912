"""Mining from and to folders, patterns and URLs, and within a memory limit: the same tables as from one file."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from mining_log import CATALOG, TOOLS, at, call, menu, same

from data.errors import InputError
from data.mining.engines import Resources
from data.mining.miner import EXAMPLE_SCHEMA, Mined, mine, mine_to_folder
from data.trace_store import read_traces, write_traces

LOG = [
    call(
        TOOLS[n % 5],
        ("success", "tool_error", "timeout", "validation", "success")[n % 5],
        trace_id=f"t{n // 2}",
        goal=f"goal {n // 2 % 9}",
        step=n,
        ts=at(n * 300) if n % 7 else None,
        tenant=("", "acme")[n // 2 % 2],
        menu=menu(*TOOLS[: n % 6 + 1]),
    )
    for n in range(40)
]
LOG.append(call(None, "unknown", trace_id="none", goal="brew a coffee", tenant="acme"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Mined:
    """What LOG gives as one file."""
    path = tmp_path_factory.mktemp("whole") / "t.parquet"
    write_traces(path, LOG)
    return mine(path, CATALOG)


@pytest.mark.parametrize("place", ["{}/parts", "{}/parts/day=*", "memory://mined-from/parts"])
def test_partitioned_traces_give_the_tables_of_one_file(tmp_path: Path, whole: Mined, place: str) -> None:
    place = place.format(tmp_path)
    write_traces(place.removesuffix("/day=*"), LOG, ("day", "tenant"))
    assert same(mine(place, CATALOG), whole)


def test_tables_are_written_to_a_url_as_to_a_folder(tmp_path: Path, whole: Mined) -> None:
    write_traces(tmp_path / "t.parquet", LOG)
    report = mine_to_folder(tmp_path / "t.parquet", CATALOG, "memory://mined-to/out")
    assert report == whole.report
    stored = ds.dataset("mined-to/out/examples.parquet", filesystem=fsspec.filesystem("memory"))
    assert stored.to_table().equals(whole.examples)
    assert (
        fsspec.filesystem("memory").cat("/mined-to/out/report.json").decode() == report.model_dump_json(indent=2) + "\n"
    )


def test_partitioned_tables_hold_the_rows_of_the_whole_ones(tmp_path: Path, whole: Mined) -> None:
    write_traces(tmp_path / "t.parquet", LOG)
    mine_to_folder(tmp_path / "t.parquet", CATALOG, tmp_path / "out", partition_by=("day", "tenant"))
    text = pa.string()
    hive = ds.partitioning(pa.schema([("day", text), ("tenant", text)]), flavor="hive")
    table = ds.dataset(tmp_path / "out" / "examples", partitioning=hive).to_table()
    tenants = table["tenant"].fill_null("")
    table = table.set_column(table.schema.get_field_index("tenant"), "tenant", tenants).select(EXAMPLE_SCHEMA.names)
    keys = [("trace_id", "ascending"), ("step", "ascending"), ("goal", "ascending"), ("tool_id", "ascending")]
    assert table.sort_by(keys).equals(whole.examples.sort_by(keys))
    assert pq.read_table(tmp_path / "out" / "preferences.parquet").equals(whole.preferences)


def test_a_small_memory_limit_changes_no_row(tmp_path: Path, whole: Mined) -> None:
    write_traces(tmp_path / "t.parquet", LOG)
    limited = mine(tmp_path / "t.parquet", CATALOG, resources=Resources(memory_limit="64MB", temp_directory=tmp_path))
    assert same(limited, whole)
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_what_is_no_amount_of_memory_or_no_folder_is_said(tmp_path: Path) -> None:
    write_traces(tmp_path / "t.parquet", LOG)
    with pytest.raises(InputError, match=r"memory-limit.*'much'.*2GB"):
        mine(tmp_path / "t.parquet", CATALOG, resources=Resources(memory_limit="much"))
    with pytest.raises(InputError, match=r"temp-directory.*no such folder"):
        mine(tmp_path / "t.parquet", CATALOG, resources=Resources(temp_directory=tmp_path / "absent"))


def test_files_of_other_schemas_are_read_as_one_table(tmp_path: Path, whole: Mined) -> None:
    write_traces(tmp_path / "t" / "a.parquet", LOG[:20])
    write_traces(tmp_path / "b.parquet", LOG[20:])
    table = pq.read_table(tmp_path / "b.parquet")
    table = table.select([name for name in reversed(table.column_names) if name != "retrieved"])
    wide = table.set_column(0, table.column_names[0], table.column(0))
    for name, kind in {
        "step": pa.int32(),
        "ts": pa.timestamp("ns", "Europe/Berlin"),
        "goal": pa.large_string(),
    }.items():
        at_place = wide.schema.get_field_index(name)
        wide = wide.set_column(at_place, name, wide.column(name).cast(kind))
    pq.write_table(wide, tmp_path / "t" / "b.parquet")
    assert same(mine(tmp_path / "t", CATALOG), whole)


def test_a_file_that_holds_no_traces_is_named_among_those_that_do(tmp_path: Path) -> None:
    write_traces(tmp_path / "t" / "a.parquet", LOG)
    pq.write_table(pa.table({"trace_id": ["t"], "goal": [7], "tool_id": ["x"]}), tmp_path / "t" / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet, field 'goal': the column holds int64, not string"):
        mine(tmp_path / "t", CATALOG)


def test_a_torn_file_among_whole_ones_is_named(tmp_path: Path) -> None:
    write_traces(tmp_path / "t" / "a.parquet", LOG)
    write_traces(tmp_path / "t" / "b.parquet", LOG)
    raw = bytearray((tmp_path / "t" / "b.parquet").read_bytes())
    raw[200] ^= 0xFF
    (tmp_path / "t" / "b.parquet").write_bytes(raw)
    with pytest.raises(InputError, match=r"b\.parquet: not a whole Parquet file"):
        mine(tmp_path / "t", CATALOG)


def test_a_mined_folder_at_a_url_is_replaced_by_the_next(tmp_path: Path) -> None:
    write_traces(tmp_path / "t.parquet", LOG)
    mine_to_folder(tmp_path / "t.parquet", CATALOG, "memory://mined-twice/out", partition_by=("tenant",))
    mine_to_folder(tmp_path / "t.parquet", CATALOG, "memory://mined-twice/out")
    names = [Path(name).name for name in fsspec.filesystem("memory").ls("/mined-twice/out", detail=False)]
    assert sorted(names) == [
        "examples.parquet",
        "history.parquet",
        "no_tool.parquet",
        "preferences.parquet",
        "report.json",
    ]


def test_traces_that_go_to_a_url_can_be_mined_from_it(whole: Mined) -> None:
    write_traces("memory://mined-back/t.parquet", LOG)
    assert read_traces("memory://mined-back/t.parquet") == LOG
    assert same(mine("memory://mined-back/t.parquet", CATALOG), whole)

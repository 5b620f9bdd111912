"""Places: what a path, a pattern or a URL stands for, and that nothing half-written is read."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import fsspec
import pyarrow.parquet as pq
import pytest

from data.errors import InputError
from data.places import UNFINISHED, parts_of, replacing_file, replacing_tree
from data.trace_store import read_traces, write_traces
from data.traces import Trace

TRACES = [
    Trace(trace_id=f"t{n}", step=n, goal="g", tenant=("", "acme/eu", "007")[n % 3], ts=ts)
    for n, ts in enumerate([datetime(2026, 3, 1 + n % 2, 23, 30, tzinfo=UTC) for n in range(9)] + [None])
]


@pytest.fixture(params=["folder", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A place where nothing is yet, on this machine and at a URL."""
    if request.param == "folder":
        yield str(tmp_path / "traces")
        return
    name = secrets.token_hex(6)
    yield f"memory://{name}/traces"
    store = fsspec.filesystem("memory")
    if store.exists(f"/{name}"):
        store.rm(f"/{name}", recursive=True)


def everything(_: list[str]) -> None:
    """Lets any folder be replaced."""


def by_id(traces: list[Trace]) -> list[Trace]:
    return sorted(traces, key=lambda trace: trace.trace_id)


@pytest.mark.parametrize("by", [(), ("day",), ("tenant",), ("day", "tenant")], ids=",".join)
def test_traces_come_back_whatever_they_are_partitioned_by(place: str, by: tuple[str, ...]) -> None:
    write_traces(place if by else f"{place}.parquet", TRACES, by)
    assert by_id(read_traces(place if by else f"{place}.parquet")) == TRACES


def test_a_later_writing_leaves_nothing_of_an_earlier_one(place: str) -> None:
    write_traces(place, TRACES, ("tenant",))
    write_traces(place, TRACES[:2], ("day",))
    assert by_id(read_traces(place)) == TRACES[:2]


def test_folders_are_named_as_hive_names_them(tmp_path: Path) -> None:
    write_traces(tmp_path / "t", TRACES, ("day", "tenant"))
    found = {path.parent.relative_to(tmp_path / "t").as_posix() for path in (tmp_path / "t").rglob("*.parquet")}
    assert {"day=2026-03-01/tenant=007", "day=2026-03-02/tenant=acme%2Feu"} <= found
    assert "day=__HIVE_DEFAULT_PARTITION__/tenant=__HIVE_DEFAULT_PARTITION__" in found
    (some, *_) = (tmp_path / "t").rglob("tenant=007/*.parquet")
    assert "tenant" not in pq.ParquetFile(some).schema_arrow.names


def test_a_pattern_stands_for_its_matches_with_the_keys_of_their_folders(place: str) -> None:
    write_traces(place, TRACES, ("day", "tenant"))
    told = read_traces(f"{place}/day=2026-03-02/*/*.parquet")
    assert by_id(told) == [trace for trace in TRACES if trace.ts is not None and trace.ts.day == 2]
    assert by_id(read_traces(f"{place}/day=2026-03-*")) == TRACES[:9]


def test_what_begins_with_an_underscore_or_a_dot_is_not_read(tmp_path: Path) -> None:
    write_traces(tmp_path / "t" / "a.parquet", TRACES)
    (tmp_path / "t" / "_SUCCESS").touch()
    (tmp_path / "t" / "_logs").mkdir()
    for hidden in ("_logs/b.parquet", ".b.parquet", "notes.txt"):
        (tmp_path / "t" / hidden).write_text("no traces")
    assert read_traces(tmp_path / "t") == TRACES


@pytest.mark.parametrize("mark", [UNFINISHED, "_temporary/0/part.parquet"])
def test_a_folder_that_was_not_written_to_its_end_is_refused(tmp_path: Path, mark: str) -> None:
    write_traces(tmp_path / "t" / "a.parquet", TRACES)
    (tmp_path / "t" / mark).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "t" / mark).touch()
    with pytest.raises(InputError, match="was not written to its end"):
        parts_of(tmp_path / "t")


def test_a_failing_writer_leaves_no_file_and_the_old_one_as_it_was(place: str) -> None:
    def torn() -> Iterator[Trace]:
        yield from TRACES
        raise KeyboardInterrupt

    write_traces(f"{place}/old.parquet", TRACES[:1])
    for name in ("old", "new"):
        with pytest.raises(KeyboardInterrupt):
            write_traces(f"{place}/{name}.parquet", torn())
    assert read_traces(f"{place}/old.parquet") == TRACES[:1]
    with pytest.raises(InputError, match="no such file"):
        read_traces(f"{place}/new.parquet")


def test_a_failing_writer_leaves_a_folder_whole_or_refused(place: str) -> None:
    def torn() -> Iterator[Trace]:
        yield from TRACES
        raise KeyboardInterrupt

    write_traces(place, TRACES[:1], ("day",))
    with pytest.raises(KeyboardInterrupt):
        write_traces(place, torn(), ("day",))
    if place.startswith("memory://"):
        with pytest.raises(InputError, match="was not written to its end"):
            read_traces(place)
        write_traces(place, TRACES[:1], ("day",))
    assert read_traces(place) == TRACES[:1]


def test_a_folder_with_other_things_is_not_replaced(place: str) -> None:
    write_traces(f"{place}/else.parquet", TRACES)
    with pytest.raises(InputError, match=r"not a folder of traces: it holds else\.parquet"):
        write_traces(place, TRACES, ("day",))
    assert read_traces(f"{place}/else.parquet") == TRACES


def test_a_file_url_is_a_path(tmp_path: Path) -> None:
    write_traces(f"file://{tmp_path}/t.parquet", TRACES)
    assert read_traces(tmp_path / "t.parquet") == TRACES


@pytest.mark.parametrize(
    ("url", "says"),
    [("s3://bucket/t.parquet", "pip install s3fs"), ("gs://bucket/t.parquet", "pip install gcsfs")],
)
def test_a_url_whose_package_is_missing_says_how_to_get_it(
    url: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: str) -> None:
        raise ImportError("not here")

    monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    with pytest.raises(InputError, match=says):
        parts_of(url)


def test_an_unknown_protocol_is_named() -> None:
    with pytest.raises(InputError, match="no such protocol: 'pigeon'"):
        parts_of("pigeon://loft/t.parquet")


def test_an_unknown_partition_column_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'goal'.*use day or tenant"):
        write_traces(tmp_path / "t", TRACES, ("goal",))


def test_an_empty_folder_and_a_pattern_without_a_match_are_named(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "*.parquet"):
        with pytest.raises(InputError, match=r"there is no \.parquet file"):
            parts_of(place)


def test_whoever_writes_gets_a_path_and_a_file_system(place: str) -> None:
    with replacing_file(f"{place}/a") as (path, store):
        if store is None:
            Path(path).write_bytes(b"a")
        else:
            with store.open(path, "wb") as file:
                file.write(b"a")
    assert len(parts_of(f"{place}/a")) == 1
    with fsspec.open(f"{place}/a", "rb") as file:
        assert file.read() == b"a"
    with replacing_tree(place, everything):
        pass
    with pytest.raises(InputError, match=r"there is no|no such file"):
        parts_of(place)

"""The trace store: what is written comes back, and a file that was torn or changed is never read."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nouns import traces

from data.errors import InputError
from data.trace_store import read_traces, write_traces
from data.traces import Trace


@given(st.lists(traces, max_size=4))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_written_traces_come_back_equal(tmp_path: Path, some: list[Trace]) -> None:
    write_traces(tmp_path / "t.parquet", some)
    assert read_traces(tmp_path / "t.parquet") == some


def test_the_columns_are_the_fields_of_a_trace(tmp_path: Path) -> None:
    write_traces(tmp_path / "t.parquet", [Trace(trace_id="t", goal="g")])
    schema = pq.read_schema(tmp_path / "t.parquet")
    assert schema.names == list(Trace.model_fields)
    assert schema.field("ts").type == pa.timestamp("us", tz="UTC")
    assert schema.field("step").type == pa.int64()
    assert schema.field("mutation").type == schema.field("task_success").type == pa.bool_()
    assert schema.field("arguments").type == pa.string()
    assert [field.name for field in schema.field("menu").type.value_type] == [
        "tool_id",
        "position",
        "relevance",
        "propensity",
        "explored",
    ]


def test_what_is_not_known_is_null_and_not_empty(tmp_path: Path) -> None:
    unknown, nothing = Trace(trace_id="t", goal="g"), Trace(trace_id="t", goal="g", menu=(), retrieved=(), arguments={})
    write_traces(tmp_path / "t.parquet", [unknown, nothing])
    first, second = pq.read_table(tmp_path / "t.parquet").to_pylist()
    assert [first[name] for name in ("menu", "retrieved", "arguments", "mutation", "ts")] == [None] * 5
    assert [second[name] for name in ("menu", "retrieved", "arguments")] == [[], [], "{}"]


def test_plain_lines_are_read_by_the_ending_of_the_name(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"trace_id": "t", "subgoal": "sing", "tool_id": None}))
    assert read_traces(path) == [Trace(trace_id="t", goal="sing")]


def test_a_torn_file_is_refused_wherever_it_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_traces(path, [Trace(trace_id=f"t{n}", goal="g" * n) for n in range(20)])
    whole = path.read_bytes()
    for share in (0.0, 0.2, 0.5, 0.9, 0.999):
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(InputError, match=r"not a whole Parquet file"):
            read_traces(path)


def test_changed_bytes_in_the_data_are_refused_by_the_checksum(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    noise = random.Random(1)
    rows = [Trace(trace_id=f"t{n}", goal="".join(noise.choices("abcdefgh ", k=400))) for n in range(200)]
    write_traces(path, rows)
    raw = bytearray(path.read_bytes())
    at = pq.ParquetFile(path).metadata.row_group(0).column(list(Trace.model_fields).index("goal")).data_page_offset
    raw[at + 2_000] ^= 0xFF
    path.write_bytes(raw)
    with pytest.raises(InputError, match=r"not a whole Parquet file"):
        read_traces(path)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.parquet.*no such file"):
        read_traces(tmp_path / "nowhere.parquet")


def test_a_value_that_is_no_traces_is_named_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    good = {"trace_id": "t", "goal": "g", "outcome": "success", "arguments": "{}"}
    for change, field in (
        ({"outcome": "maybe"}, "outcome"),
        ({"arguments": "{"}, "arguments"),
        ({"goal": None}, "goal"),
    ):
        pq.write_table(pa.Table.from_pylist([good, {**good, **change}]), path)
        with pytest.raises(InputError) as caught:
            read_traces(path)
        assert (caught.value.line, caught.value.field) == (2, field)


def test_columns_that_others_left_out_take_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"trace_id": ["t"], "goal": ["g"], "colour": ["red"]}), path)
    assert read_traces(path) == [Trace(trace_id="t", goal="g")]


def test_a_number_too_large_for_its_column_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with pytest.raises(InputError, match=r"does not fit the columns"):
        write_traces(path, [Trace(trace_id="t", goal="g", step=2**70)])
    assert list(tmp_path.iterdir()) == []


def test_plain_files_and_importers_do_without_pyarrow() -> None:
    code = "import sys; sys.modules['pyarrow'] = None; import data.jsonl, data.importers, data.trace_store, data.lint"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_pyarrow_a_parquet_file_asks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'toolcrib\[train\]'"):
        read_traces(tmp_path / "t.parquet")

"""Files of any size and in any state: what can be read is, and what cannot is counted."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from data.errors import InputError
from data.logs.account import Account
from data.logs.files import find, opened
from data.logs.grouping import grouped
from data.logs.json_stream import records

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=3), min_size=1, max_size=6)


def read(content: bytes, **more: int) -> tuple[list[object], Account]:
    account = Account()
    stream = io.BufferedReader(io.BytesIO(content))  # type: ignore[type-var]
    return [record.value for record in records(stream, "log", account, **more)], account


@given(OBJECTS)
def test_lines_arrays_and_documents_hold_the_same_values(values: list[object]) -> None:
    lines = "".join(json.dumps(value) + "\n" for value in values).encode()
    array, indented = json.dumps(values).encode(), json.dumps(values, indent=1).encode()
    documents = "\n".join(json.dumps(value, indent=2) for value in values).encode()
    for content in (lines, array, indented, documents):
        found, account = read(content)
        assert (found, dict(account.skipped)) == (values, {})


def test_values_longer_than_a_chunk_are_whole() -> None:
    values = [{"a": "x" * 3_000_000}, {"b": ["y" * 10] * 300_000}, {"c": 1}]
    for content in (json.dumps(values).encode(), "".join(json.dumps(v) + "\n" for v in values).encode()):
        assert read(content)[0] == values


def test_a_broken_line_is_passed_over_and_a_cut_one_is_told_apart() -> None:
    found, account = read(b'{"a": 1}\nnot json\n\n{"b": NaN}\n{"c": ')
    assert found == [{"a": 1}, {"b": None}]
    assert dict(account.skipped) == {"broken JSON": 1, "the last line is cut off": 1}
    assert account.first["broken JSON"] == "log, line 2"


def test_a_cut_array_gives_what_it_has() -> None:
    found, account = read(b'[{"a": 1}, {"b": 2}, {"c": ')
    assert found == [{"a": 1}, {"b": 2}]
    assert dict(account.skipped) == {"the last line is cut off": 1}


def test_a_broken_array_is_read_up_to_the_break() -> None:
    found, account = read(b'[{"a": 1}, {"b" 2}, {"c": 3}' + b" " * 100 + b"]")
    assert found == [{"a": 1}]
    assert account.skipped == {"broken JSON: the rest of the file was not read": 1}


def test_bytes_that_are_no_utf8_are_replaced_and_counted() -> None:
    found, account = read(b'{"a": "caf\xe9"}\n{"b": 1}\n')
    assert found == [{"a": "caf\ufffd"}, {"b": 1}]
    assert account.noticed == {"bytes that are not UTF-8, replaced": 1}


def test_a_line_beyond_the_bound_is_passed_over() -> None:
    found, account = read(b'{"a": "' + b"x" * 5000 + b'"}\n{"b": 1}\n', max_bytes=1000)
    assert found == [{"b": 1}]
    assert account.skipped.total() == 1


def test_nesting_without_end_is_broken_json() -> None:
    found, account = read(b'{"a": 1}\n' + b"[" * 100_000 + b"\n")
    assert found == [{"a": 1}]
    assert account.skipped == {"broken JSON": 1}


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_compressed_files_are_read_by_what_they_are(tmp_path: Path, compress: object) -> None:
    content = os.urandom(100_000).hex().encode()
    packed = compress(content) + compress(b"and more")  # type: ignore[operator]
    account = Account()
    (tmp_path / "whole.log").write_bytes(packed)
    with opened(tmp_path / "whole.log", account) as stream:
        assert stream.read() == content + b"and more"
    assert not account.noticed
    (tmp_path / "cut.log").write_bytes(packed[: len(packed) // 2])
    with opened(tmp_path / "cut.log", account) as stream:
        part = stream.read()
    assert content.startswith(part)
    assert len(account.noticed) == 1


def test_damaged_compression_is_counted(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b"x" * 1000))
    packed[12:20] = b"\xff" * 8
    (tmp_path / "bad.gz").write_bytes(bytes(packed))
    account = Account()
    with opened(tmp_path / "bad.gz", account) as stream:
        stream.read()
    assert account.noticed == {"a compressed file ends too early, or is damaged": 1}


def test_sources_are_files_folders_and_patterns_each_file_once(tmp_path: Path) -> None:
    for name in ("b/two.jsonl", "a.jsonl", "b/.hidden", ".git/config"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    assert find([tmp_path]) == [tmp_path / "a.jsonl", tmp_path / "b" / "two.jsonl"]
    assert find([f"{tmp_path}/*.jsonl", tmp_path / "a.jsonl"]) == [tmp_path / "a.jsonl"]
    with pytest.raises(InputError, match=r"there is no log file here.*give a file"):
        find([tmp_path / "nothing-*"])


def test_groups_are_the_same_in_memory_and_on_disk() -> None:
    told = [(f"k{number % 7}", {"n": number, "text": "é\n"}) for number in range(500)]
    in_memory = dict(grouped(told, Account()))
    on_disk = dict(grouped(told, Account(), memory_bytes=1000))
    assert in_memory == on_disk
    assert [record["n"] for record in on_disk["k3"]] == list(range(3, 500, 7))

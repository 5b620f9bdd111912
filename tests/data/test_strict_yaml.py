"""Strict YAML: plain values with their lines, and everything else refused at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from data.errors import InputError
from data.strict_yaml import read_yaml


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "d.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_values_are_plain_json_and_a_date_or_a_key_stays_its_text(tmp_path: Path) -> None:
    value, lines = read_yaml(write(tmp_path, "a: [1, 2.5, true, null, x]\nday: 2024-01-02\n200: {b: ''}\non: 1\n"))
    assert value == {"a": [1, 2.5, True, None, "x"], "day": "2024-01-02", "200": {"b": ""}, "on": 1}
    assert (lines["day",], lines["200", "b"], lines["a", 4]) == (2, 3, 1)


def test_an_empty_file_is_nothing(tmp_path: Path) -> None:
    assert read_yaml(write(tmp_path, "# only a remark\n")) == (None, {})


def test_an_alias_stands_for_its_value(tmp_path: Path) -> None:
    assert read_yaml(write(tmp_path, "a: &x [1]\nb: *x\n"))[0] == {"a": [1], "b": [1]}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\na: 2", 2, "key 'a' is repeated"),
        ("a: 1\n? [b]\n: 2", 2, "single word"),
        ("a: &x {b: 1}\nc:\n  <<: *x", 3, "single word"),
        ("a: !!python/object:os.system x", 1, "tag"),
        ("a: !!binary aGk=", 1, "tag"),
        ("a: &x\n  - *x", 1, "contains itself"),
        ("a: [1\nb: 2", 2, "not readable as YAML"),
        ("a: 1\n---\nb: 2", 2, "not readable as YAML"),
        (b"a: \xff", None, "not UTF-8"),
        ("[" * 5000, None, "nested too deeply|not readable"),
    ],
)
def test_everything_else_is_refused_at_its_line(
    tmp_path: Path, text: str | bytes, line: int | None, words: str
) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read_yaml(write(tmp_path, text))
    if line is not None:
        assert caught.value.line == line


def test_aliases_that_spell_more_than_memory_holds_are_refused(tmp_path: Path) -> None:
    doubling = "\n".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 64))
    with pytest.raises(InputError, match=r"aliases stand for more than"):
        read_yaml(write(tmp_path, f"a0: &a0 [x]\n{doubling}\n"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.yaml: cannot be read"):
        read_yaml(tmp_path / "no.yaml")

"""Plain jsonl files of tools and queries: read whole or refused with the place, written whole or not at all."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nouns import cards

from data.cards import Risk, ToolCard
from data.catalog import Catalog
from data.errors import InputError
from data.jsonl import load_catalog, load_queries, load_traces, read_objects, save_catalog, write_jsonl

TOOL = {"tool_id": "mail.send", "name": "send"}
QUERY = {"qid": "q1", "text": "write to Ann", "gold": ["mail.send"]}
TRACE = {"trace_id": "t1", "subgoal": "write to Ann", "tool_id": "mail.send"}


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_tool_line_needs_an_id_and_a_name_only(tmp_path: Path) -> None:
    (card,) = load_catalog(write(tmp_path / "c.jsonl", TOOL))
    assert card == ToolCard(tool_id="mail.send", name="send")


@pytest.mark.parametrize(
    ("given_keys", "risk"),
    [
        ({"read_only": True}, Risk.READ_ONLY),
        ({"read_only": False}, Risk.WRITE),
        ({"read_only": None}, Risk.DESTRUCTIVE),
        ({}, Risk.DESTRUCTIVE),
        ({"read_only": True, "risk": "destructive"}, Risk.DESTRUCTIVE),
        ({"read_only": True, "risk": None}, Risk.READ_ONLY),
        ({"risk": "write"}, Risk.WRITE),
    ],
)
def test_read_only_gives_the_risk_unless_the_risk_is_given(
    tmp_path: Path, given_keys: dict[str, object], risk: Risk
) -> None:
    (card,) = load_catalog(write(tmp_path / "c.jsonl", {**TOOL, **given_keys}))
    assert card.risk is risk


def test_tools_keep_the_order_of_the_file(tmp_path: Path) -> None:
    ids = ["z.a", "a.z", "m.m"]
    catalog = load_catalog(write(tmp_path / "c.jsonl", *({**TOOL, "tool_id": tool_id} for tool_id in ids)))
    assert list(catalog.ids) == ids


@given(st.lists(cards, min_size=1, max_size=4, unique_by=lambda card: card.tool_id))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_saved_catalog_comes_back_equal(tmp_path: Path, some: list[ToolCard]) -> None:
    save_catalog(tmp_path / "c.jsonl", Catalog(some))
    again = load_catalog(tmp_path / "c.jsonl")
    assert list(again) == some
    assert again.version == Catalog(some).version


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"tool_id": None}, "tool_id", "missing"),
        ({"name": None}, "name", "missing"),
        ({"tool_id": "  "}, "tool_id", "blank"),
        ({"name": ""}, "name", "blank"),
        ({"tool_id": 7}, "tool_id", "found 7"),
        ({"description": ["a"]}, "description", "string"),
        ({"aliases": "one"}, "aliases", "array"),
        ({"aliases": ["one", 2]}, "aliases.1", "string"),
        ({"input_schema": "{}"}, "input_schema", "object"),
        ({"core": "yes"}, "core", "boolean"),
        ({"core": 1}, "core", "boolean"),
        ({"cost_usd": -1}, "cost_usd", "greater"),
        ({"cost_usd": "0.1"}, "cost_usd", "number"),
        ({"risk": "harmless"}, "risk", "read_only, write or destructive"),
        ({"trust": "friend"}, "trust", "trusted or third_party"),
        ({"read_only": "true"}, "read_only", "true, false or null"),
        ({"first_seen": "yesterday"}, "first_seen", "datetime"),
        ({"tenants": None}, "tenants", "array"),
        ({"requires": {"scope": ["mail"]}}, "requires.scope", "connections and scopes"),
        ({"requires": {"scopes": "mail"}}, "requires.scopes", "array"),
    ],
)
def test_a_wrong_field_is_named_with_file_and_line(
    tmp_path: Path, change: dict[str, object], field: str, words: str
) -> None:
    path = write(tmp_path / "c.jsonl", {**TOOL, "tool_id": "first.tool"}, {**TOOL, **change})
    with pytest.raises(InputError) as caught:
        load_catalog(path)
    assert (caught.value.source, caught.value.line, caught.value.field) == (str(path), 2, field)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"tool_id": ', "broken JSON"),
        (b'{"tool_id": "a"} {"tool_id": "b"}', "broken JSON"),
        (b'{"cost_usd": NaN}', "NaN is not JSON"),
        (b"[" * 100_000, "broken JSON"),
        (b"7" * 5_000, "broken JSON"),
        (b"[]", "found list"),
        (b"null", "found NoneType"),
        (b'"text"', "found str"),
        ('{"name": "Ä"}'.encode("latin-1"), "not UTF-8"),
        (b'{"tool_id": "a", "name": "\\ud800"}', ""),
        (b'{"tool_id": "a", "name": "a", "cost_usd": 1e999}', "infinity"),
    ],
)
def test_a_line_that_is_no_json_object_is_refused(tmp_path: Path, line: bytes, words: str) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(json.dumps(TOOL).encode() + b"\n\n" + line + b"\n")
    with pytest.raises(InputError, match=r"line 3") as caught:
        load_catalog(path)
    assert words in str(caught.value)


@pytest.mark.parametrize("load", [load_catalog, load_queries, load_traces])
@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_lines_is_refused(tmp_path: Path, load: object, content: str) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=r"holds no lines"):
        load(path)  # type: ignore[operator]


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.jsonl", tmp_path):
        with pytest.raises(InputError, match=r"cannot be read") as caught:
            load_catalog(path)
        assert caught.value.source == str(path)


def test_a_repeated_id_is_refused_with_both_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", TOOL, {**TOOL, "tool_id": "b"}, TOOL)
    with pytest.raises(InputError, match=r"line 3.*'mail.send'.*line 1"):
        load_catalog(path)
    path = write(tmp_path / "q.jsonl", QUERY, QUERY)
    with pytest.raises(InputError, match=r"line 2.*qid.*'q1'.*line 1"):
        load_queries(path)


def test_unknown_keys_are_counted_in_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "c.jsonl", {**TOOL, "colour": 1}, {**TOOL, "tool_id": "b", "colour": 2, "size": 3})
    with caplog.at_level(logging.WARNING, logger="toolcrib"):
        assert len(load_catalog(path)) == 2
    (record,) = caplog.records
    assert "colour (2), size (1)" in record.getMessage()


def test_known_keys_are_no_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="toolcrib"):
        load_catalog(write(tmp_path / "c.jsonl", {**TOOL, "read_only": True, "owner": "ops"}))
    assert not caplog.records


def test_a_byte_order_mark_and_windows_line_ends_are_read_over(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(TOOL).encode() + b"\r\n")
    assert load_catalog(path).ids == ("mail.send",)


def test_a_unicode_line_separator_inside_a_text_ends_no_line(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps({**TOOL, "description": "one\u2028two\x85three"}, ensure_ascii=False) + "\n", "utf-8")
    assert load_catalog(path)["mail.send"].description == "one\u2028two\x85three"


def test_a_query_without_gold_is_refused_since_silence_is_not_no_tool(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 1, field 'gold'.*\[\] where no tool fits"):
        load_queries(write(tmp_path / "q.jsonl", {"qid": "q1", "text": "write"}))


def test_a_query_may_have_no_tool_and_alternatives(tmp_path: Path) -> None:
    path = write(
        tmp_path / "q.jsonl",
        {"qid": "a", "text": "sing", "gold": []},
        {"qid": "b", "text": "write", "gold": ["x", "y", "x"], "gold_alt": {"x": ["z"]}, "kind": "multi"},
        {"qid": "c", "text": "write", "gold": ["x"], "gold_alt": None, "kind": None},
    )
    none, several, plain = load_queries(path)
    assert none.gold == ()
    assert (several.gold, several.gold_alt, several.kind) == (("x", "y"), {"x": ("z",)}, "multi")
    assert (plain.gold_alt, plain.kind) == ({}, "")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"qid": None}, "qid"),
        ({"qid": ""}, "qid"),
        ({"text": " "}, "text"),
        ({"text": 3}, "text"),
        ({"gold": "mail.send"}, "gold"),
        ({"gold": [1]}, "gold.0"),
        ({"gold": None}, "gold"),
        ({"gold_alt": ["x"]}, "gold_alt"),
    ],
)
def test_a_wrong_query_field_is_named(tmp_path: Path, change: dict[str, object], field: str) -> None:
    with pytest.raises(InputError) as caught:
        load_queries(write(tmp_path / "q.jsonl", {**QUERY, **change}))
    assert (caught.value.line, caught.value.field) == (1, field)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", TOOL)
    before = path.read_bytes()
    for bad in ({"x": float("nan")}, {"x": object()}, {"x": "\ud800"}):
        with pytest.raises(InputError, match=r"line 2.*nothing was written"):
            write_jsonl(path, [{"x": 1}, bad])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_written_rows_are_read_back_with_their_lines(tmp_path: Path) -> None:
    rows = [{"a": 1}, {"b": "ü\n"}]
    write_jsonl(tmp_path / "deep" / "r.jsonl", rows)
    assert list(read_objects(tmp_path / "deep" / "r.jsonl")) == [(1, rows[0]), (2, rows[1])]

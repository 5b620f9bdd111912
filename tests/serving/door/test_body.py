"""A body is read strictly: one clear error for what is too big, not JSON, ambiguous, or not what the route takes."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from serving.door.body import LISTED_PROBLEMS, BodyLimits, read_json, validated
from serving.door.errors import CODES, DoorError, as_json

LIMITS = BodyLimits(body_bytes=4096, json_depth=8)
JSON = "application/json"


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    text: str = Field(max_length=5)


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    kind: Literal["a", "b"]
    names: tuple[str, ...] = ()
    documents: list[str | Inner] = []
    count: int = 0


def refusal(raw: bytes, content_type: str | None = JSON) -> DoorError:
    with pytest.raises(DoorError) as caught:
        read_json(raw, content_type, LIMITS)
    return caught.value


def rejection(value: object) -> DoorError:
    with pytest.raises(DoorError) as caught:
        validated(Outer, value)
    return caught.value


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(json_values, st.booleans())
def test_what_json_can_say_is_read_as_it_was_said(value: object, ascii_only: bool) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only).encode()
    limits = BodyLimits(json_depth=100)
    assert read_json(raw, JSON, limits) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_either_a_value_or_one_error_of_the_table(raw: bytes) -> None:
    try:
        read_json(raw, JSON, LIMITS)
    except DoorError as caught:
        error = caught
    else:
        return
    assert CODES[error.code][0] == error.status
    assert error.message
    assert error.hint


@pytest.mark.parametrize(
    "content_type", [JSON, "Application/JSON", "application/json; charset=utf-8", 'application/json;charset="UTF-8"']
)
def test_json_is_declared_in_any_case_and_with_its_charset(content_type: str) -> None:
    assert read_json(b"{}", content_type, LIMITS) == {}


@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "application/jsonp", "application/json; charset=latin-1", "application/json, text/html"],
)
def test_another_content_type_is_refused(content_type: str | None) -> None:
    error = refusal(b"{}", content_type)
    assert (error.status, error.code) == (415, "unsupported_media_type")
    assert "application/json" in error.hint


def test_a_body_one_byte_too_large_is_refused_and_one_of_the_very_size_is_read() -> None:
    fits = b'"' + b"a" * 4094 + b'"'
    assert read_json(fits, JSON, LIMITS) == "a" * 4094
    error = refusal(fits + b" ")
    assert (error.status, error.code) == (413, "too_large")
    assert "4096" in error.message


@pytest.mark.parametrize("raw", [b"\xff\xfe{\x00}\x00", b'"\xc3"', b'"\xed\xa0\x80"', b"\x1f\x8b\x08\x00"])
def test_bytes_that_are_not_utf8_are_refused(raw: bytes) -> None:
    error = refusal(raw)
    assert (error.status, error.code) == (400, "invalid_json")
    assert "UTF-8" in error.message


def test_a_byte_order_mark_is_refused_by_its_name() -> None:
    assert "byte order mark" in refusal(b"\xef\xbb\xbf{}").message


@pytest.mark.parametrize("raw", [b"", b" \n\t"])
def test_an_empty_body_is_called_empty(raw: bytes) -> None:
    assert refusal(raw).message == "the body is empty"


@pytest.mark.parametrize("raw", [b"{", b"{'a': 1}", b'{"a": 1} x', b'{"a": 1,}', b'["\x01"]', b"[01]", b'"' * 999])
def test_broken_json_is_refused_with_its_place(raw: bytes) -> None:
    error = refusal(raw)
    assert (error.status, error.code) == (400, "invalid_json")
    assert "line 1, column" in error.message


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b'{"a": 1, "a": 1}', "$.a"),
        (b'{"x": [{}, {"b": {"c d": 1, "c d": 2}}]}', '$.x[1].b["c d"]'),
        (b'{"a": {"k": 1, "k": 2}, "a": 3}', "$.a"),
        (b'{"a": 1, "\\u0061": 2}', "$.a"),
    ],
)
def test_a_repeated_key_is_refused_with_its_path(raw: bytes, path: str) -> None:
    error = refusal(raw)
    assert (error.status, error.code, error.path) == (400, "invalid_json", path)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e400", "9" * 301, "-" + "9" * 3000])
def test_a_number_that_is_none_is_refused_with_its_path(number: str) -> None:
    error = refusal(f'{{"scores": [0.5, {number}]}}'.encode())
    assert (error.status, error.code, error.path) == (400, "invalid_json", "$.scores[1]")


def test_words_in_texts_are_not_taken_for_numbers_or_brackets() -> None:
    text = 'NaN [[[[[[[[[[ {{{{{{{{{{ " \\'
    assert read_json(json.dumps([text]).encode(), JSON, LIMITS) == [text]


@pytest.mark.parametrize(
    ("raw", "path"), [(rb'["\ud800"]', "$[0]"), (rb'{"a": "\udc00x"}', "$.a"), (rb'{"a": {"\udfff": 1}}', "$.a")]
)
def test_half_a_surrogate_pair_is_refused_and_a_whole_one_is_a_character(raw: bytes, path: str) -> None:
    error = refusal(raw)
    assert (error.status, error.path) == (400, path)
    as_json(error)["error"]["message"].encode("utf-8")
    assert read_json(rb'["\ud83d\ude00"]', JSON, LIMITS) == ["\U0001f600"]


@pytest.mark.parametrize("raw", [b"[" * 9, b"[" * 4000, b'{"a":' * 700, b"[" * 9 + b"]" * 9, b'[{"a":[' * 3])
def test_deep_json_is_refused_before_anything_recursive_reads_it(raw: bytes) -> None:
    error = refusal(raw)
    assert (error.status, error.code) == (422, "invalid_body")
    assert "8 levels" in error.message


def test_as_deep_as_allowed_is_read_however_often() -> None:
    raw = b"[" + b",".join([b"[" * 7 + b"]" * 7] * 50) + b"]"
    assert len(read_json(raw, JSON, LIMITS)) == 50  # type: ignore[arg-type]


def test_a_body_of_the_route_is_read_as_json_is_meant() -> None:
    found = validated(Outer, {"kind": "a", "names": ["x"], "documents": ["y", {"text": "z"}]})
    assert found.names == ("x",)
    assert found.documents == ["y", Inner(text="z")]


def test_unknown_fields_are_refused_and_named_wherever_they_are() -> None:
    error = rejection({"kind": "a", "documents": [{"text": "z", "tpyo": 1}], "colour": 2})
    assert (error.status, error.code) == (422, "invalid_body")
    assert "$.documents[0].tpyo: unknown field" in error.message
    assert "$.colour: unknown field" in error.message


def test_a_missing_field_is_named_by_the_path_that_it_should_have() -> None:
    error = rejection({"documents": [{}]})
    assert error.path == "$.kind"
    assert "$.kind: is required" in error.message
    assert "$.documents[0].text: is required" in error.message


@pytest.mark.parametrize("value", [None, 3, [], "text", [{"kind": "a"}]])
def test_a_body_that_is_no_object_is_told_so(value: object) -> None:
    assert rejection(value).message == "$: expected an object"


@pytest.mark.parametrize(("field", "value"), [("count", "3"), ("count", 3.5), ("count", True), ("names", "x")])
def test_nothing_is_read_as_what_it_is_not(field: str, value: object) -> None:
    assert rejection({"kind": "a", field: value}).path == f"$.{field}"


def test_values_are_never_repeated_in_an_error() -> None:
    secret = "hunter2-hunter2"
    error = rejection({"kind": secret, "names": secret, "documents": [{"text": secret}], "count": secret})
    assert secret not in json.dumps(as_json(error))


def test_at_most_five_problems_are_listed_and_the_rest_is_counted() -> None:
    error = rejection({"kind": "a", **{f"field{number}": 1 for number in range(12)}})
    assert error.message.count("unknown field") == LISTED_PROBLEMS
    assert error.message.endswith("and 7 more")


def test_every_error_has_the_same_four_texts() -> None:
    assert as_json(DoorError(404, "not_found", "nothing here")) == {
        "error": {"code": "not_found", "message": "nothing here", "path": "", "hint": ""}
    }

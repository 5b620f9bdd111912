"""Arguments against a tool's schema: problems that a model can act on, no values repeated, no work without bound."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.cards import ToolCard
from serving.gate.arguments import MAX_PROBLEMS, ArgumentChecker, Problem

SECRET = "hunter2-secret"


def problems(schema: dict[str, Any], arguments: object) -> tuple[Problem, ...]:
    return ArgumentChecker().problems(ToolCard(tool_id="d.t", name="t", input_schema=schema), arguments)


def only(schema: dict[str, Any], arguments: object) -> Problem:
    (found,) = problems(schema, arguments)
    return found


def field(schema: object) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


def test_arguments_that_fit_have_no_problems() -> None:
    schema = {**field({"type": "integer", "minimum": 1}), "required": ["a"], "additionalProperties": False}
    assert problems(schema, {"a": 3}) == ()
    assert problems(schema, {"a": 3.0}) == (), "3.0 is an integer in JSON Schema"
    assert problems({}, {"anything": [None, True]}) == ()


def test_every_problem_of_a_call_is_told_with_its_path() -> None:
    schema = {
        "type": "object",
        "properties": {
            "to": {"type": "array", "items": {"type": "object", "properties": {"mail": {"type": "string"}}}},
            "when": {"enum": ["now", "later"]},
        },
        "required": ["subject"],
        "additionalProperties": False,
    }
    found = problems(schema, {"to": [{"mail": "x"}, {"mail": 3}], "when": "soon", "odd name": 1})
    assert {(problem.path, problem.code) for problem in found} == {
        ("$.to[1].mail", "wrong_type"),
        ("$.when", "not_allowed"),
        ("$.subject", "required"),
        ("$", "unexpected"),
    }
    said = {problem.path: f"{problem.message} ({problem.hint})" for problem in found}
    assert said["$.to[1].mail"] == "has to be string, found integer ()"
    assert said["$.when"] == 'is none of the allowed values (use one of "now", "later")'
    assert said["$.subject"] == "is required and missing (add it)"
    assert 'takes no "odd name"' in said["$"]


@pytest.mark.parametrize(
    ("schema", "value", "code", "part"),
    [
        ({"minimum": 3}, 1, "out_of_range", "at least 3"),
        ({"exclusiveMaximum": 3}, 3, "out_of_range", "less than 3"),
        ({"multipleOf": 5}, 3, "out_of_range", "a multiple of 5"),
        ({"maxLength": 3}, SECRET, "wrong_length", "at most 3"),
        ({"minItems": 2}, [SECRET], "wrong_length", "at least 2"),
        ({"pattern": "^[0-9]+$"}, SECRET, "no_match", "^[0-9]+$"),
        ({"const": "x"}, SECRET, "not_allowed", 'use "x"'),
        ({"type": ["integer", "null"]}, SECRET, "wrong_type", "integer or null, found string"),
        ({"uniqueItems": True}, [SECRET, SECRET], "repeated", "same item twice"),
        ({"not": {"type": "string"}}, SECRET, "no_match", "ruled out"),
        (False, SECRET, "unexpected", "is not taken"),
        ({"oneOf": [{"type": "string"}, {"minLength": 1}]}, SECRET, "no_match", "more than one"),
        ({"anyOf": [{"type": "integer"}, {"maxLength": 3}]}, SECRET, "no_match", "none of the 2 allowed forms"),
        ({"propertyNames": {"maxLength": 2}}, {SECRET: 1}, "unexpected", "key whose name"),
    ],
)
def test_a_problem_says_what_is_expected_and_never_the_value(
    schema: object, value: object, code: str, part: str
) -> None:
    found = only(field(schema), {"a": value})
    assert (found.path, found.code) == ("$.a", code)
    assert part in f"{found.message} {found.hint}"
    assert SECRET not in json.dumps(found)


def test_of_several_forms_the_one_with_the_right_tag_is_explained() -> None:
    def form(kind: str, value: str) -> dict[str, Any]:
        return {"properties": {"kind": {"const": kind}, "value": {"type": value}}, "required": ["kind", "value"]}

    schema = {"anyOf": [form("text", "string"), form("count", "integer"), form("flag", "boolean")]}
    found = only(schema, {"kind": "count", "value": SECRET})
    assert found.hint.startswith("the nearest of them: $.value has to be integer, found string")


def test_invisible_text_of_a_schema_does_not_come_back_through_a_problem() -> None:
    found = only(field({"enum": ["now\U000e0041\u200b"]}), {"a": 1})
    assert found.hint == 'use one of "now"'


def test_long_lists_and_many_problems_are_bounded() -> None:
    assert len(only(field({"enum": [f"option {n}" for n in range(5_000)]}), {"a": 1}).hint) < 1_000
    many = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert len(problems(many, {f"k{n}": "x" for n in range(500)})) == MAX_PROBLEMS
    assert len(only(field({"const": "x" * 100_000}), {"a": 1}).hint) < 1_000
    closed = {"type": "object", "additionalProperties": False}
    assert len(only(closed, {"k" * 100_000: 1}).message) < 1_000


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (None, "wrong_type"),
        ([1], "wrong_type"),
        ("text", "wrong_type"),
        (3, "wrong_type"),
        ({"a": float("nan")}, "not_json"),
        ({"a": [float("-inf")]}, "not_json"),
        ({"a": 10**5000}, "not_json"),
        ({"a": "\ud800"}, "not_json"),
        ({"\udfff": 1}, "not_json"),
        ({"a": deep(10_000)}, "not_json"),
        ({"a": list(range(200_000))}, "not_json"),
        ({"a": {1: 2}}, "not_json"),
        ({"a": {"b": b"bytes"}}, "not_json"),
        ({"a": (1, 2)}, "not_json"),
    ],
)
def test_what_is_no_json_object_is_one_problem_and_no_exception(arguments: object, code: str) -> None:
    assert only({"type": "object"}, arguments).code == code


def test_numbers_beyond_64_bits_meet_their_bounds() -> None:
    for number in (2**63, 2**64, 2**128, 10**300):
        assert only(field({"maximum": 3}), {"a": number}).code == "out_of_range"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"pattern": "(a{1,1000}){1,1000}"}}},
        {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}},
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"properties": {"a": {"$ref": "#/$defs/missing"}}},
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
        {"$schema": "https://example.com/own-dialect"},
        {"properties": {"a": {"minimum": float("nan")}}},
        {"properties": {"a": {"enum": ["\ud800"]}}},
        {"properties": {"a": {"enum": deep(10_000)}}},
    ],
)
def test_a_schema_that_cannot_be_used_is_a_stated_problem(schema: dict[str, Any]) -> None:
    checker = ArgumentChecker()
    card = ToolCard(tool_id="d.t", name="t", input_schema=schema)
    for _ in range(2):
        (found,) = checker.problems(card, {"a": "x"})
        assert found.code == "unusable_schema"
    assert not checker.usable(card)


def test_a_schema_is_read_in_the_draft_that_it_names() -> None:
    draft4 = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"a": {"minimum": 3, "exclusiveMinimum": True}},
    }
    assert only(draft4, {"a": 3}).code == "out_of_range"


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(?=(a+)+$)", "(a+)+\\1$", "^(a|a)*b(?!c)$"])
def test_a_pattern_that_would_backtrack_for_ever_is_bounded(pattern: str) -> None:
    assert only(field({"pattern": pattern}), {"a": "a" * 30_000 + "!"}).code == "no_match"


def test_references_that_double_the_work_at_every_step_are_refused() -> None:
    defs: dict[str, Any] = {"n0": {"required": ["x"]}}
    for n in range(1, 60):
        defs[f"n{n}"] = {"anyOf": [{"$ref": f"#/$defs/n{n - 1}"}, {"$ref": f"#/$defs/n{n - 1}"}]}
    assert only({"$defs": defs, "$ref": "#/$defs/n59"}, {}).code == "unusable_schema"


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"x": value}
    return value


def test_recursion_that_doubles_the_work_at_every_level_is_bounded_by_depth() -> None:
    branch = {"properties": {"x": {"$ref": "#/$defs/n"}}, "required": ["q"]}
    schema = {"$defs": {"n": {"anyOf": [branch, branch]}}, "$ref": "#/$defs/n"}
    assert only(schema, nested(60)).code == "too_complex"
    assert only(schema, nested(3)).code == "no_match", "shallow arguments are told what is wrong"


def test_a_schema_that_refers_to_itself_once_a_level_takes_deep_arguments() -> None:
    tree = {"properties": {"x": {"$ref": "#/$defs/n"}, "leaf": {"type": "integer"}}, "additionalProperties": False}
    schema = {"$defs": {"n": tree}, "$ref": "#/$defs/n"}
    assert problems(schema, nested(60)) == ()
    assert only(schema, {"x": {"x": {"leaf": "no"}}}).path == "$.x.x.leaf"


def test_a_filter_that_nests_in_two_ways_is_a_usual_schema() -> None:
    ref = {"type": "array", "items": {"$ref": "#/$defs/filter"}}
    schema = {
        "type": "object",
        "properties": {"filter": {"$ref": "#/$defs/filter"}},
        "$defs": {
            "filter": {
                "anyOf": [
                    {"properties": {"field": {"type": "string"}}, "required": ["field"]},
                    {"properties": {"and": ref}, "required": ["and"]},
                    {"properties": {"or": ref}, "required": ["or"]},
                ]
            }
        },
    }
    value: dict[str, Any] = {"field": "a"}
    for n in range(20):
        value = {"and" if n % 2 else "or": [value, {"field": "b"}]}
    assert problems(schema, {"filter": value}) == ()


def test_a_card_that_takes_the_place_of_another_brings_its_own_schema() -> None:
    checker = ArgumentChecker(capacity=2)
    for n in range(200):
        card = ToolCard(tool_id="d.t", name="t", input_schema=field({"const": n}))
        assert checker.problems(card, {"a": n}) == ()
        assert [problem.code for problem in checker.problems(card, {"a": n + 1})] == ["not_allowed"]


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.sampled_from(["string"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)),
    max_leaves=8,
)
keywords = st.sampled_from(
    [
        "type",
        "properties",
        "a",
        "items",
        "anyOf",
        "$ref",
        "$defs",
        "pattern",
        "enum",
        "minimum",
        "required",
        "not",
        "$id",
    ]
)
parts = st.recursive(
    st.one_of(anything, st.sampled_from(["integer", "#", "#/$defs/a", "#/anyOf/0", "^(a|b)*$", "http://127.0.0.1:9/"])),
    lambda inner: st.one_of(st.dictionaries(keywords, inner, max_size=4), st.lists(inner, max_size=3)),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(keywords, parts, max_size=5), st.one_of(anything, st.dictionaries(keywords, anything)))
def test_no_schema_and_no_arguments_raise(schema: dict[str, Any], arguments: object) -> None:
    for problem in problems(schema, arguments):
        assert problem.path.startswith("$")
        assert problem.code
        assert problem.message

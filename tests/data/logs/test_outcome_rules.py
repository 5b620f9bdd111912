"""Every outcome rule decides a call of its own; user rules come first; tables that make no sense are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from data.errors import InputError
from data.logs.events import Call
from data.logs.outcomes import Judge

JUDGE = Judge()


def answered(payload: Any, flag: bool | None = None, error: str = "") -> Call:
    return Call("tool", answered=True, payload=payload, flag=flag, error=error)


EXAMPLES: dict[str, tuple[Call, str, str]] = {
    "refused_by_a_person": (answered(None, False, "Tool use was rejected by the user"), "failure", "auth"),
    "flag_of_a_refusal": (answered("The user doesn't want to proceed with this", False), "failure", "auth"),
    "refused_in_plain_words": (answered("The user declined this call."), "failure", "auth"),
    "error_of_limits": (answered({"error": "429 Too Many Requests"}), "failure", "rate_limited"),
    "error_of_time": (answered("Error: request timed out after 30 s"), "failure", "timeout"),
    "error_of_access": (answered({"statusCode": 401, "message": "Unauthorized"}), "failure", "auth"),
    "error_of_arguments": (answered(None, False, "MCP error -32602: Invalid arguments"), "failure", "validation"),
    "error_of_the_service": (answered({"ok": False, "error": "ECONNREFUSED"}), "failure", "unavailable"),
    "error_of_the_tool": (answered("Traceback (most recent call last):\n  ..."), "failure", "tool_error"),
    "flag_of_limits": (answered("slow down, rate limit reached", False), "failure", "rate_limited"),
    "flag_of_time": (answered("it took too long", False), "failure", "timeout"),
    "flag_of_access": (answered("your token has expired, the session is invalid", False), "failure", "auth"),
    "flag_of_arguments": (answered("'city' is a required property", False), "failure", "validation"),
    "flag_of_the_service": (answered("the backend is unavailable", False), "failure", "unavailable"),
    "flag_of_the_tool": (answered("division by zero", False), "failure", "tool_error"),
    "no_result_but_fine": (Call("tool", flag=True), "success", "none"),
    "no_result": (Call("tool"), "unknown", "none"),
    "empty_result": (answered({"results": []}), "success", "empty_result"),
    "answered": (answered("42"), "success", "none"),
}


def test_every_rule_has_its_example() -> None:
    assert set(EXAMPLES) == {rule.name for rule in JUDGE.rules}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_rule_decides_its_example(name: str) -> None:
    call, outcome, error_class = EXAMPLES[name]
    verdict = JUDGE.verdict(call, "otel")
    assert (verdict.rule, verdict.outcome, verdict.error_class) == (name, outcome, error_class)


@pytest.mark.parametrize(
    ("payload", "error_class"),
    [
        ('{"status": "error", "message": "quota exceeded"}', "rate_limited"),
        ([{"type": "text", "text": "Error executing tool search: 503 Service Unavailable"}], "unavailable"),
        ({"content": [{"type": "text", "text": "no such file"}], "isError": True}, "tool_error"),
        ("<tool_use_error>InputValidationError: path is missing</tool_use_error>", "validation"),
        ({"success": False, "reason": "permission denied"}, "auth"),
    ],
)
def test_a_flag_that_says_fine_does_not_outweigh_an_error_in_the_answer(payload: Any, error_class: str) -> None:
    verdict = JUDGE.verdict(answered(payload, flag=True), "otel")
    assert (verdict.outcome, verdict.error_class) == ("failure", error_class)


@pytest.mark.parametrize("payload", ["", "[]", None, "No results found.", {"items": [], "total": 0}, [], "null"])
def test_nothing_is_an_empty_success(payload: Any) -> None:
    verdict = JUDGE.verdict(answered(payload, flag=True), "otel")
    assert (verdict.outcome, verdict.error_class) == ("success", "empty_result")


@pytest.mark.parametrize(
    "payload",
    [
        "The page explains what a 404 error is and how a timeout differs from it.",
        {"error": None, "data": [1]},
        {"status": "ok", "code": 200, "errors": []},
        {"results": [], "answer": "none needed", "items": ["x"]},
        0,
        {"log": "ERROR 500 was seen yesterday"},
    ],
)
def test_an_answer_that_speaks_of_errors_is_an_answer(payload: Any) -> None:
    assert JUDGE.verdict(answered(payload), "otel").rule == "answered"


def test_rules_of_a_user_are_tried_first_and_for_their_source(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "shapes: {error_keys: [fault]}\n"
        "rules:\n"
        "  - {name: cold_cache, source: [mcp], matches: cold cache, outcome: failure, error_class: unavailable}\n"
    )
    judge = Judge(rules)
    assert judge.verdict(answered("cold cache"), "mcp").rule == "cold_cache"
    assert judge.verdict(answered("cold cache"), "otel").rule == "answered"
    assert judge.verdict(answered({"fault": "boom"}), "otel").rule == "error_of_the_tool"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rules: [{name: x, outcome: maybe, error_class: none}]", r"line 1, rules\.0\.outcome"),
        ("rules: [{name: x, matches: '(', outcome: failure, error_class: none}]", r"not a regular expression"),
        ("rulez: []", r"rulez"),
        ("rules: [", r"line 2: not readable as YAML"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(tmp_path: Path, text: str, words: str) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(text)
    with pytest.raises(InputError, match=words):
        Judge(rules)

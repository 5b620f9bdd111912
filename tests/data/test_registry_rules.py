"""The registry's rules apart from any database: what changed, hidden text written out, and rules read from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from data.cards import Risk, ToolCard
from data.errors import InputError
from data.findings import RULES
from data.registry import BLOCKING, Change, changes, content_of, read_auto_approval


def card(**fields: Any) -> ToolCard:
    return ToolCard(**{"tool_id": "post.send", "name": "send", **fields})


def test_only_what_differs_is_a_change_down_to_its_place_in_the_schema() -> None:
    old = card(description="Send.", input_schema={"properties": {"to": {"type": "string"}, "cc": {"type": "string"}}})
    new = card(description="Send it.", input_schema={"properties": {"to": {"type": "string", "default": None}}})
    assert changes(old, new) == [
        Change("description", "Send.", "Send it."),
        Change("input_schema.properties.to.default", None, "null"),
        Change("input_schema.properties.cc", '{"type": "string"}', None),
    ]
    assert changes(old, old) == []


def test_a_new_card_is_all_that_it_says() -> None:
    assert [change.field for change in changes(None, card(description="Send."))] == [
        *("tool_id", "name", "description", "requires", "risk", "trust")
    ]


def test_true_is_not_one_and_an_order_is_a_change() -> None:
    (change,) = changes(card(input_schema={"x": 1}), card(input_schema={"x": True}))
    assert (change.before, change.after) == ("1", "true")
    assert len(changes(card(input_schema={"x": [1, 2]}), card(input_schema={"x": [2, 1]}))) == 1


def test_hidden_text_is_written_out_on_both_sides_and_in_keys() -> None:
    old, new = card(description="a\u202eb"), card(description="a\U000e0041b", input_schema={"k\u200b": "v\u200b"})
    shown = "".join(f"{change.field}{change.before}{change.after}" for change in changes(old, new))
    assert not {"\u202e", "\U000e0041", "\u200b"} & set(shown)
    assert "\\u{202E}" in shown


def test_a_content_hash_covers_the_description_and_the_schema() -> None:
    texts = [card(), card(description="x"), card(input_schema={"a": 1}), card(risk=Risk.WRITE), card(owner="x")]
    assert len({content_of(one) for one in texts}) == len(texts)
    assert content_of(card(input_schema={"a": 1, "b": 2})) == content_of(card(input_schema={"b": 2, "a": 1}))


def test_rules_are_read_with_their_careful_defaults(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("auto_approve:\n  - {name: ours, source: 'post*', max_risk: write}\n  - {name: b, source: x}\n")
    first, second = read_auto_approval(path).auto_approve
    assert (first.max_risk, second.max_risk) == (Risk.WRITE, Risk.READ_ONLY)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a", "expected 'auto_approve'"),
        ("", "expected 'auto_approve'"),
        ("auto_approve: [{source: x}]", r"auto_approve\.0\.name"),
        ("auto_approve: [{name: a, source: ''}]", r"auto_approve\.0\.source"),
        ("auto_approve: [{name: a, source: x, risk: write}]", r"auto_approve\.0\.risk"),
        ("auto_approve: [{name: a, source: x, max_risk: none}]", r"auto_approve\.0\.max_risk: expected read_only"),
        ("approve: []", "approve"),
    ],
)
def test_rules_that_are_none_are_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read_auto_approval(path)


def test_every_rule_whose_findings_are_errors_keeps_a_card_from_being_approved_unread() -> None:
    assert {name for name, rule in RULES.items() if rule.severity == "error"} <= BLOCKING <= set(RULES)

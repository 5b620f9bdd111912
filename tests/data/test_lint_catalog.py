"""Lint across a catalog: names that pass for others, tools that say the same, schemas, and what was looked at."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.cards import Risk, ToolCard, Trust
from data.catalog import Catalog
from data.errors import InputError
from data.findings import fails
from data.lint import RULES, lint_catalog, read_suppressions, suppressed
from data.lint.duplicates import lexical_pairs


def card(name: str = "send_mail", domain: str = "post", **changes: Any) -> ToolCard:
    fields = {"tool_id": f"{domain}.{name}", "description": f"Does {name} for the people of {domain}.", "owner": "x"}
    return ToolCard(name=name, domain=domain, **{**fields, **changes})


def found(*cards: ToolCard, vectors: Any = None) -> list[tuple[str, str]]:
    return [(finding.rule, finding.tool_id) for finding in lint_catalog(Catalog(cards), vectors)]


@pytest.mark.parametrize("name", ["send_mai1", "send_m\u0430il", "s\u0435nd_m\u0430il", "send_mail\u200b"])
def test_a_name_that_looks_like_another_servers_is_an_error(name: str) -> None:
    assert ("name-looks-alike", f"evil.{name}".replace("\u200b", "\\u{200B}")) in found(card(), card(name, "evil"))


def test_a_server_that_looks_like_another_is_an_error() -> None:
    assert ("name-looks-alike", "p\u043est.read_mail") in found(card(), card("read_mail", "p\u043est"))


@pytest.mark.parametrize("name", ["Send_Mail", "sendMail", "send_mails", "send-mail"])
def test_other_ways_to_write_a_name_are_not_look_alikes(name: str) -> None:
    assert "name-looks-alike" not in [rule for rule, _ in found(card(), card(name, "chat"))]


def test_a_third_party_with_a_trusted_tools_name_shadows_it_and_equals_are_only_mentioned() -> None:
    own, other = card(trust=Trust.TRUSTED), card(domain="evil")
    assert found(own, other) == [("name-shadows", "evil.send_mail")]
    assert found(card(), other) == [("name-shared", "post.send_mail")]
    assert found(card(), card("read_mail")) == []


def test_tools_of_two_tenants_neither_shadow_nor_repeat_each_other() -> None:
    assert found(card(tenants=("a",)), card(domain="evil", tenants=("b",), tool_id="b/x")) == []


def test_a_servers_tool_may_not_bear_toolcribs_own_names() -> None:
    assert ("name-shadows", "post.call_tool") in found(card("call_tool"))


@pytest.mark.parametrize("name", ["run", "do_it", "main_function", "x1", "execute", "fdfd"])
def test_a_name_that_says_nothing_is_reported(name: str) -> None:
    rules = [rule for rule, _ in found(card(name, description="Send a letter to somebody far away."))]
    assert rules == ([] if name == "do_it" else ["name-cryptic"])


@pytest.mark.parametrize("name", ["list_runs", "DNS", "echo", "поиск", "检索"])
def test_a_name_that_says_something_is_not(name: str) -> None:
    assert "name-cryptic" not in [rule for rule, _ in found(card(name))]


def test_a_parameter_that_many_servers_have_is_no_mention_of_a_tool() -> None:
    tools = [card(f"list_{n}", f"s{n}", input_schema={"properties": {"sort_by": {"type": "string"}}}) for n in range(3)]
    sly = card(description="List everything; sort_by is the order.")
    assert "names-another-server" not in [rule for rule, _ in found(*tools, card("sort_by", "films"), sly)]


SAME = (
    "Draw a {} plot of all the values in one table, with its title, legend, colours and axes that have names, "
    "and then save it as some picture file."
)


def test_near_duplicates_are_reported_once_with_the_others() -> None:
    one, other = card("boxes", description=SAME.format("box")), card("violins", description=SAME.format("violin"))
    (finding,) = lint_catalog(Catalog([one, other]))
    assert (finding.rule, finding.tool_id) == ("near-duplicate", "post.boxes")
    assert "'post.violins' (0.8" in finding.message


@pytest.mark.parametrize("field", ["not_for", "prefer_over"])
def test_near_duplicates_that_tell_themselves_apart_are_not_reported(field: str) -> None:
    one = card("boxes", description=SAME.format("box"))
    other = card("violins", description=SAME.format("violin"), **{field: ("few values: take boxes",)})
    assert found(one, other) == []


def test_near_duplicates_whose_names_and_texts_say_the_difference_are_not_reported() -> None:
    one, other = card("draw_box", description=SAME.format("box")), card("draw_bar", description=SAME.format("bar"))
    assert found(one, other) == []
    general = card("draw_plot", description=SAME.format("nice"))
    assert found(one, general) == [("near-duplicate", "post.draw_box")]


def test_near_duplicates_in_other_words_are_found_by_their_vectors() -> None:
    cards = [card(), card("pay_bill"), card("post_letter")]
    vectors = np.array([[1, 0], [0, 1], [0.99, 0.141]], np.float32)
    assert found(*cards, vectors=vectors) == [("near-duplicate", "post.send_mail")]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.frozensets(st.sampled_from("abcdefghij"), min_size=5), max_size=12), st.sampled_from([0.6, 0.8, 0.9])
)
def test_prefix_filtering_finds_what_comparing_all_finds(sets: list[frozenset[str]], threshold: float) -> None:
    slow = {
        (i, j)
        for i in range(len(sets))
        for j in range(i + 1, len(sets))
        if len(sets[i] & sets[j]) / len(sets[i] | sets[j]) >= threshold
    }
    assert {(i, j) for i, j, _ in lexical_pairs(sets, threshold)} == slow


@pytest.mark.parametrize(
    ("name", "text", "risk", "rules"),
    [
        ("purge", "Purge a queue of its letters.", Risk.READ_ONLY, ["read-only-destroys"]),
        ("inbox_cleaner", "Deletes all letters of a box.", Risk.READ_ONLY, ["read-only-destroys"]),
        ("inbox", "Sends what is in the box to people.", Risk.READ_ONLY, ["read-only-writes"]),
        ("delete_mail", "Delete a letter from the box.", Risk.WRITE, ["write-destroys"]),
        ("play_style_comment", "Show remarks on how a team did.", Risk.READ_ONLY, ["read-only-writes"]),
        ("team_comment", "Show remarks on how a team did.", Risk.READ_ONLY, []),
        ("team_play_style", "Show remarks on how a team did.", Risk.READ_ONLY, []),
        ("chat_post_text", "Posts a text for a team to read.", Risk.READ_ONLY, ["read-only-writes"]),
        ("inbox", "Shows what is in the box of people.", Risk.READ_ONLY, []),
    ],
)
def test_a_risk_that_the_words_contradict_is_reported(name: str, text: str, risk: Risk, rules: list[str]) -> None:
    assert [rule for rule, _ in found(card(name, description=text, risk=risk))] == rules


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("TODO", "description-placeholder"),
        ("No description provided.", "description-placeholder"),
        ("This tool", "description-placeholder"),
        ("Answers anything you need.", "catch-all"),
        ("查询余票", "description-short"),
        ("The send mail function.", "description-short"),
    ],
)
def test_a_description_of_nothing_is_reported(text: str, rule: str) -> None:
    assert found(card(description=text)) == [(rule, "post.send_mail")]


def test_a_tool_that_takes_any_program_is_a_catch_all() -> None:
    schema = {"properties": {"code": {"type": "string"}}}
    runs = card("execute_python", description="Runs it in a box of its own.", input_schema=schema)
    assert found(runs) == [("catch-all", "post.execute_python")]


@pytest.mark.parametrize(
    ("name", "domain", "rules"),
    [
        ("run_command", "post", ["catch-all"]),
        ("shell", "shell", ["catch-all"]),
        ("desk_execute", "desk", ["catch-all"]),
        ("run_robot_command", "post", []),
    ],
)
def test_a_command_is_a_program_unless_the_name_says_whose_it_is(name: str, domain: str, rules: list[str]) -> None:
    schema = {"properties": {"command": {"type": "string"}}}
    assert [
        rule for rule, _ in found(card(name, domain, description="Runs it where it is.", input_schema=schema))
    ] == rules


def test_a_sentence_under_every_tool_is_boilerplate_once() -> None:
    line = "This command belongs to the office and can be asked for in many ways by everybody there."
    tools = [card(f"list_{n}{n}", description=f"List {word} {n}. {line}") for n, word in enumerate("abcdefgh")]
    assert [rule for rule, _ in found(*tools)].count("description-boilerplate") == 1


CYCLE = {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"properties": {"b": {"$ref": "#/$defs/A"}}}}}
PARAMETER = {"type": "string", "description": "Who"}


@pytest.mark.parametrize(
    ("schema", "rules"),
    [
        ({"type": "array"}, ["schema-invalid"]),
        ({"type": "text"}, ["schema-invalid"]),
        ({"properties": []}, ["schema-invalid"]),
        ({"required": "to"}, ["schema-invalid"]),
        ({"properties": {"to": "string"}}, ["schema-invalid"]),
        ({"properties": {"to": {"enum": []}}}, ["schema-invalid"]),
        ({"properties": {"to": {"items": {"type": ["string", "nil"]}}}}, ["schema-invalid"]),
        ({"properties": {"to": {"anyOf": {"type": "string"}}}}, ["schema-invalid"]),
        ({"properties": {"to": {"$ref": "#/$defs/Gone"}}}, ["schema-invalid"]),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, ["schema-invalid"]),
        (CYCLE, ["schema-cyclic"]),
        ({"properties": {"to": {"properties": {"more": {"$ref": "#"}}}}}, ["schema-cyclic"]),
        ({"properties": {"to": {}}}, ["parameter-untyped"]),
        ({"properties": {"to": {"description": "Who"}, "x": {}}}, ["parameter-untyped"]),
        ({"properties": {"to": PARAMETER}, "required": ["cc"]}, ["required-unknown"]),
        ({"properties": {"to": {"type": "string", "enum": ["a", "b"]}}}, ["enum-without-meaning"]),
        ({"properties": {"to": {"type": "integer", "enum": [1, 2]}}}, ["enum-without-meaning"]),
        ({"properties": {"to": {"enum": ["a", "b"], "description": "a: all, b: both"}}}, []),
        ({"properties": {"to": {"enum": ["open", "closed"]}}}, []),
        ({"properties": {"to": {"$ref": "#/$defs/P"}}, "$defs": {"P": PARAMETER}, "required": ["to"]}, []),
        ({"properties": {"to": {"$ref": "https://x.example/s.json"}}}, []),
        ({"properties": {"to": True}, "required": ["to"]}, []),
        ({"type": "object"}, []),
        ({}, []),
    ],
)
def test_a_schema_is_looked_through(schema: dict[str, Any], rules: list[str]) -> None:
    assert [rule for rule, _ in found(card(input_schema=schema))] == rules


def test_a_schema_of_thousands_of_references_is_looked_through() -> None:
    names = [f"D{n}" for n in range(3_000)]
    chain = {a: {"properties": {"x": {"$ref": f"#/$defs/{b}"}}} for a, b in pairwise(names)}
    schema = {"properties": {"a": {"$ref": "#/$defs/D0"}}, "$defs": {**chain, names[-1]: {"type": "string"}}}
    assert found(card(input_schema=schema)) == []


def test_a_suppression_keeps_the_finding_with_its_reason_and_passes(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "- rule: description-missing\n  tools: post.*\n  reason: internal\n- {rule: catch-all, reason: x}\n"
    )
    marked = suppressed(lint_catalog(Catalog([card(description="")])), read_suppressions(path))
    assert [(f.rule, f.suppressed) for f in marked] == [("description-missing", "internal"), ("suppression-unused", "")]
    assert not fails(marked, "warning")
    assert fails(marked, "info")


def test_a_suppression_covers_no_other_rule_tool_or_field(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "- {rule: description-missing, tools: 'chat.*', reason: x}\n- {rule: catch-all, field: name, reason: x}\n"
    )
    marked = suppressed(lint_catalog(Catalog([card(description="")])), read_suppressions(path))
    assert fails(marked, "warning")


def test_every_wrong_suppression_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    lines = ["{rule: nothing, reason: x}", "{rule: catch-all}", "{rule: catch-all, reason: ' '}", "3"]
    path.write_text("".join(f"- {line}\n" for line in [*lines, "{rule: catch-all, reason: x, tool: y}"]))
    with pytest.raises(InputError) as caught:
        read_suppressions(path)
    for words in (
        "line 1: rule: there is no rule",
        "line 2: reason",
        "line 3: reason: is blank",
        "line 4",
        "line 5: tool",
    ):
        assert words in str(caught.value)


def test_every_rule_has_its_section_in_the_page_on_lint() -> None:
    page = (Path(__file__).parents[2] / "docs" / "lint.md").read_text(encoding="utf-8")
    assert {line.removeprefix("### ").strip() for line in page.splitlines() if line.startswith("### ")} == set(RULES)

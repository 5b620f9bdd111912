"""Importers: other people's tools and logs, what is taken from them, and what is believed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from data.cards import Risk, ToolCard, Trust
from data.catalog import Catalog
from data.errors import InputError
from data.importers import import_catalog

SCHEMA = {"type": "object", "properties": {"to": {"type": "string", "description": "Who"}}, "required": ["to"]}
SEND = {"name": "send_mail", "description": "Send a mail.", "inputSchema": SCHEMA}


def save(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def mcp(folder: Path, *tools: dict[str, Any]) -> Path:
    return save(folder / "post.json", {"tools": list(tools)})


def test_an_mcp_tool_is_named_after_its_server(tmp_path: Path) -> None:
    (card,) = import_catalog(mcp(tmp_path, SEND), "mcp")[0]
    assert card == ToolCard(
        tool_id="post.send_mail", name="send_mail", domain="post", description="Send a mail.", input_schema=SCHEMA
    )
    assert import_catalog(mcp(tmp_path, SEND), "mcp", domain="office")[0].ids == ("office.send_mail",)


@pytest.mark.parametrize(
    ("hints", "trusted"),
    [
        (None, Risk.DESTRUCTIVE),
        ({}, Risk.DESTRUCTIVE),
        ({"readOnlyHint": None}, Risk.DESTRUCTIVE),
        ({"readOnlyHint": True}, Risk.READ_ONLY),
        ({"readOnlyHint": False}, Risk.DESTRUCTIVE),
        ({"destructiveHint": False}, Risk.WRITE),
        ({"readOnlyHint": False, "destructiveHint": True}, Risk.DESTRUCTIVE),
        ({"readOnlyHint": True, "destructiveHint": False}, Risk.READ_ONLY),
        ({"readOnlyHint": True, "destructiveHint": True}, Risk.DESTRUCTIVE),
    ],
)
def test_hints_lower_the_risk_of_a_trusted_server_only(
    tmp_path: Path, hints: dict[str, bool] | None, trusted: Risk
) -> None:
    path = mcp(tmp_path, {**SEND, "annotations": hints})
    (believed,) = import_catalog(path, "mcp", trust=Trust.TRUSTED)[0]
    (stranger,) = import_catalog(path, "mcp")[0]
    assert (believed.risk, believed.trust) == (trusted, Trust.TRUSTED)
    assert (stranger.risk, stranger.trust) == (Risk.DESTRUCTIVE, Trust.THIRD_PARTY)


def test_a_hint_that_its_own_name_contradicts_is_noted(tmp_path: Path) -> None:
    path = mcp(tmp_path, {"name": "delete_mail", "annotations": {"readOnlyHint": True}}, SEND)
    (note,) = import_catalog(path, "mcp")[1].notes
    assert "delete_mail" in note


@pytest.mark.parametrize(
    "wrap",
    [
        lambda tools: {"tools": tools},
        lambda tools: {"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}},
        lambda tools: [{"tools": tools[:1], "nextCursor": "2"}, {"tools": tools[1:]}],
        lambda tools: [{"result": {"tools": tools[:1], "nextCursor": "2"}}, {"result": {"tools": tools[1:]}}],
    ],
)
def test_an_answer_may_come_bare_in_its_envelope_or_in_pages(tmp_path: Path, wrap: Any) -> None:
    path = save(tmp_path / "s.json", wrap([SEND, {"name": "read_mail"}]))
    catalog, report = import_catalog(path, "mcp")
    assert catalog.ids == ("s.send_mail", "s.read_mail")
    assert (report.read, report.imported, report.notes) == (2, 2, ())


def test_an_answer_that_goes_on_elsewhere_is_noted(tmp_path: Path) -> None:
    _, report = import_catalog(save(tmp_path / "s.json", {"tools": [SEND], "nextCursor": "x"}), "mcp")
    assert "more tools" in report.notes[0]


def test_a_title_becomes_the_summary_unless_it_is_the_name_again(tmp_path: Path) -> None:
    path = mcp(
        tmp_path,
        {"name": "a_b", "title": "A B"},
        {"name": "c", "annotations": {"title": "Write to a person"}},
    )
    assert [card.summary for card in import_catalog(path, "mcp")[0]] == ["", "Write to a person"]


def test_what_a_server_says_of_itself_is_searched_and_its_instructions_are_not(tmp_path: Path) -> None:
    info = {"name": "post", "version": "1", "title": "Mail", "description": "Letters of a team."}
    path = save(tmp_path / "post.json", [{"tools": [SEND], "serverInfo": info, "instructions": "Always call me."}])
    (card,) = import_catalog(path, "mcp")[0]
    assert card.server_description == "Mail. Letters of a team."
    assert "Always" not in card.model_dump_json()


def test_keys_that_nothing_reads_are_counted(tmp_path: Path) -> None:
    _, report = import_catalog(mcp(tmp_path, {**SEND, "icons": []}, {"name": "b", "icons": [], "_meta": {}}), "mcp")
    assert report.ignored == {"_meta": 1, "icons": 2}


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"error": {"code": -32601}}, "error"),
        ({}, "tools"),
        ("tools", "tools"),
        ([{"tools": []}, {}], "1.tools"),
        ({"tools": {"a": 1}}, "tools"),
        ({"tools": ["a"]}, "tools.0"),
        ({"tools": [SEND, {"description": "x"}]}, "tools.1.name"),
        ({"tools": [{"name": " "}]}, "tools.0.name"),
        ({"tools": [{"name": 1}]}, "tools.0.name"),
        ({"tools": [{**SEND, "inputSchema": [1]}]}, "tools.0.input_schema"),
        ({"tools": [{**SEND, "description": 1}]}, "tools.0.description"),
        ({"tools": [{**SEND, "annotations": [1]}]}, "tools.0.annotations"),
        ({"tools": [{**SEND, "annotations": {"readOnlyHint": "yes"}}]}, "tools.0.annotations.readOnlyHint"),
        ({"tools": [SEND, SEND]}, "tools.1.name"),
        ({"tools": []}, ""),
    ],
)
def test_what_is_no_answer_of_tools_list_is_refused_at_its_place(tmp_path: Path, document: Any, field: str) -> None:
    path = save(tmp_path / "s.json", document)
    with pytest.raises(InputError) as caught:
        import_catalog(path, "mcp")
    assert (caught.value.source, caught.value.field) == (str(path), field)


def test_openai_functions_are_read_nested_and_flat(tmp_path: Path) -> None:
    function = {"name": "send_mail", "description": "Send a mail.", "parameters": SCHEMA}
    for document in (
        [{"type": "function", "function": function}],
        [{"type": "function", **function}],
        {"tools": [{"type": "function", **function}]},
    ):
        (card,) = import_catalog(save(tmp_path / "o.json", document), "openai")[0]
        assert card == ToolCard(tool_id="send_mail", name="send_mail", description="Send a mail.", input_schema=SCHEMA)


def test_tools_that_the_provider_runs_are_counted_and_skipped(tmp_path: Path) -> None:
    openai = save(tmp_path / "o.json", [{"type": "web_search"}, {"type": "function", "name": "a", "strict": True}])
    catalog, report = import_catalog(openai, "openai")
    assert (catalog.ids, report.read, report.imported) == (("a",), 2, 1)
    assert list(report.skipped.values()) == [1]
    assert report.ignored == {"strict": 1}
    anthropic = save(
        tmp_path / "a.json", [{"type": "bash_20250124", "name": "bash"}, {"name": "b", "input_schema": {}}]
    )
    catalog, report = import_catalog(anthropic, "anthropic")
    assert (catalog.ids, sum(report.skipped.values())) == (("b",), 1)


def test_an_anthropic_tool_brings_its_schema(tmp_path: Path) -> None:
    tool = {"name": "send_mail", "description": "Send a mail.", "input_schema": SCHEMA}
    (card,) = import_catalog(save(tmp_path / "a.json", {"tools": [tool]}), "anthropic", domain="post")[0]
    assert card == ToolCard(
        tool_id="post.send_mail", name="send_mail", domain="post", description="Send a mail.", input_schema=SCHEMA
    )


@pytest.mark.parametrize(("form", "key"), [("openai", "parameters"), ("anthropic", "input_schema")])
def test_without_hints_the_name_speaks_for_a_trusted_source_only(tmp_path: Path, form: str, key: str) -> None:
    path = save(tmp_path / "t.json", [{"name": name, key: {}} for name in ("get_mail", "send_mail", "delete_mail")])
    trusted = import_catalog(path, form, trust=Trust.TRUSTED)[0]
    assert [card.risk for card in trusted] == [Risk.READ_ONLY, Risk.WRITE, Risk.DESTRUCTIVE]
    assert {card.risk for card in import_catalog(path, form)[0]} == {Risk.DESTRUCTIVE}


@pytest.mark.parametrize(
    ("form", "document", "field"),
    [
        ("openai", {"functions": []}, ""),
        ("openai", [{"type": "function", "function": "send"}], "0.function"),
        ("openai", [{"type": "function", "function": {}}], "0.function.name"),
        ("openai", {"tools": [{"name": "a", "parameters": "x"}]}, "tools.0.input_schema"),
        ("openai", [{"type": "web_search"}], ""),
        ("anthropic", [{"name": "a"}], "0.input_schema"),
        ("anthropic", [{"input_schema": {}}], "0.name"),
        ("anthropic", [7], "0"),
    ],
)
def test_definitions_of_another_form_are_refused_at_their_place(
    tmp_path: Path, form: str, document: Any, field: str
) -> None:
    with pytest.raises(InputError) as caught:
        import_catalog(save(tmp_path / "d.json", document), form)
    assert caught.value.field == field


@pytest.mark.parametrize("form", ["mcp", "openai", "anthropic"])
def test_a_document_that_is_no_json_is_refused(tmp_path: Path, form: str) -> None:
    path = tmp_path / "d.json"
    for content, words in ((b'{\n"tools": [', "line 2"), (b"\xff\xfe", "UTF-8"), (b"[" * 99_999, "broken JSON")):
        path.write_bytes(content)
        with pytest.raises(InputError, match=words):
            import_catalog(path, form)
    with pytest.raises(InputError, match=r"cannot be read"):
        import_catalog(tmp_path / "nowhere.json", form)


def test_an_unknown_format_names_the_ones_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'yaml' is not a catalog format.*jsonl, mcp, openai, anthropic, bfcl"):
        import_catalog(tmp_path, "yaml")


def test_a_format_that_says_its_own_trust_takes_no_other(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"takes no domain and no trust"):
        import_catalog(tmp_path / "c.jsonl", "jsonl", trust=Trust.TRUSTED)


def test_plain_tools_are_imported_with_their_counts(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"tool_id": "a.b", "name": "b", "colour": 1}\n{"tool_id": "a.c", "name": "c"}\n')
    catalog, report = import_catalog(path, "jsonl")
    assert catalog.ids == ("a.b", "a.c")
    assert (report.read, report.imported, report.ignored) == (2, 2, {"colour": 1})


@pytest.mark.parametrize(
    ("field", "longest"),
    [("description", "description"), ("inputSchema", "input_schema")],
)
def test_a_tool_of_megabytes_is_refused_with_the_field_that_is_too_long(
    tmp_path: Path, field: str, longest: str
) -> None:
    long = "x" * 5_000_000
    path = mcp(tmp_path, SEND, {"name": "big", field: long if field == "description" else {"title": long}})
    with pytest.raises(InputError, match=r"the tool is 5,000,\d+ characters long.*at most 262,144") as caught:
        import_catalog(path, "mcp")
    assert caught.value.field == f"tools.1.{longest}"
    assert len(str(caught.value)) < 400
    catalog, report = import_catalog(path, "mcp", skip_bad=True)
    assert (catalog.ids, report.skipped) == (("post.send_mail",), {"not usable": 1})


def test_a_plain_tool_of_megabytes_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps({"tool_id": "a", "name": "a", "description": "x" * 300_000}) + "\n")
    with pytest.raises(InputError, match=r"tool 'a', field 'description'"):
        import_catalog(path, "jsonl")


def test_ten_thousand_tools_of_one_name_import_one_on_request_and_tell_of_five(tmp_path: Path) -> None:
    path = mcp(tmp_path, *[SEND] * 10_000)
    catalog, report = import_catalog(path, "mcp", skip_bad=True)
    assert (len(catalog), report.read, report.skipped, len(report.notes)) == (1, 10_000, {"not usable": 9_999}, 5)


@pytest.mark.parametrize("broken", [7, {"name": " "}, {"name": "b", "inputSchema": [1]}])
def test_on_request_the_rest_is_imported(tmp_path: Path, broken: Any) -> None:
    catalog, report = import_catalog(mcp(tmp_path, broken, SEND), "mcp", skip_bad=True)
    assert catalog.ids == ("post.send_mail",)
    assert "tools.0" in report.notes[0]


def test_a_source_of_nothing_usable_is_refused_even_then(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no tool to import; the first of 2 problems: .*tools\.0"):
        import_catalog(mcp(tmp_path, 7, 8), "mcp", skip_bad=True)


def test_equal_names_of_two_servers_and_of_two_tenants_are_tools_of_their_own(tmp_path: Path) -> None:
    path = mcp(tmp_path, SEND)
    cards = [
        card
        for domain, tenant in (("post", ""), ("chat", ""), ("post", "acme"), ("post", "globex"))
        for card in import_catalog(path, "mcp", domain=domain, tenant=tenant)[0]
    ]
    catalog = Catalog(cards)
    assert catalog.ids == ("post.send_mail", "chat.send_mail", "acme/post.send_mail", "globex/post.send_mail")
    assert [card.tenants for card in catalog] == [(), (), ("acme",), ("globex",)]
    assert {card.name for card in catalog} == {"send_mail"}

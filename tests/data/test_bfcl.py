"""BFCL: requests, offered functions and answers as traces and queries."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from data.cards import Risk, Trust
from data.errors import InputError
from data.importers import import_catalog, load_bfcl
from data.importers.bfcl_schema import to_json_schema
from data.logs import import_logs


def function(name: str, description: str = "Does it.", **types: str) -> dict[str, Any]:
    properties = {key: {"type": kind, "description": key} for key, kind in types.items()}
    return {"name": name, "description": description, "parameters": {"type": "dict", "properties": properties}}


def request(qid: str, text: str, *functions: dict[str, Any]) -> dict[str, Any]:
    return {"id": qid, "question": [[{"role": "user", "content": text}]], "function": list(functions)}


def save(folder: Path, name: str, rows: list[Any], answers: list[Any] | None = None) -> None:
    (folder / "possible_answer").mkdir(parents=True, exist_ok=True)
    file = f"BFCL_v4_{name}.json"
    (folder / file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    if answers is not None:
        (folder / "possible_answer" / file).write_text("".join(json.dumps(row) + "\n" for row in answers))


PLAY = function("spotify.play", "Play a song.", artist="String", minutes="float")
STOP = function("spotify.stop", "Stop the music.")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    truth = [{"spotify.play": {"artist": ["Nina", "Nina Simone"], "minutes": ["", 3]}}]
    save(tmp_path, "multiple", [request("m0", "Play Nina", PLAY, STOP)], [{"id": "m0", "ground_truth": truth}])
    return tmp_path


def test_an_offered_function_becomes_a_trusted_card_with_json_types(folder: Path) -> None:
    card = load_bfcl(folder).catalog["spotify.play"]
    assert (card.name, card.domain, card.description) == ("play", "spotify", "Play a song.")
    assert card.input_schema["type"] == "object"
    assert [p["type"] for p in card.input_schema["properties"].values()] == ["string", "number"]
    assert (card.risk, card.trust) == (Risk.WRITE, Trust.TRUSTED)


def test_a_request_becomes_a_call_from_the_menu_of_what_was_offered(folder: Path) -> None:
    (trace,) = load_bfcl(folder).traces
    assert (trace.trace_id, trace.goal, trace.tool_id) == ("m0", "Play Nina", "spotify.play")
    assert (trace.outcome, trace.task_success, trace.ts) == ("success", True, None)
    assert [(entry.tool_id, entry.position) for entry in trace.menu or ()] == [("spotify.play", 0), ("spotify.stop", 1)]


def test_arguments_are_the_first_accepted_values_without_those_that_may_be_left_out(folder: Path) -> None:
    assert load_bfcl(folder).traces[0].arguments == {"artist": "Nina"}


def test_accepted_values_are_settled_inside_objects_and_lists(tmp_path: Path) -> None:
    truth = [{"f": {"filter": [{"kind": ["a", "b"], "size": [""]}], "rows": [[{"x": [1, 2]}, {"x": [3]}]], "n": [[7]]}}]
    save(tmp_path, "simple_python", [request("s0", "go", function("f"))], [{"id": "s0", "ground_truth": truth}])
    assert load_bfcl(tmp_path).traces[0].arguments == {"filter": {"kind": "a"}, "rows": [{"x": 1}, {"x": 3}], "n": [7]}


def test_several_calls_of_one_function_are_one_line_and_of_several_are_steps(tmp_path: Path) -> None:
    truth = [{"b": {"n": [1]}}, {"a": {}}, {"b": {"n": [2]}}]
    row = request("p0", "go", function("a", "A."), function("b", "B."))
    save(tmp_path, "parallel", [row], [{"id": "p0", "ground_truth": truth}])
    source = load_bfcl(tmp_path)
    assert [(t.trace_id, t.step, t.tool_id) for t in source.traces] == [("p0", 0, "b"), ("p0", 1, "a")]
    assert source.traces[0].arguments == {"n": 1}
    assert source.queries[0].gold == ("b", "a")


def test_a_request_that_no_function_serves_calls_nothing(folder: Path) -> None:
    save(folder, "live_irrelevance", [request("i0", "Sing to me", STOP)])
    source = load_bfcl(folder)
    (trace,) = (trace for trace in source.traces if trace.trace_id == "i0")
    assert (trace.tool_id, trace.outcome, len(trace.menu or ())) == (None, "unknown", 1)
    assert source.queries[0].gold == ()
    assert source.queries[0].kind == "live_irrelevance"


def test_a_request_without_an_answer_is_counted_and_left_out(folder: Path) -> None:
    save(folder, "live_relevance", [request("r0", "Help me", function("never.offered.elsewhere"))])
    source = load_bfcl(folder)
    assert "r0" not in {query.qid for query in source.queries}
    assert "never.offered.elsewhere" not in source.catalog
    assert (source.report.read, source.report.imported, list(source.report.skipped.values())) == (2, 1, [1])


def test_files_of_another_kind_are_left_out_and_noted(folder: Path) -> None:
    save(folder, "memory", [{"id": "x", "question": [], "scenario": "s"}])
    (folder / "BFCL_v4_format.json").write_text('{\n "a": 1\n}')
    assert any("format, memory" in note for note in load_bfcl(folder).report.notes)


def test_equal_functions_are_one_card_and_other_ones_of_the_name_are_equivalents(tmp_path: Path) -> None:
    first, second = function("get_news", "News of a city."), function("get_news", "News by topic.")
    again = dict(reversed(first.items()))
    rows = [request("a", "news?", first), request("b", "news!", second), request("c", "more news", again)]
    save(tmp_path, "live_simple", rows, [{"id": q, "ground_truth": [{"get_news": {}}]} for q in "abc"])
    source = load_bfcl(tmp_path)
    assert source.catalog.ids == ("get_news", "get_news#2")
    assert [card.name for card in source.catalog] == ["get_news", "get_news"]
    assert [query.gold for query in source.queries] == [("get_news",), ("get_news#2",), ("get_news",)]
    assert source.queries[0].gold_alt == {"get_news": ("get_news#2",)}
    assert source.queries[1].gold_alt == {"get_news#2": ("get_news",)}


def test_the_request_is_the_last_user_turn(tmp_path: Path) -> None:
    row = request("a", "first", function("f"))
    row["question"] = [
        [{"role": "system", "content": "Be kind."}, *row["question"][0], {"role": "user", "content": "last"}]
    ]
    save(tmp_path, "live_simple", [row], [{"id": "a", "ground_truth": [{"f": {}}]}])
    assert load_bfcl(tmp_path).queries[0].text == "last"


@pytest.mark.parametrize(
    ("change", "answer", "field"),
    [
        ({"id": 3}, [{"f": {}}], "id"),
        ({"question": "text"}, [{"f": {}}], "question"),
        ({"question": [[{"role": "system", "content": "x"}]]}, [{"f": {}}], "question"),
        ({"function": {"name": "f"}}, [{"f": {}}], "function"),
        ({"function": ["f"]}, [{"f": {}}], "function.0"),
        ({"function": [{"description": "x"}]}, [{"f": {}}], "function.0.name"),
        ({"function": [{"name": "f", "parameters": "x"}]}, [{"f": {}}], "function.0.input_schema"),
        ({}, [{"g": {}}], "ground_truth.0"),
        ({}, ["f"], "ground_truth.0"),
        ({}, [], "ground_truth"),
        ({}, "f", "ground_truth"),
    ],
)
def test_a_broken_row_is_refused_with_file_line_and_field(
    tmp_path: Path, change: dict[str, Any], answer: Any, field: str
) -> None:
    good = request("ok", "go", function("f"))
    rows = [good, {**request("a", "go", function("f")), **change}]
    answers = [{"id": "ok", "ground_truth": [{"f": {}}]}, {"id": "a", "ground_truth": answer}]
    save(tmp_path, "live_simple", rows, answers)
    with pytest.raises(InputError) as caught:
        load_bfcl(tmp_path)
    assert (caught.value.line, caught.value.field) == (2, field)
    assert "BFCL_v4_live_simple.json" in caught.value.source


def test_a_folder_without_the_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no BFCL_v4_\*\.json here"):
        load_bfcl(tmp_path)


def test_the_two_imports_fit_together(folder: Path) -> None:
    catalog, tools = import_catalog(folder, "bfcl")
    running = import_logs([folder], "bfcl", catalog)
    (trace,) = running.traces()
    assert (tools.read, tools.imported) == (2, 2)
    assert running.report().records == 1
    assert trace.tool_id in catalog


def test_types_are_changed_in_schemas_and_nowhere_else() -> None:
    schema = {
        "type": "dict",
        "properties": {
            "type": {"type": "HashMap", "default": {"type": "dict"}},
            "list": {"type": "ArrayList", "items": {"type": "long"}, "enum": ["float"]},
            "free": {"type": "any", "description": "anything"},
        },
        "required": ["type"],
    }
    assert to_json_schema(schema) == {
        "type": "object",
        "properties": {
            "type": {"type": "object", "default": {"type": "dict"}},
            "list": {"type": "array", "items": {"type": "integer"}, "enum": ["float"]},
            "free": {"description": "anything"},
        },
        "required": ["type"],
    }


@pytest.mark.skipif(find_spec("bfcl_eval") is None, reason="the package bfcl_eval is not installed")
def test_the_installed_source_is_read_whole() -> None:
    source = load_bfcl()
    answered = [query for query in source.queries if query.gold]
    assert len(source.catalog) > 3_000
    assert (len(answered), len(source.queries) - len(answered)) == (2_501, 1_124)
    assert all(gold in source.catalog for query in answered for gold in query.gold)
    assert {trace.tool_id for trace in source.traces} - {None} <= set(source.catalog.ids)
    types = {p.get("type") for card in source.catalog for p in card.input_schema["properties"].values()}
    assert types <= {"object", "array", "string", "number", "integer", "boolean", "null", None}

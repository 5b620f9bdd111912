"""select: one decision from the command line, for a person, for a program and for a model."""

from __future__ import annotations

import json
from pathlib import Path

from workshop import Run, write_json

from serving.slice import Slice


def test_the_menu_is_a_table_with_verdicts(run: Run, catalog: Path) -> None:
    ran = run("select", "send an email to Ann", "--bundle", "none", "--catalog", catalog)
    assert ran.code == 0
    row = next(line for line in ran.out.splitlines() if "mail.send_message" in line)
    assert any(verdict in row for verdict in ("allow", "confirm", "dry_run", "deny"))


def test_json_is_one_object_and_repeats_byte_for_byte(run: Run, catalog: Path) -> None:
    arguments = ("select", "send an email", "--bundle", "none", "--catalog", catalog, "--request-id", "r1", "--json")
    first, second = run(*arguments), run(*arguments)
    assert first.code == 0
    assert first.out == second.out
    assert first.out.count("\n") == 1
    assert "mail.send_message" in {entry["tool_id"] for entry in first.json()["menu"]}


def test_a_tool_whose_scope_is_missing_is_named_to_operators_only(run: Run, catalog: Path) -> None:
    arguments = ("select", "transfer money to my savings account", "--bundle", "none", "--catalog", catalog)
    assert "bank.transfer_money" not in run(*arguments).out
    assert "bank.transfer_money" not in run(*arguments, "--json").out
    assert "bank.transfer_money" in run(*arguments, "--explain").out
    assert "bank.transfer_money" in run(*arguments, "--json", "--explain").out


def test_a_granted_scope_brings_the_tool(run: Run, catalog: Path, tmp_path: Path) -> None:
    caller = write_json(tmp_path / "caller.json", {"principal": "ann", "scopes": ["payments"]})
    found = run(
        *("select", "transfer money to my savings account", "--bundle", "none", "--catalog", catalog),
        *("--caller", caller, "--json"),
    ).json()
    entry = next(entry for entry in found["menu"] if entry["tool_id"] == "bank.transfer_money")
    assert entry["verdict"] == "confirm"


def test_a_request_that_only_reads_gets_no_tool_that_may_be_called_to_write(run: Run, catalog: Path) -> None:
    found = run("select", "send an email", "--read", "--bundle", "none", "--catalog", catalog, "--json").json()
    assert found["subgoal"]["mutation"] is False
    assert "mail.send_message" not in {entry["tool_id"] for entry in found["menu"]}


def test_what_explain_saved_is_what_explain_shows(run: Run, catalog: Path, tmp_path: Path) -> None:
    arguments = ("select", "transfer money", "--bundle", "none", "--catalog", catalog, "--request-id", "r1")
    saved = run(*arguments, "--json", "--explain")
    assert Slice.model_validate_json(saved.out).record
    path = tmp_path / "slice.json"
    path.write_text(saved.out)
    shown = run("explain", path)
    assert shown.code == 0
    assert "bank.transfer_money" in shown.out


def test_the_rendered_menu_is_text_for_a_model(run: Run, catalog: Path) -> None:
    ran = run("select", "send an email", "--bundle", "none", "--catalog", catalog, "--format", "text")
    assert ran.code == 0
    assert "send_message" in ran.out
    assert "bank" not in ran.out


def test_a_wrong_caller_is_one_line_that_names_the_field(run: Run, catalog: Path, tmp_path: Path) -> None:
    caller = write_json(tmp_path / "caller.json", {"scopes": "payments"})
    ran = run("select", "x", "--bundle", "none", "--catalog", catalog, "--caller", caller, "--json")
    assert (ran.code, ran.out) == (2, "")
    assert f"error: {caller}, field 'scopes'" in ran.err
    assert ran.err.count("\n") == 1


def test_a_missing_bundle_is_one_line(run: Run, catalog: Path, tmp_path: Path) -> None:
    ran = run("select", "x", "--bundle", tmp_path / "nothing", "--catalog", catalog, "--json")
    assert (ran.code, ran.out) == (2, "")
    assert "no bundle folder" in ran.err


def test_a_broken_bundle_is_one_line(run: Run, catalog: Path, tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "manifest.json").write_text(json.dumps({"half": "a bundle"}))
    ran = run("select", "x", "--bundle", tmp_path / "bundle", "--catalog", catalog, "--json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1


def test_a_model_s_form_and_a_program_s_form_exclude_each_other(run: Run, catalog: Path) -> None:
    ran = run("select", "x", "--bundle", "none", "--catalog", catalog, "--format", "mcp", "--json")
    assert ran.code == 2
    assert "--format goes with neither" in ran.err


def test_evaluate_wants_exactly_one_source_of_questions(run: Run, catalog: Path) -> None:
    ran = run("evaluate", "--bundle", "none", "--catalog", catalog)
    assert ran.code == 2
    assert "give either --traces or --queries" in ran.err

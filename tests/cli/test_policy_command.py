"""policy test, policy schema: expectations held against a policy, with exit codes that a script can go by."""

from __future__ import annotations

from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from workshop import Run

POLICY = """
rules:
  - {name: big, verdict: confirm, when: {domains: pay, arguments: [{path: $.amount, op: ">", value: 100}]}}
  - {name: reads, verdict: allow, when: {risk: read_only}}
  - {name: pays, verdict: allow, when: {domains: pay, roles_any: clerk}}
"""
CASES = """
cases:
  - name: a small payment by a clerk
    tool: {risk: write, domain: pay}
    caller: {roles: [clerk]}
    arguments: {amount: 100}
    expect: allow
    rule: pays
  - name: a large one
    tool: {risk: write, domain: pay}
    caller: {roles: [clerk]}
    mutation: true
    arguments: {amount: 101}
    expect: confirm
  - name: on the menu it may turn out large
    tool: {risk: write, domain: pay}
    caller: {roles: [clerk]}
    expect: confirm
    rule: big
  - {name: nobody pays, tool: {risk: write, domain: pay}, arguments: {}, expect: deny, rule: default_deny}
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return path


def cases_file(folder: Path, text: str) -> Path:
    path = folder / "cases.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_policy_that_does_what_is_expected_passes(run: Run, policy: Path, tmp_path: Path) -> None:
    ran = run("policy", "test", policy, cases_file(tmp_path, CASES))
    assert (ran.code, ran.err) == (0, "")
    assert "4 of 4 cases are as expected" in ran.out


def test_a_case_that_is_not_met_is_shown_and_fails_the_run(run: Run, policy: Path, tmp_path: Path) -> None:
    wrong = CASES.replace("expect: confirm\n    rule: big", "expect: allow\n    rule: pays")
    ran = run("policy", "test", policy, cases_file(tmp_path, wrong))
    assert ran.code == 1
    for part in ("on the menu it may turn out large", "allow by pays", "confirm by big", "3 of 4"):
        assert part in ran.out


def test_the_right_verdict_by_the_wrong_rule_is_not_met(run: Run, policy: Path, tmp_path: Path) -> None:
    ran = run("policy", "test", policy, cases_file(tmp_path, CASES.replace("rule: pays", "rule: reads")), "--json")
    assert ran.code == 1
    found = ran.json()
    assert (found["cases"], found["failed"]) == (4, 1)
    assert found["results"][0] == {
        "name": "a small payment by a clerk",
        "passed": False,
        "expect": "allow",
        "expect_rule": "reads",
        "verdict": "allow",
        "rule": "pays",
    }


def test_cases_may_name_tools_of_a_catalog(run: Run, policy: Path, catalog: Path, tmp_path: Path) -> None:
    cases = cases_file(tmp_path, "cases: [{name: look, tool: mail.search_messages, expect: allow}]")
    assert run("policy", "test", policy, cases, "--catalog", catalog).code == 0
    without = run("policy", "test", policy, cases)
    assert without.code == 2
    assert "tool 'mail.search_messages': give the catalog that has it" in without.err


def test_every_problem_of_a_table_is_told_at_once_with_its_line(run: Run, policy: Path, tmp_path: Path) -> None:
    bad = """
    cases:
      - {name: a, tool: {risky: write}, expect: allow}
      - {name: b, tool: {risk: write}, expect: permit, caller: {role: x}}
      - {tool: {risk: write}, expect: deny, more: 1}
    """
    ran = run("policy", "test", policy, cases_file(tmp_path, bad))
    assert ran.code == 2
    for part in (
        "line 3, cases[0].tool: a tool has no 'risky'",
        "line 4, cases[1].expect",
        "line 4, cases[1].caller: a caller has no 'role'",
        "line 5, cases[2].name",
        "line 5, cases[2].more: unknown key",
    ):
        assert part in ran.err, part


@pytest.mark.parametrize("text", ["", "cases: []", "cases: 3", "other: []", "cases: [{}"])
def test_a_table_without_cases_is_an_error_and_no_pass(run: Run, policy: Path, tmp_path: Path, text: str) -> None:
    ran = run("policy", "test", policy, cases_file(tmp_path, text))
    assert ran.code == 2
    assert "cases.yaml" in ran.err


def test_the_printed_schema_takes_the_policy_and_refuses_a_slip(run: Run) -> None:
    schema = run("policy", "schema").json()
    validator = jsonschema_rs.validator_for(schema)
    assert validator.is_valid(yaml.safe_load(POLICY))
    assert not validator.is_valid(yaml.safe_load(POLICY.replace("domains", "domain")))

"""Policy files: read whole, refused with all their problems and lines, followed when they change."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from data.cards import Risk, ToolCard, Trust
from data.context import Caller, Subgoal
from data.errors import PolicyError
from serving.policy import DEFAULT_POLICY, Condition, verdict
from serving.policy_file import PolicyFile, load_policy, policy_json_schema


def written(folder: Path, text: str) -> Path:
    path = folder / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_policy_file_reads_as_its_rules(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        rules:
          - {name: reads, verdict: allow, when: {risk: read_only, trust: [trusted]}}
          - {name: dry, verdict: dry_run, when: {dry_run_supported: true, mutation: unknown}}
          - {name: rest, verdict: confirm}
        """,
    )
    policy = load_policy(path)
    assert [rule.name for rule in policy.rules] == ["reads", "dry", "rest"]
    assert policy.rules[0].when == Condition(risk=(Risk.READ_ONLY,), trust=(Trust.TRUSTED,))
    card = ToolCard(tool_id="d.t", name="t", risk=Risk.DESTRUCTIVE, dry_run=True)
    assert verdict(policy, card, Caller(), Subgoal(goal="g")) == ("dry_run", "dry")


def test_all_problems_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        rules:
          - {name: one, verdict: permit}
          - {name: two, verdict: allow, when: {risks: write, envs: [], trust: friendly}}
          - {name: three, verdict: deny, when: {roles_any: }}
          - {verdict: deny, when: {envs: [no]}}
        extra: 1
        """,
    )
    with pytest.raises(PolicyError) as caught:
        load_policy(path)
    message = str(caught.value)
    assert str(path) in message
    for part in (
        "rules[0].verdict",
        "rules[1].when.risks: unknown key",
        "rules[1].when.envs: an empty list matches nothing",
        "rules[1].when.trust",
        "expected trusted or third_party",
        "rules[2].when.roles_any: has no value",
        "rules[3].name",
        "rules[3].when.envs",
        "extra: unknown key",
    ):
        assert part in message, part


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("rules:\n  - {name: a, verdict: deny, after_dry_run: allow}", "belongs to the verdict dry_run"),
        ("rules: []", "everything would be denied"),
        ("", "the file: expected keys and values"),
        ("rules: [", "line 2: not readable as YAML"),
        ("rules:\n  - {name: a, verdict: allow}\n  - {name: b, verdict: deny}", "no rule after it is reached"),
        ("rules:\n  - {name: a, verdict: dry_run}", "dry_run_supported: true"),
        ("rules:\n  - {name: a, verdict: deny, when: {envs: x}}\n  - {name: a, verdict: deny}", "same name"),
        ("rules:\n  - {name: a, verdict: deny, verdict: allow}", "line 2: key 'verdict' is repeated"),
        ("rules:\n  - {[a]: b}", "line 2: a key must be a single word"),
        ("rules:\n  - {name: default_deny, verdict: allow}", "choose another"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(PolicyError, match=r"policy\.yaml") as caught:
        load_policy(written(tmp_path, text))
    assert complaint in str(caught.value)


def test_a_missing_file_is_a_policy_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"nowhere\.yaml: cannot be read"):
        load_policy(tmp_path / "nowhere.yaml")

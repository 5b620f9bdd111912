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


def test_each_problem_names_its_line(tmp_path: Path) -> None:
    text = """rules:
  - name: one
    verdict: allow
    when:
      arguments:
        - {path: $.a, op: ">", value: 1}
        - {path: a, op: ">", value: 1}
        - {path: $.a, op: in}
  - name: two
    verdict: dry_run
"""
    with pytest.raises(PolicyError) as caught:
        load_policy(written(tmp_path, text))
    assert "line 7, rules[0].when.arguments[1].path: is no path; write it like $.amount" in str(caught.value)
    assert "line 8, rules[0].when.arguments[2]: 'in' needs a value" in str(caught.value)
    only_meaning = text.replace('        - {path: a, op: ">", value: 1}\n        - {path: $.a, op: in}\n', "")
    with pytest.raises(PolicyError, match=r"line 7, rules\[1\] 'two': only tools that can run dry"):
        load_policy(written(tmp_path, only_meaning))


GOOD = "rules: [{name: reads, verdict: allow, when: {risk: read_only}}]"
OTHER = "rules: [{name: reads, verdict: deny, when: {risk: read_only}}]"


def rewritten(path: Path, text: str) -> None:
    """As an editor saves: another file takes the name."""
    beside = path.with_suffix(".new")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def test_a_policy_follows_its_file(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    policy = PolicyFile(path)
    before = policy.current
    assert before.rules[0].verdict == "allow"
    rewritten(path, OTHER)
    assert policy.current.rules[0].verdict == "deny"
    assert policy.current.version != before.version
    assert before.rules[0].verdict == "allow", "who holds the old one keeps it"


def test_a_change_within_one_tick_of_the_clock_and_of_equal_length_is_seen(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    policy = PolicyFile(path)
    assert policy.current.rules[0].verdict == "allow"
    state = os.stat(path)
    path.write_text(f"{OTHER} ", encoding="utf-8")
    assert os.stat(path).st_size == state.st_size
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert policy.current.rules[0].verdict == "deny"


def test_a_file_whose_time_stamp_and_size_rest_is_not_read_again(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    long_ago = (1_000_000_000, 1_000_000_000)
    os.utime(path, long_ago)
    policy = PolicyFile(path)
    first = policy.current
    path.write_text(f"{OTHER} ", encoding="utf-8")
    os.utime(path, long_ago)
    assert policy.current is first
    os.utime(path)
    assert policy.current.rules[0].verdict == "deny"


class Said(logging.Handler):
    """What a logger was told, whatever other tests have made of the logging."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.mark.parametrize("bad", ["rules: [", "rules: []", "", "\udcff"])
def test_a_bad_change_is_refused_and_logged_and_the_old_one_stays(
    tmp_path: Path, bad: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = Said()
    monkeypatch.setattr(logging.getLogger("toolcrib.policy"), "handlers", [said])
    path = written(tmp_path, GOOD)
    policy = PolicyFile(path)
    before = policy.current
    path.write_bytes(bad.encode("utf-8", "surrogateescape"))
    assert policy.current is before
    assert policy.current is before
    assert len(said.lines) == 1, "said once, not at every request"
    assert "stays in force" in said.lines[0]
    assert policy.refused == 1
    rewritten(path, OTHER)
    assert policy.current.rules[0].verdict == "deny", "and a repaired one is taken"


def test_a_file_that_is_gone_keeps_the_policy(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    policy = PolicyFile(path)
    path.unlink()
    assert policy.current.rules[0].verdict == "allow"
    assert policy.current.rules[0].verdict == "allow"
    assert policy.refused == 1


def test_a_policy_that_is_bad_from_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PolicyError):
        PolicyFile(written(tmp_path, "rules: []"))


def test_the_json_schema_takes_what_the_loader_takes_and_refuses_slips(tmp_path: Path) -> None:
    check = jsonschema_rs.validator_for(policy_json_schema())
    assert check.is_valid(DEFAULT_POLICY.model_dump(mode="json", exclude_none=True))
    good = """
    rules:
      - {name: a, verdict: allow, when: {risk: write, envs: [dev, test], mutation: unknown}}
      - name: b
        verdict: dry_run
        after_dry_run: allow
        when: {dry_run_supported: true, arguments: [{path: $.a, op: in, value: [1, x]}, {path: $.b, op: absent}]}
    """
    load_policy(written(tmp_path, good))
    assert check.is_valid(yaml.safe_load(good))
    for slip in (
        "rules: []",
        "rules: [{name: a}]",
        "rules: [{name: a, verdict: permit}]",
        "rules: [{name: a, verdict: allow, when: {risk: }}]",
        "rules: [{name: a, verdict: allow, when: {envs: []}}]",
        "rules: [{name: a, verdict: allow, when: {arguments: [{path: $.a, op: like, value: 1}]}}]",
        "rules: [{name: a, verdict: dry_run, after_dry_run: }]",
        "rules: [{name: a, verdict: allow, unless: {}}]",
    ):
        assert not check.is_valid(yaml.safe_load(slip)), slip
        with pytest.raises(PolicyError):
            load_policy(written(tmp_path, slip))

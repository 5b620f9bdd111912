"""The risk policy: the default table, first match wins, and files that say all their problems at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from data.cards import Risk, ToolCard, Trust
from data.context import Caller, Subgoal
from data.errors import PolicyError
from serving.policy import DEFAULT_POLICY, Condition, PolicyRule, RiskPolicy, load_policy, verdict


def tool(risk: Risk, trust: Trust = Trust.TRUSTED, *, dry_run: bool = False, domain: str = "d") -> ToolCard:
    return ToolCard(tool_id="d.t", name="t", domain=domain, risk=risk, trust=trust, dry_run=dry_run)


def ask(mutation: bool | None = None) -> Subgoal:
    return Subgoal(goal="g", mutation=mutation)


@pytest.mark.parametrize(
    ("card", "env", "mutation", "expected"),
    [
        (tool(Risk.READ_ONLY), "prod", False, ("allow", "read_only_trusted")),
        (tool(Risk.READ_ONLY, Trust.THIRD_PARTY), "", None, ("allow", "read_only_third_party")),
        (tool(Risk.WRITE), "dev", False, ("deny", "read_request_never_writes")),
        (tool(Risk.DESTRUCTIVE, dry_run=True), "", False, ("deny", "read_request_never_writes")),
        (tool(Risk.DESTRUCTIVE, dry_run=True), "", True, ("dry_run", "destructive_dry_run")),
        (tool(Risk.DESTRUCTIVE), "dev", True, ("confirm", "destructive")),
        (tool(Risk.WRITE), "production", True, ("confirm", "write_in_production")),
        (tool(Risk.WRITE), "prod", None, ("confirm", "write_in_production")),
        (tool(Risk.WRITE, Trust.THIRD_PARTY), "dev", True, ("confirm", "write_third_party")),
        (tool(Risk.WRITE), "dev", True, ("allow", "write")),
        (tool(Risk.WRITE), "", None, ("allow", "write")),
    ],
)
def test_the_default_policy_follows_its_table(
    card: ToolCard, env: str, mutation: bool | None, expected: tuple[str, str]
) -> None:
    assert verdict(DEFAULT_POLICY, card, Caller(env=env), ask(mutation)) == expected


@pytest.mark.parametrize("risk", list(Risk))
@pytest.mark.parametrize("trust", list(Trust))
def test_the_default_policy_leaves_no_tool_to_the_default_deny(risk: Risk, trust: Trust) -> None:
    for mutation in (True, False, None):
        assert verdict(DEFAULT_POLICY, tool(risk, trust), Caller(), ask(mutation))[1] != "default_deny"


def test_what_no_rule_matches_is_denied() -> None:
    policy = RiskPolicy(rules=(PolicyRule(name="reads", verdict="allow", when=Condition(risk=(Risk.READ_ONLY,))),))
    assert verdict(policy, tool(Risk.WRITE), Caller(), ask()) == ("deny", "default_deny")


def test_the_first_matching_rule_wins() -> None:
    first = PolicyRule(name="first", verdict="confirm", when=Condition(domains=("d",)))
    second = PolicyRule(name="second", verdict="allow")
    assert verdict(RiskPolicy(rules=(first, second)), tool(Risk.WRITE), Caller(), ask()) == ("confirm", "first")
    assert verdict(RiskPolicy(rules=(second, first)), tool(Risk.WRITE), Caller(), ask()) == ("allow", "second")


def test_one_of_the_roles_is_enough_and_no_role_is_not() -> None:
    policy = RiskPolicy(rules=(PolicyRule(name="r", verdict="allow", when=Condition(roles_any=("admin", "ops"))),))
    assert verdict(policy, tool(Risk.WRITE), Caller(roles=("ops",)), ask()) == ("allow", "r")
    assert verdict(policy, tool(Risk.WRITE), Caller(roles=("Admin",)), ask())[0] == "deny"
    assert verdict(policy, tool(Risk.WRITE), Caller(), ask())[0] == "deny"


def test_unknown_mutation_is_a_condition_of_its_own() -> None:
    policy = RiskPolicy(rules=(PolicyRule(name="u", verdict="confirm", when=Condition(mutation="unknown")),))
    assert verdict(policy, tool(Risk.WRITE), Caller(), ask(None)) == ("confirm", "u")
    assert verdict(policy, tool(Risk.WRITE), Caller(), ask(False))[1] == "default_deny"


def test_tenant_and_environment_conditions_compare_exactly() -> None:
    when = Condition(tenants=("acme",), envs=("prod",))
    policy = RiskPolicy(rules=(PolicyRule(name="r", verdict="allow", when=when),))
    assert verdict(policy, tool(Risk.WRITE), Caller(tenant="acme", env="prod"), ask())[0] == "allow"
    assert verdict(policy, tool(Risk.WRITE), Caller(tenant="acme", env="Prod"), ask())[0] == "deny"
    assert verdict(policy, tool(Risk.WRITE), Caller(env="prod"), ask())[0] == "deny"


def test_the_version_is_the_content() -> None:
    same = RiskPolicy.model_validate(DEFAULT_POLICY.model_dump(exclude_none=True))
    assert same.version == DEFAULT_POLICY.version
    assert RiskPolicy(rules=DEFAULT_POLICY.rules[::-1]).version != DEFAULT_POLICY.version
    assert RiskPolicy(rules=DEFAULT_POLICY.rules[1:]).version != DEFAULT_POLICY.version


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
    assert verdict(policy, tool(Risk.DESTRUCTIVE, dry_run=True), Caller(), ask()) == ("dry_run", "dry")


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
        ("rules: []", "everything would be denied"),
        ("", "the file: expected keys and values"),
        ("rules: [", "not readable as YAML: line"),
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
    with pytest.raises(PolicyError, match=r"nowhere\.yaml: the policy cannot be read"):
        load_policy(tmp_path / "nowhere.yaml")

"""The risk policy: the default table, first match wins, and conditions on arguments that are or are not known."""

from __future__ import annotations

import pytest

from data.cards import Risk, ToolCard, Trust
from data.context import Caller, Subgoal
from serving.policy import DEFAULT_POLICY, Condition, PolicyRule, RiskPolicy, verdict


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

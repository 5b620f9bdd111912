"""The risk policy: the default table, first match wins, and conditions on arguments that are or are not known."""

from __future__ import annotations

import pytest

from data.cards import Risk, ToolCard, Trust
from data.context import Caller, Subgoal
from serving.policy import DEFAULT_POLICY, Condition, PolicyRule, RiskPolicy, ruling, verdict
from serving.policy_arguments import ArgumentCondition


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


def on(*conditions: dict[str, object]) -> Condition:
    return Condition.model_validate({"domains": "d", "arguments": list(conditions)})


def one(path: str, op: str, *value: object) -> ArgumentCondition:
    given = {"value": value[0]} if value else {}
    return ArgumentCondition.model_validate({"path": path, "op": op, **given})


@pytest.mark.parametrize(
    ("path", "op", "value", "arguments", "expected"),
    [
        ("$.a", "==", 1, {"a": 1.0}, True),
        ("$.a", "==", 1, {"a": True}, False),
        ("$.a", "==", 1, {"a": "1"}, False),
        ("$.a", "==", None, {"a": None}, True),
        ("$.a", "==", {"b": [1]}, {"a": {"b": [True]}}, False),
        ("$.a", "!=", "x", {"a": "y"}, True),
        ("$.a", "!=", "x", {}, False),
        ("$.a", ">", 1000, {"a": 1000}, False),
        ("$.a", ">", 1000, {"a": 10**300}, True),
        ("$.a", ">=", 1000, {"a": 1000}, True),
        ("$.a", "<", "2026-02", {"a": "2026-01-31"}, True),
        ("$.a", "<=", 0, {"a": -0.5}, True),
        ("$.a", ">", 1000, {"a": "5000"}, None),
        ("$.a", ">", 1000, {"a": True}, None),
        ("$.a", "in", ["x", 1], {"a": 1.0}, True),
        ("$.a", "in", ["x", 1], {"a": "y"}, False),
        ("$.a", "not_in", ["x"], {"a": "y"}, True),
        ("$.a", "not_in", ["x"], {}, False),
        ("$.a", "matches", "^/etc(/|$)", {"a": "/etc/passwd"}, True),
        ("$.a", "matches", "^/etc(/|$)", {"a": "/etcetera"}, False),
        ("$.a", "matches", "x", {"a": ["x"]}, None),
        ("$.a", "contains", "rm", {"a": "rm -r"}, True),
        ("$.a", "contains", "rm", {"a": ["rm -r"]}, False),
        ("$.a", "contains", 3, {"a": [1, 3]}, True),
        ("$.a", "contains", 3, {"a": "3"}, None),
        ("$.a.b[0].c", "==", 1, {"a": {"b": [{"c": 1}]}}, True),
        ("$.a.b[1].c", "==", 1, {"a": {"b": [{"c": 1}]}}, False),
        ('$["odd name"]', "==", 1, {"odd name": 1}, True),
        ("$['odd.name']", "==", 1, {"odd.name": 1}, True),
        ("$.to[*]", "not_in", ["a@x"], {"to": ["a@x", "b@y"]}, True),
        ("$.to[*]", "not_in", ["a@x"], {"to": ["a@x"]}, False),
        ("$.to[*]", "not_in", ["a@x"], {"to": "b@y"}, None),
        ("$.to[*]", "not_in", ["a@x"], {"to": None}, False),
        ("$.to[*]", ">", 1, {"to": ["x", 2]}, True),
        ("$.to[*]", ">", 1, {"to": ["x", 1]}, None),
        ("$", "==", {}, {}, True),
    ],
)
def test_a_condition_on_arguments_holds_or_not_or_cannot_be_decided(
    path: str, op: str, value: object, arguments: dict[str, object], expected: bool | None
) -> None:
    assert one(path, op, value).holds(arguments) is expected


def test_existence_asks_for_no_value() -> None:
    assert one("$.a", "exists").holds({"a": None}) is True
    assert one("$.a", "exists").holds({}) is False
    assert one("$.a", "absent").holds({}) is True
    assert one("$.a.b", "absent").holds({"a": 3}) is True
    with pytest.raises(ValueError, match="takes no value"):
        one("$.a", "exists", 1)


@pytest.mark.parametrize(
    ("path", "op", "value"),
    [
        ("a", "==", 1),
        ("$.", "==", 1),
        ("$a", "==", 1),
        ("$[x]", "==", 1),
        ("$.a", "in", []),
        ("$.a", "in", "x"),
        ("$.a", ">", True),
        ("$.a", "<", None),
        ("$.a", "matches", "("),
        ("$.a", "matches", "(?=a)"),
        ("$.a", "matches", 3),
        ("$.a", "like", "x"),
    ],
)
def test_a_condition_that_cannot_be_meant_is_refused(path: str, op: str, value: object) -> None:
    with pytest.raises(ValueError, match="ArgumentCondition"):
        one(path, op, value)


def test_a_pattern_takes_no_time_from_hostile_text() -> None:
    # with backtracking, this would take longer than the universe has existed
    assert one("$.a", "matches", "^(a+)+$").holds({"a": "a" * 5_000 + "!"}) is False


LARGE = PolicyRule(name="large", verdict="confirm", when=on({"path": "$.amount", "op": ">", "value": 1000}))
FORBIDDEN = PolicyRule(name="forbidden", verdict="deny", when=on({"path": "$.to", "op": "==", "value": "x"}))
REST = PolicyRule(name="rest", verdict="allow")


def ruled(policy: RiskPolicy, arguments: dict[str, object] | None) -> tuple[str, str]:
    found = ruling(policy, tool(Risk.WRITE), Caller(), ask(), arguments)
    return found.verdict, found.rule


def test_all_conditions_on_arguments_have_to_hold() -> None:
    when = on({"path": "$.a", "op": "exists"}, {"path": "$.b", "op": ">", "value": 1})
    policy = RiskPolicy(rules=(PolicyRule(name="both", verdict="confirm", when=when), REST))
    assert ruled(policy, {"a": 1, "b": 2}) == ("confirm", "both")
    assert ruled(policy, {"b": 2}) == ("allow", "rest")
    assert ruled(policy, {"a": 1, "b": "2"}) == ("confirm", "both"), "undecided"
    assert ruled(policy, {"b": "2"}) == ("allow", "rest"), "one that does not hold decides"


def test_known_arguments_decide() -> None:
    policy = RiskPolicy(rules=(LARGE, FORBIDDEN, REST))
    assert ruled(policy, {"amount": 1000}) == ("allow", "rest")
    assert ruled(policy, {"amount": 1001}) == ("confirm", "large")
    assert ruled(policy, {"amount": 1, "to": "x"}) == ("deny", "forbidden")
    assert ruled(policy, {"amount": 1001, "to": "x"}) == ("confirm", "large"), "first match wins"


def test_an_amount_written_as_text_does_not_slip_under_a_bound() -> None:
    assert ruled(RiskPolicy(rules=(LARGE, REST)), {"amount": "5000"}) == ("confirm", "large")
    small = PolicyRule(name="small", verdict="allow", when=on({"path": "$.amount", "op": "<", "value": 10}))
    assert ruled(RiskPolicy(rules=(small,)), {"amount": "1"}) == ("deny", "default_deny")


def test_on_the_menu_the_strictest_of_what_may_apply_is_said() -> None:
    assert ruled(RiskPolicy(rules=(LARGE, REST)), None) == ("confirm", "large")
    deny_rest = PolicyRule(name="rest", verdict="deny")
    assert ruled(RiskPolicy(rules=(LARGE, deny_rest)), None) == ("deny", "rest")
    assert verdict(RiskPolicy(rules=(REST, LARGE)), tool(Risk.WRITE), Caller(), ask()) == ("allow", "rest")


def test_a_denial_that_only_may_apply_does_not_take_the_tool_off_the_menu() -> None:
    policy = RiskPolicy(rules=(FORBIDDEN, REST))
    assert ruled(policy, None) == ("confirm", "forbidden")
    assert ruled(policy, {"to": "y"}) == ("allow", "rest")


def test_a_rule_says_what_follows_a_dry_run() -> None:
    dry = {"name": "dry", "verdict": "dry_run", "when": {"dry_run_supported": True}}
    for said, expected in (({}, "confirm"), ({"after_dry_run": "allow"}, "allow")):
        policy = RiskPolicy.model_validate({"rules": [{**dry, **said}]})
        assert ruling(policy, tool(Risk.WRITE, dry_run=True), Caller(), ask()).after_dry_run == expected

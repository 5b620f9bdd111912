"""Risk policy: for a tool that may be shown, whether its call is allowed, confirmed, run dry or denied.

A policy is an ordered list of rules. The first rule whose conditions all hold gives the verdict; where none holds the
verdict is `deny` by `default_deny`. A condition that a rule does not name matches everything.

The default policy:

| rule | when | verdict |
|---|---|---|
| `read_request_never_writes` | the request only reads; the tool writes or destroys | deny |
| `read_only_trusted` | the tool only reads; its source is trusted | allow |
| `read_only_third_party` | the tool only reads; third party | allow |
| `destructive_dry_run` | the tool is destructive and can run dry | dry_run |
| `destructive` | the tool is destructive | confirm |
| `write_in_production` | the tool writes; the caller's environment is `prod` or `production` | confirm |
| `write_third_party` | the tool writes; third party | confirm |
| `write` | the tool writes | allow |

A policy file is YAML with the same words:

    rules:
      - name: deletes_need_an_admin
        verdict: deny
        when: {risk: destructive, envs: [prod], mutation: unknown}
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, ValidationError, field_validator

from data.cards import Risk, RiskField, ToolCard, Trust, TrustField
from data.catalog import content_hash
from data.context import Caller, Subgoal
from data.errors import PolicyError
from serving.slice import Verdict

DEFAULT_RULE = "default_deny"


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _one_or_more(value: object) -> object:
    """A single word stands for a list of one; an empty list would match nothing, which is never meant."""
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not values:
        raise ValueError("an empty list matches nothing; leave the condition out to match everything")
    return values


Risks = Annotated[tuple[RiskField, ...], BeforeValidator(_one_or_more)]
Trusts = Annotated[tuple[TrustField, ...], BeforeValidator(_one_or_more)]
Words = Annotated[tuple[str, ...], BeforeValidator(_one_or_more)]


class Condition(_Strict):
    """When a rule applies: all conditions that are given hold. Names are compared exactly.

    `roles_any`: the caller has one of these roles. `mutation`: what is known of the request, `unknown` included.
    """

    risk: Risks | None = None
    trust: Trusts | None = None
    domains: Words | None = None
    roles_any: Words | None = None
    tenants: Words | None = None
    envs: Words | None = None
    mutation: StrictBool | Literal["unknown"] | None = None
    dry_run_supported: StrictBool | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _written_means_said(cls, value: object) -> object:
        # A key without a value would otherwise read as "matches everything": the widest rule from a slip of the pen.
        if value is None:
            raise ValueError("has no value; leave the condition out to match everything")
        return value

    def holds(self, card: ToolCard, caller: Caller, subgoal: Subgoal) -> bool:
        known = "unknown" if subgoal.mutation is None else subgoal.mutation
        return (
            (self.risk is None or card.risk in self.risk)
            and (self.trust is None or card.trust in self.trust)
            and (self.domains is None or card.domain in self.domains)
            and (self.roles_any is None or not set(self.roles_any).isdisjoint(caller.roles))
            and (self.tenants is None or caller.tenant in self.tenants)
            and (self.envs is None or caller.env in self.envs)
            and (self.mutation is None or self.mutation == known)
            and (self.dry_run_supported is None or self.dry_run_supported == card.dry_run)
        )


class PolicyRule(_Strict):
    """One row of a policy: its name, its verdict and when it applies."""

    name: str = Field(min_length=1)
    verdict: Verdict
    when: Condition = Condition()


class RiskPolicy(_Strict):
    """Ordered rules, first match wins. `version` names the content: equal rules, equal version."""

    rules: tuple[PolicyRule, ...]

    @cached_property
    def version(self) -> str:
        """First 16 hexadecimal digits of the hash over all rules, in order."""
        return content_hash(rule.model_dump_json(exclude_none=True) for rule in self.rules)[:16]


def verdict(policy: RiskPolicy, card: ToolCard, caller: Caller, subgoal: Subgoal) -> tuple[Verdict, str]:
    """The verdict on a call of `card`, with the name of the rule that gave it."""
    for rule in policy.rules:
        if rule.when.holds(card, caller, subgoal):
            return rule.verdict, rule.name
    return "deny", DEFAULT_RULE


def load_policy(path: Path | str) -> RiskPolicy:
    """Read a policy from YAML. Raises PolicyError that lists every problem of the file at once."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"{path}: the policy cannot be read: {error}") from error
    try:
        loaded: Any = yaml.load(text, Loader=_NoRepeatedKeys)
    except yaml.YAMLError as error:
        raise PolicyError(f"{path}: not readable as YAML: {_first_line(error)}") from error
    try:
        policy = RiskPolicy.model_validate(loaded)
    except ValidationError as error:
        raise PolicyError(_listed(path, [_described(problem) for problem in error.errors()])) from error
    problems = _contradictions(policy)
    if problems:
        raise PolicyError(_listed(path, problems))
    return policy


def _contradictions(policy: RiskPolicy) -> list[str]:
    """What is well formed and still cannot be meant."""
    problems: list[str] = []
    if not policy.rules:
        problems.append("rules: there are none, so everything would be denied; write at least one")
    seen: dict[str, int] = {}
    for index, rule in enumerate(policy.rules):
        where = f"rules[{index}] '{rule.name}'"
        if rule.name in seen:
            problems.append(
                f"{where}: rules[{seen[rule.name]}] has the same name; names go into the log, keep them apart"
            )
        seen.setdefault(rule.name, index)
        if rule.name == DEFAULT_RULE:
            problems.append(f"{where}: the name is taken by the verdict on what no rule matches; choose another")
        if rule.verdict == "dry_run" and rule.when.dry_run_supported is not True:
            problems.append(f"{where}: only tools that can run dry may be told to; add 'dry_run_supported: true'")
        if rule.when == Condition() and index < len(policy.rules) - 1:
            problems.append(f"{where}: matches everything, so no rule after it is reached; move it to the end")
    return problems


def _described(problem: Any) -> str:
    """One pydantic problem as `field: message`."""
    where = ""
    for part in problem["loc"]:
        where += f"[{part}]" if isinstance(part, int) else f".{part}" if where else str(part)
    if problem["type"] == "extra_forbidden":
        return f"{where}: unknown key; check its spelling"
    if problem["type"] == "model_type":
        return f"{where or 'the file'}: expected keys and values"
    return f"{where}: {problem['msg'].removeprefix('Value error, ')}"


def _listed(path: Path | str, problems: list[str]) -> str:
    listed = "\n".join(f"  - {problem}" for problem in dict.fromkeys(problems))
    return f"{path}: the policy cannot be used:\n{listed}"


def _first_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)


class _NoRepeatedKeys(yaml.SafeLoader):
    """YAML lets a later key replace an earlier one in silence; in a policy that is a hidden change of a rule."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a single word", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key '{key.value}' is repeated", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_PRODUCTION = ("prod", "production")

DEFAULT_POLICY = RiskPolicy(
    rules=(
        PolicyRule(
            name="read_request_never_writes",
            verdict="deny",
            when=Condition(risk=(Risk.WRITE, Risk.DESTRUCTIVE), mutation=False),
        ),
        PolicyRule(
            name="read_only_trusted", verdict="allow", when=Condition(risk=(Risk.READ_ONLY,), trust=(Trust.TRUSTED,))
        ),
        PolicyRule(
            name="read_only_third_party",
            verdict="allow",
            when=Condition(risk=(Risk.READ_ONLY,), trust=(Trust.THIRD_PARTY,)),
        ),
        PolicyRule(
            name="destructive_dry_run",
            verdict="dry_run",
            when=Condition(risk=(Risk.DESTRUCTIVE,), dry_run_supported=True),
        ),
        PolicyRule(name="destructive", verdict="confirm", when=Condition(risk=(Risk.DESTRUCTIVE,))),
        PolicyRule(name="write_in_production", verdict="confirm", when=Condition(risk=(Risk.WRITE,), envs=_PRODUCTION)),
        PolicyRule(
            name="write_third_party", verdict="confirm", when=Condition(risk=(Risk.WRITE,), trust=(Trust.THIRD_PARTY,))
        ),
        PolicyRule(name="write", verdict="allow", when=Condition(risk=(Risk.WRITE,))),
    )
)
"""The policy of a caller who brings none; see the table of this module."""

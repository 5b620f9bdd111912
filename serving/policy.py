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
      - name: large_refunds_are_confirmed
        verdict: confirm
        when: {domains: payments, arguments: [{path: $.amount, op: ">", value: 1000}]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, WithJsonSchema, field_validator

from data.cards import Risk, RiskField, ToolCard, Trust, TrustField
from data.catalog import content_hash
from data.context import Caller, Subgoal
from serving.policy_arguments import ArgumentCondition
from serving.slice import Verdict

DEFAULT_RULE = "default_deny"
STRICTNESS: tuple[Verdict, ...] = ("allow", "dry_run", "confirm", "deny")
"""The verdicts from the mildest to the strictest."""

AfterDryRun = Literal["confirm", "allow"]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _one_or_more(value: object) -> object:
    """A single word stands for a list of one; an empty list would match nothing, which is never meant."""
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not values:
        raise ValueError("an empty list matches nothing; leave the condition out to match everything")
    return values


def _said(value: object) -> object:
    # A key without a value would otherwise read as "matches everything": the widest rule from a slip of the pen.
    if value is None:
        raise ValueError("has no value; leave the key out to say nothing")
    return value


def _written(item: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]}, mode="validation")


Risks = Annotated[
    tuple[RiskField, ...],
    BeforeValidator(_one_or_more),
    _written({"enum": [risk.word for risk in Risk]}),
]
Trusts = Annotated[
    tuple[TrustField, ...],
    BeforeValidator(_one_or_more),
    _written({"enum": [trust.word for trust in Trust]}),
]
Words = Annotated[tuple[str, ...], BeforeValidator(_one_or_more), _written({"type": "string"})]
ArgumentConditions = Annotated[tuple[ArgumentCondition, ...], Field(min_length=1)]


class Condition(_Strict):
    """When a rule applies: all conditions that are given hold. Names are compared exactly.

    `roles_any`: the caller has one of these roles. `mutation`: what is known of the request, `unknown` included.
    `arguments`: what the call's arguments are like, all of it; see `policy_arguments.py`.
    """

    risk: Risks | None = None
    trust: Trusts | None = None
    domains: Words | None = None
    roles_any: Words | None = None
    tenants: Words | None = None
    envs: Words | None = None
    mutation: StrictBool | Literal["unknown"] | None = None
    dry_run_supported: StrictBool | None = None
    arguments: ArgumentConditions | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _written_means_said(cls, value: object) -> object:
        return _said(value)

    def holds(self, card: ToolCard, caller: Caller, subgoal: Subgoal) -> bool:
        """Whether all conditions hold but those on arguments."""
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

    def fits(self, arguments: Mapping[str, Any] | None) -> bool | None:
        """Whether the conditions on arguments hold; None where it cannot be told, as while no arguments are known."""
        if self.arguments is None:
            return True
        if arguments is None:
            return None
        answers = [condition.holds(arguments) for condition in self.arguments]
        return False if False in answers else None if None in answers else True


class PolicyRule(_Strict):
    """One row of a policy: its name, its verdict and when it applies.

    `after_dry_run`, for `dry_run` alone: what a dry run that went well leads to, `confirm` if nothing is said.
    """

    name: str = Field(min_length=1)
    verdict: Verdict
    when: Condition = Condition()
    after_dry_run: AfterDryRun | None = None

    @field_validator("after_dry_run", mode="before")
    @classmethod
    def _written_means_said(cls, value: object) -> object:
        return _said(value)


class RiskPolicy(_Strict):
    """Ordered rules, first match wins. `version` names the content: equal rules, equal version."""

    rules: tuple[PolicyRule, ...]

    @cached_property
    def version(self) -> str:
        """First 16 hexadecimal digits of the hash over all rules, in order."""
        return content_hash(rule.model_dump_json(exclude_none=True) for rule in self.rules)[:16]


@dataclass(frozen=True)
class Ruling:
    """A verdict with the rule that gave it. `after_dry_run`: what follows once a `dry_run` went well."""

    verdict: Verdict
    rule: str
    after_dry_run: AfterDryRun = "confirm"


def ruling(
    policy: RiskPolicy, card: ToolCard, caller: Caller, subgoal: Subgoal, arguments: Mapping[str, Any] | None = None
) -> Ruling:
    """The ruling on a call of `card` with these arguments; None: they are not known yet, as on a menu.

    A rule that may apply and cannot be decided is possible: the ruling is the strictest of the possible rules and of
    the first that does apply. On a menu a possible `deny` counts as `confirm`: some calls of the tool may go through.
    """
    strictest: Ruling | None = None
    for rule in policy.rules:
        if not rule.when.holds(card, caller, subgoal):
            continue
        fits = rule.when.fits(arguments)
        if fits is False:
            continue
        said: Verdict = rule.verdict
        if fits is None and arguments is None and said == "deny":
            said = "confirm"
        strictest = _stricter(strictest, Ruling(said, rule.name, rule.after_dry_run or "confirm"))
        if fits:
            return strictest
    return _stricter(strictest, Ruling("deny", DEFAULT_RULE))


def verdict(policy: RiskPolicy, card: ToolCard, caller: Caller, subgoal: Subgoal) -> tuple[Verdict, str]:
    """The verdict on a menu entry, no arguments being known, with the name of the rule that gave it."""
    found = ruling(policy, card, caller, subgoal)
    return found.verdict, found.rule


def _stricter(standing: Ruling | None, other: Ruling) -> Ruling:
    """The stricter of two; of equally strict ones the first, whose rule is the one to name."""
    if standing is None or STRICTNESS.index(other.verdict) > STRICTNESS.index(standing.verdict):
        return other
    return standing


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

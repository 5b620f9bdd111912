"""A table of expected verdicts, so that a policy is tested like code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StrictBool, ValidationError, field_validator

from data.cards import Frozen, ToolCard
from data.catalog import Catalog
from data.context import Caller, Subgoal
from data.errors import PolicyError
from data.strict_yaml import read_yaml
from serving.policy import RiskPolicy, Ruling, ruling
from serving.policy_file import described, listed
from serving.slice import Verdict


class _Strict(Frozen):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _card(value: object) -> object:
    """A tool as an object of card fields: its id and name may be left out, an unknown key may not be there."""
    if not isinstance(value, dict):
        return value
    unknown = [str(key) for key in value if key not in ToolCard.model_fields]
    if unknown:
        raise ValueError(f"a tool has no '{unknown[0]}'; known: {', '.join(ToolCard.model_fields)}")
    return {"tool_id": "case.tool", "name": "tool", **value}


def _caller(value: object) -> object:
    unknown = [str(key) for key in value if key not in Caller.model_fields] if isinstance(value, dict) else []
    if unknown:
        raise ValueError(f"a caller has no '{unknown[0]}'; known: {', '.join(Caller.model_fields)}")
    return value


class PolicyCase(_Strict):
    """One expectation. `tool`: a tool id of the catalog, or a card's fields. No `arguments`: as on a menu."""

    name: str = Field(min_length=1)
    tool: Annotated[ToolCard | str, BeforeValidator(_card)]
    expect: Verdict
    rule: str | None = None
    caller: Annotated[Caller, BeforeValidator(_caller)] = Caller()
    mutation: StrictBool | Literal["unknown"] = "unknown"
    arguments: dict[str, Any] | None = None

    @field_validator("tool", mode="after")
    @classmethod
    def _tool_is_named(cls, value: ToolCard | str) -> ToolCard | str:
        if value == "":
            raise ValueError("is empty; give a tool id or a card's fields")
        return value


class _Table(_Strict):
    cases: tuple[PolicyCase, ...] = Field(min_length=1)


class CaseResult(_Strict):
    """What a case expected and what the policy says."""

    name: str
    passed: bool
    expect: Verdict
    expect_rule: str | None
    verdict: Verdict
    rule: str


def load_cases(path: Path | str) -> tuple[PolicyCase, ...]:
    """Read `cases:` from YAML. Raises PolicyError that lists every problem of the file at once, each with its line."""
    loaded, lines = read_yaml(Path(path))
    try:
        return _Table.model_validate(loaded).cases
    except ValidationError as error:
        raise PolicyError(listed(path, described(error, lines), "the cases")) from error


def run_cases(policy: RiskPolicy, cases: tuple[PolicyCase, ...], catalog: Catalog | None = None) -> list[CaseResult]:
    """Hold each case against the policy. Raises PolicyError for cases that name a tool which is not in `catalog`."""
    unknown = [case for case in cases if isinstance(case.tool, str) and (catalog is None or case.tool not in catalog)]
    if unknown:
        why = "give the catalog that has it" if catalog is None else "the catalog has no such tool"
        raise PolicyError("\n".join(f"case '{case.name}': tool '{case.tool}': {why}" for case in unknown))
    return [_result(case, _ruled(policy, case, catalog)) for case in cases]


def _ruled(policy: RiskPolicy, case: PolicyCase, catalog: Catalog | None) -> Ruling:
    card = case.tool if isinstance(case.tool, ToolCard) else (catalog or Catalog(()))[case.tool]
    subgoal = Subgoal(goal=case.name, mutation=None if case.mutation == "unknown" else case.mutation)
    return ruling(policy, card, case.caller, subgoal, case.arguments)


def _result(case: PolicyCase, found: Ruling) -> CaseResult:
    passed = found.verdict == case.expect and case.rule in (None, found.rule)
    return CaseResult(
        name=case.name,
        passed=passed,
        expect=case.expect,
        expect_rule=case.rule,
        verdict=found.verdict,
        rule=found.rule,
    )

"""The gate's answers, one after the other: what is refused, what waits, and what a ticket is worth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from data.cards import Requires, Risk, ToolCard, Trust
from data.catalog import Catalog
from data.context import Caller, Subgoal
from data.store.database import open_database
from serving.gate.arguments import ArgumentChecker
from serving.gate.gate import Call, CheckResult, Gate, Ground
from serving.gate.tickets import Tickets
from serving.mask import StaticMask
from serving.policy import DEFAULT_POLICY, RiskPolicy
from serving.slice import MenuEntry, Slice

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TTL = timedelta(minutes=5)
ANN = Caller(principal="ann", tenant="acme", scopes=("pay",), env="prod")
OWNER = ("ann", "acme")
AMOUNT = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}


def tool(tool_id: str, risk: Risk, **more: Any) -> ToolCard:
    domain, _, name = tool_id.partition(".")
    return ToolCard(tool_id=tool_id, name=name, domain=domain, risk=risk, trust=Trust.TRUSTED, **more)


CARDS = (
    tool("pay.list", Risk.READ_ONLY),
    tool("pay.refund", Risk.WRITE, requires=Requires(scopes=("pay",)), input_schema=AMOUNT),
    tool("pay.void", Risk.DESTRUCTIVE, dry_run=True, input_schema=AMOUNT),
    tool("pay.close", Risk.DESTRUCTIVE),
    tool("vault.open", Risk.READ_ONLY, requires=Requires(scopes=("vault",)), input_schema=AMOUNT),
)
CATALOG = Catalog(CARDS)


def ground(cards: tuple[ToolCard, ...] = CARDS, policy: RiskPolicy = DEFAULT_POLICY, down: str = "") -> Ground:
    return Ground(Catalog(cards), StaticMask.build(cards), policy, frozenset({down} if down else ()))


def menu_of(*tool_ids: str, mutation: bool | None = None) -> Slice:
    entries = tuple(MenuEntry(tool_id=tool_id, position=place) for place, tool_id in enumerate(tool_ids))
    return Slice(
        request_id="r",
        catalog_version="c",
        bundle_version="b",
        policy_version="p",
        caller_key="k",
        subgoal=Subgoal(goal="g", mutation=mutation),
        query="g",
        menu=entries,
    ).sealed()


SHOWN = menu_of("pay.list", "pay.refund", "pay.void", "pay.close")


@pytest.fixture
def tickets(tmp_path: Path) -> Iterator[Tickets]:
    database = open_database(tmp_path / "toolcrib.db")
    yield Tickets(database, TTL)
    database.close()


@pytest.fixture
def gate(tickets: Tickets) -> Gate:
    return Gate(tickets, ArgumentChecker())


def call(tool_id: str, arguments: Any = None, ticket: str | None = None, shown: Slice = SHOWN) -> Call:
    return Call(tool_id, {} if arguments is None else arguments, shown.slice_id, ticket)


def check(gate: Gate, made: Call, caller: Caller = ANN, on: Ground | None = None, **more: Any) -> CheckResult:
    shown = more.get("shown", SHOWN)
    return gate.check(made, shown, more.get("owner", OWNER), caller, on or ground(), more.get("now", NOW))


def test_a_read_on_the_menu_is_allowed(gate: Gate) -> None:
    found = check(gate, call("pay.list"))
    assert (found.verdict, found.rule, found.ticket) == ("allow", "read_only_trusted", None)


@pytest.mark.parametrize(
    ("shown", "owner", "slice_id"),
    [
        (None, None, SHOWN.slice_id),
        (SHOWN, ("bob", "acme"), SHOWN.slice_id),
        (SHOWN, ("ann", "rival"), SHOWN.slice_id),
        (SHOWN, None, SHOWN.slice_id),
        (SHOWN, OWNER, "another"),
    ],
)
def test_a_slice_that_is_not_the_callers_looks_like_none(
    gate: Gate, shown: Slice | None, owner: tuple[str, str] | None, slice_id: str
) -> None:
    made = replace(call("pay.list"), slice_id=slice_id)
    found = gate.check(made, shown, owner, ANN, ground(), NOW)
    assert found == gate.check(made, None, None, ANN, ground(), NOW)
    assert (found.verdict, found.rule, found.available) == ("deny", "unknown_slice", ())


def test_a_tool_that_was_not_shown_is_refused_with_what_is_available(gate: Gate) -> None:
    shown = menu_of("pay.list", "pay.refund")
    found = check(gate, call("pay.close", shown=shown), shown=shown)
    assert (found.verdict, found.rule) == ("deny", "not_available")
    assert found.available == ("pay.list", "pay.refund")


def test_what_is_available_is_what_the_caller_may_still_see_and_call(gate: Gate) -> None:
    shown = menu_of("pay.list", "pay.refund", "pay.close", "vault.open", "gone.tool", mutation=False)
    found = check(gate, call("no.such", shown=shown), ANN.model_copy(update={"scopes": ()}), shown=shown)
    assert found.available == ("pay.list",), "no grant for refund and vault, a denied write, and one that is gone"


@pytest.mark.parametrize("arguments", [{}, {"amount": "x"}, {"amount": 1}])
@pytest.mark.parametrize("ticket", [None, "no such ticket"])
def test_withheld_gone_down_and_never_shown_are_one_answer(gate: Gate, arguments: Any, ticket: str | None) -> None:
    shown = menu_of("pay.list", "pay.refund", "vault.open")
    nobody = ANN.model_copy(update={"scopes": ()})
    answers = [
        check(gate, call("pay.refund", arguments, ticket, shown), nobody, shown=shown),
        check(gate, call("vault.open", arguments, ticket, shown), nobody, shown=shown),
        check(gate, call("no.such", arguments, ticket, shown), nobody, shown=shown),
        check(gate, call("pay.void", arguments, ticket, shown), nobody, shown=shown),
        check(gate, call("pay.refund", arguments, ticket, shown), nobody, ground(CARDS[:1]), shown=shown),
        check(gate, call("pay.refund", arguments, ticket, shown), nobody, ground(down="pay.refund"), shown=shown),
    ]
    assert {repr(answer) for answer in answers} == {repr(answers[0])}
    assert answers[0].available == ("pay.list",)


def test_a_revoked_grant_counts_at_once_and_so_does_a_new_one(gate: Gate) -> None:
    made = call("pay.refund", {"amount": 1})
    assert check(gate, made).verdict == "confirm"
    assert check(gate, made, ANN.model_copy(update={"scopes": ()})).rule == "not_available"
    assert check(gate, made).verdict == "confirm"


def test_workflow_state_and_outages_are_looked_at_again(gate: Gate) -> None:
    elsewhere = ANN.model_copy(update={"allowed_tools": ("pay.refund",)})
    assert check(gate, call("pay.list"), elsewhere).rule == "not_available"
    assert check(gate, call("pay.list"), on=ground(down="pay.list")).rule == "not_available"


def test_bad_arguments_are_invalid_with_every_problem(gate: Gate) -> None:
    found = check(gate, call("pay.refund", {"amount": "secret"}))
    assert (found.verdict, found.rule, found.ticket) == ("invalid", "arguments", None)
    assert [(problem.path, problem.code) for problem in found.errors] == [("$.amount", "wrong_type")]
    assert "secret" not in repr(found)


@pytest.mark.parametrize("arguments", [None, [], "x", {"amount": float("nan")}, {"amount": 10**5000}, {"\ud800": 1}])
def test_hostile_arguments_are_invalid_and_no_exception(gate: Gate, arguments: Any) -> None:
    made = replace(call("pay.refund"), arguments=arguments)
    assert check(gate, made).verdict == "invalid"


def test_a_request_that_only_reads_never_writes_whatever_the_policy_says(gate: Gate) -> None:
    shown = menu_of("pay.list", "pay.refund", mutation=False)
    allow_all = RiskPolicy.model_validate({"rules": [{"name": "all", "verdict": "allow"}]})
    found = check(gate, call("pay.refund", {"amount": 1}, shown=shown), on=ground(policy=allow_all), shown=shown)
    assert (found.verdict, found.rule) == ("deny", "read_only_request")


def test_the_policy_sees_the_arguments(gate: Gate) -> None:
    rules = [
        {
            "name": "huge",
            "verdict": "deny",
            "when": {"arguments": [{"path": "$.amount", "op": ">", "value": 9000}]},
        },
        {"name": "rest", "verdict": "allow"},
    ]
    policy = ground(policy=RiskPolicy.model_validate({"rules": rules}))
    assert check(gate, call("pay.refund", {"amount": 9000}), on=policy).verdict == "allow"
    found = check(gate, call("pay.refund", {"amount": 9001}), on=policy)
    assert (found.verdict, found.rule) == ("deny", "huge")
    assert "9001" not in repr(found)


def test_the_card_and_policy_of_this_moment_judge_an_old_slice(gate: Gate) -> None:
    now_destructive = (tool("pay.list", Risk.DESTRUCTIVE), *CARDS[1:])
    assert check(gate, call("pay.list")).verdict == "allow"
    assert check(gate, call("pay.list"), on=ground(now_destructive)).verdict == "confirm"
    deny = RiskPolicy.model_validate({"rules": [{"name": "frozen", "verdict": "deny"}]})
    assert check(gate, call("pay.list"), on=ground(policy=deny)).rule == "frozen"


def confirmed(gate: Gate, tickets: Tickets, made: Call) -> Call:
    waiting = check(gate, made)
    assert (waiting.verdict, waiting.expires) == ("confirm", NOW + TTL)
    assert waiting.ticket is not None
    assert tickets.decide(waiting.ticket, approve=True, tenant="acme", by="boss", now=NOW) is not None
    return replace(made, ticket=waiting.ticket)


def test_a_confirmed_call_is_allowed_once(gate: Gate, tickets: Tickets) -> None:
    made = confirmed(gate, tickets, call("pay.refund", {"amount": 1}))
    assert check(gate, made).verdict == "allow"
    again = check(gate, made)
    assert (again.verdict, again.rule) == ("deny", "ticket_used")


def test_until_a_person_decides_the_same_ticket_waits(gate: Gate) -> None:
    made = call("pay.refund", {"amount": 1})
    waiting = check(gate, made)
    again = check(gate, replace(made, ticket=waiting.ticket))
    assert again == waiting


def test_other_arguments_are_refused_and_the_approval_stays_good(gate: Gate, tickets: Tickets) -> None:
    made = confirmed(gate, tickets, call("pay.refund", {"amount": 1}))
    for arguments in ({"amount": 2}, {"amount": 1, "more": None}, {"amount": 1.0}):
        found = check(gate, replace(made, arguments=arguments))
        assert (found.verdict, found.rule) == ("deny", "ticket_mismatch")
    assert check(gate, replace(made, tool_id="pay.close")).rule == "ticket_mismatch"
    assert check(gate, made).verdict == "allow"


def test_an_approval_belongs_to_one_slice(gate: Gate, tickets: Tickets) -> None:
    made = confirmed(gate, tickets, call("pay.refund", {"amount": 1}))
    other = menu_of("pay.refund")
    assert check(gate, replace(made, slice_id=other.slice_id), shown=other).rule == "ticket_mismatch"


def test_a_refused_an_expired_and_an_invented_ticket_are_told_apart(gate: Gate, tickets: Tickets) -> None:
    made = call("pay.refund", {"amount": 1})
    token = check(gate, made).ticket
    assert token is not None
    assert check(gate, replace(made, ticket=token), now=NOW + TTL).rule == "ticket_expired"
    tickets.decide(token, approve=False, tenant="acme", by="boss", now=NOW)
    assert check(gate, replace(made, ticket=token)).rule == "ticket_refused"
    for invented in ("x", token[:-1], token + "A", "\ud800", ""):
        assert check(gate, replace(made, ticket=invented)).rule == "ticket_unknown"


def test_an_approval_does_not_outlive_the_grant_or_the_policy(gate: Gate, tickets: Tickets) -> None:
    made = confirmed(gate, tickets, call("pay.refund", {"amount": 1}))
    deny = RiskPolicy.model_validate({"rules": [{"name": "frozen", "verdict": "deny"}]})
    assert check(gate, made, ANN.model_copy(update={"scopes": ()})).rule == "not_available"
    assert check(gate, made, on=ground(policy=deny)).rule == "frozen"
    assert check(gate, made).verdict == "allow", "neither of them has burnt it"


def test_a_call_that_needs_no_ticket_does_not_burn_one(gate: Gate, tickets: Tickets) -> None:
    made = confirmed(gate, tickets, call("pay.refund", {"amount": 1}))
    allow = RiskPolicy.model_validate({"rules": [{"name": "all", "verdict": "allow"}]})
    assert check(gate, made, on=ground(policy=allow)).rule == "all"
    assert check(gate, made).rule == "write_in_production"


def dry_run(after: str) -> Ground:
    rule = {"name": "dry", "verdict": "dry_run", "after_dry_run": after, "when": {"dry_run_supported": True}}
    return ground(policy=RiskPolicy.model_validate({"rules": [rule]}))


def done_dry(gate: Gate, tickets: Tickets, on: Ground, ok: bool = True) -> Call:
    made = call("pay.void", {"amount": 1})
    first = check(gate, made, on=on)
    assert first.verdict == "dry_run"
    assert first.ticket is not None
    made = replace(made, ticket=first.ticket)
    assert check(gate, made, on=on) == first, "not done yet"
    assert tickets.dry_run_done(first.ticket, ok, tenant="acme", principal="ann", now=NOW) is not None
    return made


def test_after_a_good_dry_run_a_person_confirms(gate: Gate, tickets: Tickets) -> None:
    on = dry_run("confirm")
    made = done_dry(gate, tickets, on)
    waiting = check(gate, made, on=on)
    assert (waiting.verdict, waiting.rule) == ("confirm", "dry")
    assert waiting.ticket not in (None, made.ticket)
    assert check(gate, made, on=on).rule == "ticket_used", "one dry run, one confirmation"
    made = replace(made, ticket=waiting.ticket)
    assert check(gate, made, on=on) == waiting
    assert tickets.decide(str(waiting.ticket), approve=True, tenant="acme", by="boss", now=NOW) is not None
    assert check(gate, made, on=on).verdict == "allow"
    assert check(gate, made, on=on).rule == "ticket_used"


def test_where_the_rule_says_so_a_good_dry_run_is_enough_once(gate: Gate, tickets: Tickets) -> None:
    on = dry_run("allow")
    made = done_dry(gate, tickets, on)
    assert check(gate, replace(made, arguments={"amount": 2}), on=on).rule == "ticket_mismatch"
    assert check(gate, made, on=on).verdict == "allow"
    assert check(gate, made, on=on).rule == "ticket_used"


@pytest.mark.parametrize("after", ["allow", "confirm"])
def test_a_dry_run_that_failed_leads_nowhere(gate: Gate, tickets: Tickets, after: str) -> None:
    on = dry_run(after)
    made = done_dry(gate, tickets, on, ok=False)
    assert (check(gate, made, on=on).verdict, check(gate, made, on=on).rule) == ("deny", "ticket_refused")


def test_a_dry_run_is_no_approval_where_a_person_has_to_decide(gate: Gate, tickets: Tickets) -> None:
    made = done_dry(gate, tickets, dry_run("allow"))
    strict = RiskPolicy.model_validate({"rules": [{"name": "ask", "verdict": "confirm"}]})
    assert check(gate, made, on=ground(policy=strict)).verdict == "confirm"

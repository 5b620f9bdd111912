"""The gate: one proposed call, checked against what holds now. A slice, a ticket or a past check authorises nothing.

In order, and the first refusal is the answer:

| rule | refused is | verdict |
|---|---|---|
| `unknown_slice` | a slice that is not this caller's, or none | deny |
| `not_available` | a tool that the slice did not show, or that the caller may not see any more | deny |
| `arguments` | arguments that do not meet the tool's schema | invalid |
| `read_only_request` | a tool that writes, for a request that only reads | deny |
| a policy rule's name | what the risk policy denies with these arguments | deny |
| a policy rule's name | a call that waits for a person, or for a dry run | confirm, dry_run |
| `ticket_*` | a ticket that is not good for this call | deny |

A tool that is withheld and a tool that never was are answered alike, byte for byte, whatever the arguments or ticket.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from data.cards import Risk
from data.catalog import Catalog
from data.context import Caller
from serving.gate.arguments import ArgumentChecker, Problem
from serving.gate.canonical import arguments_hash
from serving.gate.tickets import Binding, Issued, Refusal, Tickets
from serving.mask import StaticMask
from serving.policy import RiskPolicy, Ruling, ruling
from serving.slice import Slice

UNKNOWN_SLICE = "unknown_slice"
NOT_AVAILABLE = "not_available"
ARGUMENTS = "arguments"
READ_ONLY_REQUEST = "read_only_request"

CallVerdict = Literal["allow", "confirm", "dry_run", "deny", "invalid"]
Owner = tuple[str, str]
"""Principal and tenant."""


@dataclass(frozen=True)
class Call:
    """A call that a model proposes. `ticket`: what an earlier check of this very call gave."""

    tool_id: str
    arguments: Any
    slice_id: str
    ticket: str | None = None


@dataclass(frozen=True, eq=False)
class Ground:
    """What holds now: `mask` is of `catalog`, `unavailable` are the tools that are down."""

    catalog: Catalog
    mask: StaticMask
    policy: RiskPolicy
    unavailable: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CheckResult:
    """The answer, fit for the model as it is. `available`: what the slice's menu still offers, on `not_available`.

    `ticket`: the token to come back with, on `confirm` and `dry_run`. Everything named is the caller's to see.
    """

    verdict: CallVerdict
    rule: str
    message: str
    hint: str = ""
    errors: tuple[Problem, ...] = ()
    available: tuple[str, ...] = ()
    ticket: str | None = None
    expires: datetime | None = None


class Gate:
    """Checks calls. Threads may share it. What is up for a check comes with it; only tickets are kept."""

    def __init__(self, tickets: Tickets, checker: ArgumentChecker) -> None:
        self._tickets, self._checker = tickets, checker

    def check(
        self, call: Call, shown: Slice | None, owner: Owner | None, caller: Caller, ground: Ground, now: datetime
    ) -> CheckResult:
        """The verdict on `call` by `caller`, whose grants are those of this moment.

        `shown` and `owner`: the slice that the call names and whom it was made for, None where there is none.
        Raises what SQLAlchemy raises when a ticket is needed and the database is out of reach: no verdict, no call.
        """
        if shown is None or shown.slice_id != call.slice_id or owner != (caller.principal, caller.tenant):
            return _UNKNOWN_SLICE
        if call.tool_id not in _visible_now(shown, caller, ground):
            return _not_available(shown, caller, ground)
        card = ground.catalog[call.tool_id]
        errors = self._checker.problems(card, call.arguments)
        if errors:
            return _invalid(errors)
        if shown.subgoal.mutation is False and card.risk > Risk.READ_ONLY:
            return _WRITES
        return self._ruled(call, shown, caller, ruling(ground.policy, card, caller, shown.subgoal, call.arguments), now)

    def _ruled(self, call: Call, shown: Slice, caller: Caller, ruled: Ruling, now: datetime) -> CheckResult:
        """What the ruling means for this call, with the ticket that it brings or needs."""
        if ruled.verdict == "allow":
            return _allowed(ruled)
        if ruled.verdict == "deny":
            return CheckResult("deny", ruled.rule, "the risk policy does not allow this call", _DENIED_HINT)
        hashed = arguments_hash(call.arguments)
        binding = Binding(caller.tenant, caller.principal, call.tool_id, hashed, shown.slice_id)
        if call.ticket is None:
            return _waiting(ruled.verdict, ruled, self._tickets.issue(ruled.verdict, binding, now))
        return self._redeem(call.ticket, binding, ruled, now)

    def _redeem(self, token: str, binding: Binding, ruled: Ruling, now: datetime) -> CheckResult:
        """What a ticket is worth: a person's approval ends every wait, a dry run what its rule says."""
        found = self._tickets.find(token, binding.tenant, binding.principal, now)
        if found is None or found.kind == "confirm":
            refusal = self._tickets.use(token, "confirm", binding, now)
        elif ruled.verdict == "dry_run" and ruled.after_dry_run == "allow":
            refusal = self._tickets.use(token, "dry_run", binding, now)
        else:
            exchanged = self._tickets.exchange(token, binding, now)
            if isinstance(exchanged, Issued):
                return _waiting("confirm", ruled, exchanged)
            refusal = exchanged
        if refusal is None:
            return _allowed(ruled)
        if refusal == "pending" and found is not None:
            return _waiting(found.kind, ruled, Issued(token, found.expires))
        return _ticket_refused(refusal)


def _visible_now(shown: Slice, caller: Caller, ground: Ground) -> tuple[str, ...]:
    """The menu's tools that are in the catalog and that the caller may see at this moment, in menu order."""
    allowed = ground.mask.apply(caller, ground.unavailable).allowed
    row = ground.catalog.row
    ids = (entry.tool_id for entry in shown.menu)
    return tuple(tool_id for tool_id in ids if tool_id in row and allowed[row[tool_id]])


def _not_available(shown: Slice, caller: Caller, ground: Ground) -> CheckResult:
    available = tuple(
        tool_id
        for tool_id in _visible_now(shown, caller, ground)
        if ruling(ground.policy, ground.catalog[tool_id], caller, shown.subgoal).verdict != "deny"
    )
    hint = "call one of those that are available, or ask for a new menu" if available else "ask for a new menu"
    return CheckResult("deny", NOT_AVAILABLE, "this menu offers no such tool now", hint, available=available)


def _invalid(errors: tuple[Problem, ...]) -> CheckResult:
    count = f"{len(errors)} problems" if len(errors) > 1 else "one problem"
    return CheckResult("invalid", ARGUMENTS, f"the arguments have {count}", "repair them and check again", errors)


def _allowed(ruled: Ruling) -> CheckResult:
    return CheckResult("allow", ruled.rule, "the call may be made now, once")


def _waiting(verdict: Literal["confirm", "dry_run"], ruled: Ruling, issued: Issued) -> CheckResult:
    message, hint = _WAITS[verdict]
    return CheckResult(verdict, ruled.rule, message, hint, ticket=issued.token, expires=issued.expires)


def _ticket_refused(refusal: Refusal) -> CheckResult:
    message, hint = _REFUSALS[refusal]
    return CheckResult("deny", f"ticket_{refusal}", message, hint)


_UNKNOWN_SLICE = CheckResult("deny", UNKNOWN_SLICE, "there is no such menu", "ask for a new menu")
_WRITES = CheckResult(
    "deny",
    READ_ONLY_REQUEST,
    "the request only reads, and this tool writes",
    "if writing is meant, ask for a menu for a step that writes",
)
_DENIED_HINT = "do not repeat it; choose another tool, other arguments, or tell the user"
_AGAIN = "check the call again without a ticket"
_WAITS: dict[Literal["confirm", "dry_run"], tuple[str, str]] = {
    "confirm": (
        "the call waits for a person to approve it",
        "once it is approved, check exactly this call again with the ticket",
    ),
    "dry_run": (
        "the call has to be run dry first",
        "run the tool dry, report the outcome with the ticket, then check exactly this call again with it",
    ),
}
_REFUSALS: dict[Refusal, tuple[str, str]] = {
    "unknown": ("there is no such ticket", _AGAIN),
    "expired": ("the ticket has expired", _AGAIN),
    "mismatch": (
        "the ticket was given for another call; it is still good for that one",
        "check with the tool, arguments and menu that it was given for, or check this call without a ticket",
    ),
    "pending": ("the ticket still waits", "check again later"),
    "refused": ("this call was refused, or its dry run failed", "do not repeat it; change the call, or tell the user"),
    "used": ("the ticket has been used", f"a ticket is good for one call; for another one, {_AGAIN}"),
}

"""Calls that wait for a person: asked through the client where it can ask, by a ticket where it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import mcp_types as types
import pytest
from upstream_servers import Desk, Running, door_before, text, tool

from serving.door.grants import Grant

pytestmark = pytest.mark.anyio

POLICY = """
rules:
  - {name: reads, verdict: allow, when: {risk: read_only}}
  - {name: rehearsed, verdict: dry_run, when: {domains: pay, dry_run_supported: true}}
  - {name: asked, verdict: confirm, when: {risk: [write, destructive]}}
"""
CLOSE = {"tool": "forge.close_issue", "arguments": {"number": 7}}
QUERY = {"query": "close an issue of a repository"}


class Person:
    """The user of a client; what they were asked, and what they say."""

    def __init__(self, action: Literal["accept", "decline", "cancel"], approve: bool = True) -> None:
        self.asked: list[str] = []
        self._said = types.ElicitResult(action=action, content={"approve": approve} if action == "accept" else None)

    async def __call__(self, _: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(params.message)
        return self._said


def desk() -> Desk:
    return Desk(tool("close_issue", "Close an issue of a repository.", reads=False, number="integer"))


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_approved_call_is_made_once(tmp_path: Path, policy: Path, mode: str) -> None:
    forge, person = desk(), Person("accept")
    async with (
        door_before(tmp_path, policy=policy, forge=forge) as running,
        running.client(mode, elicitation_callback=person) as client,
    ):
        await client.call_tool("search_tools", QUERY)
        called = await client.call_tool("call_tool", CLOSE)
        assert text(called) == "close_issue did {'number': 7}"
    assert forge.calls == [("close_issue", {"number": 7})]
    assert len(person.asked) == 1
    assert person.asked[0].startswith("Run forge.close_issue? It can destroy.")
    assert '"number": 7' in person.asked[0]


@pytest.mark.parametrize(
    ("mode", "person"),
    [("auto", Person("decline")), ("legacy", Person("decline")), ("auto", Person("accept", approve=False))],
)
async def test_a_refused_call_is_not_made_and_says_so(tmp_path: Path, policy: Path, mode: str, person: Person) -> None:
    forge = desk()
    async with door_before(tmp_path, policy=policy, forge=forge) as running:
        async with running.client(mode, elicitation_callback=person) as client:
            await client.call_tool("search_tools", QUERY)
            called = await client.call_tool("call_tool", CLOSE)
            assert called.is_error
            assert "refused" in text(called)
        assert [(trace.outcome, trace.error_class) for trace in running.traces()] == [("failure", "auth")]
    assert forge.calls == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_dismissed_question_leaves_the_call_waiting(tmp_path: Path, policy: Path, mode: str) -> None:
    forge, person = desk(), Person("cancel")
    async with (
        door_before(tmp_path, policy=policy, forge=forge) as running,
        running.client(mode, elicitation_callback=person) as client,
    ):
        await client.call_tool("search_tools", QUERY)
        called = await client.call_tool("call_tool", CLOSE)
        assert called.is_error
        assert called.structured_content["verdict"] == "confirm"
    assert forge.calls == []


async def approve(running: Running, waiting: types.CallToolResult) -> None:
    """A person decides elsewhere, by the service's own route."""
    who = (await _ann(running)).caller
    running.assembly.door.service.confirm(who, waiting.structured_content["ticket"], True, "boss", "")


async def _ann(running: Running) -> Any:
    return running.mcp.server._identity_of(None)  # type: ignore[arg-type]


async def test_a_client_that_cannot_ask_gets_a_ticket_that_is_good_once(tmp_path: Path, policy: Path) -> None:
    forge = desk()
    async with door_before(tmp_path, policy=policy, forge=forge) as running, running.client() as client:
        await client.call_tool("search_tools", QUERY)
        waiting = await client.call_tool("call_tool", CLOSE)
        assert waiting.structured_content["verdict"] == "confirm"
        again = {**CLOSE, "menu": waiting.structured_content["menu"], "ticket": waiting.structured_content["ticket"]}
        assert (await client.call_tool("call_tool", again)).is_error
        await approve(running, waiting)
        await client.call_tool("search_tools", QUERY)  # a newer menu does not take the ticket's place
        other = {**again, "arguments": {"number": 8}}
        assert (await client.call_tool("call_tool", other)).is_error
        assert not (await client.call_tool("call_tool", again)).is_error
        assert (await client.call_tool("call_tool", again)).is_error
    assert forge.calls == [("close_issue", {"number": 7})]


async def test_whoever_may_not_confirm_is_not_asked(tmp_path: Path, policy: Path) -> None:
    forge, person = desk(), Person("accept")
    grant = Grant(tenant="acme", may_confirm=False)
    async with (
        door_before(tmp_path, policy=policy, grant=grant, forge=forge) as running,
        running.client(elicitation_callback=person) as client,
    ):
        await client.call_tool("search_tools", QUERY)
        called = await client.call_tool("call_tool", CLOSE)
        assert called.structured_content["verdict"] == "confirm"
    assert (person.asked, forge.calls) == ([], [])


async def test_a_core_tool_that_waits_is_asked_about_as_well(tmp_path: Path, policy: Path) -> None:
    forge, person = desk(), Person("accept")
    async with (
        door_before(tmp_path, policy=policy, core=("forge.close_issue",), forge=forge) as running,
        running.client(elicitation_callback=person) as client,
    ):
        called = await client.call_tool("close_issue", {"number": 7})
        assert not called.is_error
    assert forge.calls == [("close_issue", {"number": 7})]


async def test_an_answer_for_other_arguments_approves_nothing(tmp_path: Path, policy: Path) -> None:
    forge = desk()
    async with (
        door_before(tmp_path, policy=policy, forge=forge) as running,
        running.client(elicitation_callback=Person("accept")) as client,
    ):
        await client.call_tool("search_tools", QUERY)
        asked = await client.session.call_tool("call_tool", CLOSE, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult)
        yes = types.ElicitResult(action="accept", content={"approve": True})
        with pytest.raises(Exception, match="request"):
            await client.session.call_tool(
                "call_tool",
                {**CLOSE, "arguments": {"number": 8}},
                input_responses={"approve": yes},
                request_state=asked.request_state,
            )
    assert forge.calls == []


async def test_what_is_hidden_in_arguments_is_written_out_for_the_person(tmp_path: Path, policy: Path) -> None:
    forge, person = Desk(tool("close_issue", "Close an issue.", reads=False, reason="string")), Person("decline")
    async with (
        door_before(tmp_path, policy=policy, forge=forge) as running,
        running.client(elicitation_callback=person) as client,
    ):
        await client.call_tool("search_tools", QUERY)
        arguments = {"reason": "done\u202e\u200bnow"}
        await client.call_tool("call_tool", {"tool": "forge.close_issue", "arguments": arguments})
    assert "\u202e" not in person.asked[0]
    assert "202e" in person.asked[0].lower()


def payments(answer: str = "1 payment would be void") -> Desk:
    void = tool("void_payment", "Void a payment.", reads=False, number="integer")
    return Desk(void, answer=lambda _, arguments: answer if arguments.get("dry_run") else "void")


PAY = {"tool": "pay.void_payment", "arguments": {"number": 7}}
DRY = {"tools": {"void_payment": {"dry_run_argument": "dry_run"}}}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_that_is_run_dry_first_is_then_asked_about(tmp_path: Path, policy: Path, mode: str) -> None:
    pay, person = payments(), Person("accept")
    async with (
        door_before(tmp_path, policy=policy, upstream=DRY, pay=pay) as running,
        running.client(mode, elicitation_callback=person) as client,
    ):
        await client.call_tool("search_tools", {"query": "void a payment"})
        called = await client.call_tool("call_tool", PAY)
        assert text(called) == "void"
    assert pay.calls == [("void_payment", {"number": 7, "dry_run": True}), ("void_payment", {"number": 7})]
    assert "1 payment would be void" in person.asked[0]


async def test_a_dry_run_that_fails_ends_the_call(tmp_path: Path, policy: Path) -> None:
    pay, person = payments("Error: no such payment"), Person("accept")
    async with (
        door_before(tmp_path, policy=policy, upstream=DRY, pay=pay) as running,
        running.client(elicitation_callback=person) as client,
    ):
        await client.call_tool("search_tools", {"query": "void a payment"})
        assert (await client.call_tool("call_tool", PAY)).is_error
    assert pay.calls == [("void_payment", {"number": 7, "dry_run": True})]
    assert person.asked == []


async def test_a_tool_that_cannot_run_dry_is_not_called(tmp_path: Path, policy: Path) -> None:
    pay = payments()
    async with door_before(tmp_path, policy=policy, pay=pay) as running, running.client() as client:
        await client.call_tool("search_tools", {"query": "void a payment"})
        called = await client.call_tool("call_tool", PAY)
        assert called.structured_content["verdict"] == "dry_run"
    assert pay.calls == []

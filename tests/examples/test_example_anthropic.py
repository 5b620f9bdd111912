"""The Anthropic example: tools found by a search of one's own, deferred and referred to, with a scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from anthropic.types import ToolParam, ToolReferenceBlockParam
from anthropic_messages import converse
from conversations import Service, Talk, tools_begin
from pydantic import TypeAdapter
from scripted_model import Json, Scripted, anthropic_model

FIND = ("orders__find", {"customer": "Ada"})
REFUND = ("orders__refund", {"order": "A-17", "amount": 40})
SEND = ("mail__send", {"to": "Ada", "text": "Your money is on its way."})


def search(query: str) -> tuple[str, Json]:
    return ("toolcrib__search_tools", {"query": query})


def told(model: Scripted) -> list[Json]:
    """The tool results that the model has got, in order."""
    messages = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "user"]
    return [block for content in messages if isinstance(content, list) for block in content]


def deferred(request: Json) -> list[str]:
    return [tool["name"] for tool in request["tools"] if tool.get("defer_loading")]


def whole_conversation(begun: Talk) -> Scripted:
    script: list[Any] = [
        [search("find the orders of a customer")],
        [FIND],
        "Two orders.",
        [search("refund an order"), FIND],
        [REFUND],
        "Done.",
        [search("send an email message")],
        [SEND],
        "Sent.",
    ]
    with anthropic_model(*script) as model:
        goals = ["find the orders of Ada", "refund order A-17", "now tell her"]
        assert list(converse(goals, begun.crib, model.post)) == ["Two orders.", "Done.", "Sent."]
    return model


def test_a_conversation_searches_finds_refunds_and_writes(service: Service, talk: Callable[..., Talk]) -> None:
    begun = talk("anthropic")
    model = whole_conversation(begun)
    assert begun.asked == ['orders.refund {"order": "A-17", "amount": 40} would refund 40.00 EUR of A-17']
    assert begun.desk.orders["A-17"]["refunded"] == 40
    assert begun.desk.sent == [("Ada", "Your money is on its way.")]
    assert [(trace.goal, trace.tool_id, trace.outcome) for trace in service.traces()] == [
        ("find the orders of a customer", "orders.find", "success"),
        ("refund an order", "orders.find", "success"),
        ("refund an order", "orders.refund", "success"),
        ("send an email message", "mail.send", "success"),
    ]
    assert not any(block["is_error"] for block in told(model))


@pytest.fixture(scope="module")
def spoken(talk: Callable[..., Talk]) -> Scripted:
    """The model after the whole conversation."""
    return whole_conversation(talk("anthropic"))


def test_the_loaded_tools_are_the_same_bytes_in_every_request(spoken: Scripted) -> None:
    loaded = [[tool for tool in request["tools"] if not tool.get("defer_loading")] for request in spoken.requests]
    assert [tool["name"] for tool in loaded[0]] == ["toolcrib__search_tools"]
    assert loaded[0][-1]["cache_control"] == {"type": "ephemeral"}
    assert all(tools == loaded[0] for tools in loaded)
    for place in range(len(spoken.raw) - 1):
        assert tools_begin(spoken.raw[place], spoken.raw[place + 1], spoken.requests[place]["tools"]), place


def test_a_search_answers_with_references_to_deferred_tools(spoken: Scripted) -> None:
    assert deferred(spoken.requests[0]) == []
    (found,) = spoken.requests[1]["messages"][-1]["content"]
    assert found["type"] == "tool_result"
    assert {block["type"] for block in found["content"]} == {"tool_reference"}
    assert [block["tool_name"] for block in found["content"]] == deferred(spoken.requests[1])
    assert "orders__find" in deferred(spoken.requests[1])
    for before, after in zip(spoken.requests, spoken.requests[1:], strict=False):
        assert deferred(after)[: len(deferred(before))] == deferred(before), "what was found stays, in its place"


def test_what_is_sent_fits_the_vendors_own_types(spoken: Scripted) -> None:
    for request in spoken.requests:
        TypeAdapter(list[ToolParam]).validate_python(request["tools"], strict=True)
    references = [
        block for result in told(spoken) if isinstance(result["content"], list) for block in result["content"]
    ]
    assert references
    TypeAdapter(list[ToolReferenceBlockParam]).validate_python(references, strict=True)


def test_wrong_arguments_come_back_as_an_error_with_their_paths(service: Service, talk: Callable[..., Talk]) -> None:
    begun = talk("anthropic")
    wrong = ("orders__refund", {"order": "17", "amount": "40"})
    with anthropic_model([search("refund an order")], [wrong], [REFUND], "Done.") as model:
        list(converse(["refund order A-17"], begun.crib, model.post))
    _, refused, done = told(model)
    assert refused["is_error"] is True
    assert {error["path"] for error in json.loads(refused["content"])["errors"]} == {"$.order", "$.amount"}
    assert (done["is_error"], done["content"]) == (False, "refunded 40.00 EUR of A-17")
    assert [trace.error_class for trace in service.traces()] == ["validation", "none"]


def test_a_call_that_a_person_refuses_is_not_made(talk: Callable[..., Talk]) -> None:
    begun = talk("anthropic", agrees=False)
    with anthropic_model([search("refund an order")], [REFUND], "It was refused.") as model:
        list(converse(["refund order A-17"], begun.crib, model.post))
    assert told(model)[1]["is_error"] is True
    assert json.loads(told(model)[1]["content"])["verdict"] == "deny"
    assert begun.desk.orders["A-17"]["refunded"] == 0


def test_a_search_that_finds_nothing_is_answered_in_words(talk: Callable[..., Talk]) -> None:
    with anthropic_model([search("zzz qqq")], "I cannot.") as model:
        list(converse(["sing"], talk("anthropic").crib, model.post))
    (answer,) = told(model)
    assert isinstance(answer["content"], str)
    assert answer["content"]
    assert deferred(model.requests[1]) == []


def test_a_tool_that_was_never_found_is_refused_by_the_gate(talk: Callable[..., Talk]) -> None:
    with anthropic_model([("no_such_tool", {})], "Sorry.") as model:
        list(converse(["sing"], talk("anthropic").crib, model.post))
    (answer,) = told(model)
    assert answer["is_error"] is True
    assert json.loads(answer["content"])["verdict"] == "deny"

"""The examples on Chat Completions, plain and as a graph: from the menu to the traces, with a scripted model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence

import langgraph_agent
import openai_chat
import pytest
from conversations import Service, Talk, tools_begin
from crib import Crib
from openai.types.chat import ChatCompletionFunctionToolParam
from pydantic import TypeAdapter
from scripted_model import Json, Scripted, openai_model

FIND = ("orders__find", {"customer": "Ada"})
REFUND = ("orders__refund", {"order": "A-17", "amount": 40})
SEARCH = ("toolcrib__search_tools", {"query": "send an email message to a customer"})
SEND = ("mail__send", {"to": "Ada", "text": "Your money is on its way."})
GOALS = ["find the orders of Ada", "refund order A-17", "now tell her"]

Converse = Callable[[Sequence[str], Crib, Callable[[Json], Json]], Iterator[str]]


@pytest.fixture(params=[openai_chat.converse, langgraph_agent.converse], ids=["plain", "graph"])
def converse(request: pytest.FixtureRequest) -> Converse:
    wiring: Converse = request.param
    return wiring


def names(request: Json) -> list[str]:
    return [tool["function"]["name"] for tool in request["tools"]]


def told(model: Scripted) -> list[str]:
    """What the model has got in answer to its calls, in order."""
    return [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]


def test_a_conversation_finds_refunds_and_searches_for_what_its_menu_lacks(
    converse: Converse, service: Service, talk: Callable[..., Talk]
) -> None:
    begun = talk("openai")
    with openai_model([FIND], "Two orders.", [REFUND], "Done.", [SEARCH], [SEND], "Sent.") as model:
        assert list(converse(GOALS, begun.crib, model.post)) == ["Two orders.", "Done.", "Sent."]
    assert "mail__send" not in names(model.requests[4])
    assert names(model.requests[5])[-1] == "mail__send", "what a search finds comes after what was there"
    assert begun.asked == ['orders.refund {"order": "A-17", "amount": 40} would refund 40.00 EUR of A-17']
    assert begun.desk.orders["A-17"]["refunded"] == 40
    assert begun.desk.sent == [("Ada", "Your money is on its way.")]
    found = service.traces()
    assert [(trace.tool_id, trace.outcome) for trace in found] == [
        ("orders.find", "success"),
        ("orders.refund", "success"),
        ("mail.send", "success"),
    ]
    assert len({trace.trace_id for trace in found}) == 1
    assert found[2].goal == "send an email message to a customer", "the trace is of the search that found the tool"


def test_what_a_provider_caches_is_the_same_bytes_from_request_to_request(
    converse: Converse, talk: Callable[..., Talk]
) -> None:
    begun = talk("openai")
    with openai_model([FIND], "Two.", [REFUND], "Done.", [SEARCH], [SEND], "Sent.") as model:
        list(converse(GOALS, begun.crib, model.post))
    for place in (0, 2, 4, 5):  # each followed by a request of the same turn
        assert tools_begin(model.raw[place], model.raw[place + 1], model.requests[place]["tools"]), place
    # from one turn of the user's to the next: the search tool first, then what was used, in the order of its first use
    assert names(model.requests[2])[:2] == ["toolcrib__search_tools", "orders__find"]
    assert names(model.requests[4])[:3] == ["toolcrib__search_tools", "orders__find", "orders__refund"]
    assert tools_begin(model.raw[0], model.raw[2], model.requests[0]["tools"][:1])
    assert tools_begin(model.raw[2], model.raw[4], model.requests[2]["tools"][:2])
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        assert after["messages"][: len(before["messages"])] == before["messages"], "what was said stays as it was"


def test_what_is_sent_fits_the_vendors_own_types(converse: Converse, talk: Callable[..., Talk]) -> None:
    begun = talk("openai")
    with openai_model("Ready.") as model:
        list(converse(["find the orders of Ada"], begun.crib, model.post))
    (request,) = model.requests
    TypeAdapter(list[ChatCompletionFunctionToolParam]).validate_python(request["tools"], strict=True)
    sent = {tool["function"]["name"]: tool["function"] for tool in request["tools"]}
    customer = sent["orders__find"]["parameters"]["properties"]["customer"]
    assert customer["description"] == "the customer's name", "the whole schema is sent"


def test_wrong_arguments_come_back_with_their_paths_and_the_repaired_call_goes(
    converse: Converse, service: Service, talk: Callable[..., Talk]
) -> None:
    begun = talk("openai")
    wrong = ("orders__refund", {"order": "17", "amount": -1})
    with openai_model([wrong], [REFUND], "Done.") as model:
        list(converse(["refund order A-17"], begun.crib, model.post))
    refused, done = told(model)
    said = json.loads(refused)
    assert said["verdict"] == "invalid"
    assert {error["path"] for error in said["errors"]} == {"$.order", "$.amount"}
    assert done == "refunded 40.00 EUR of A-17"
    assert [(trace.outcome, trace.error_class) for trace in service.traces()] == [
        ("failure", "validation"),
        ("success", "none"),
    ]


def test_a_call_that_a_person_refuses_is_not_made(
    converse: Converse, service: Service, talk: Callable[..., Talk]
) -> None:
    begun = talk("openai", agrees=False)
    with openai_model([REFUND], "It was refused.") as model:
        list(converse(["refund order A-17"], begun.crib, model.post))
    assert json.loads(told(model)[0])["verdict"] == "deny"
    assert begun.desk.orders["A-17"]["refunded"] == 0
    assert [(trace.outcome, trace.error_class) for trace in service.traces()] == [("failure", "auth")]


def test_a_dry_run_that_fails_reaches_the_model_and_no_person(talk: Callable[..., Talk]) -> None:
    begun = talk("openai")
    with openai_model([("orders__refund", {"order": "A-17", "amount": 900})], "Too much.") as model:
        list(openai_chat.converse(["refund order A-17"], begun.crib, model.post))
    assert told(model) == ["at most 40.00 EUR of A-17 can be refunded"]
    assert begun.asked == []


@pytest.mark.parametrize("arguments", ["{", "[1]", "null"])
def test_arguments_that_are_no_object_are_sent_back(arguments: str, talk: Callable[..., Talk]) -> None:
    begun = talk("openai")
    with openai_model([("orders__find", arguments)], [FIND], "Two.") as model:
        list(openai_chat.converse(["find the orders of Ada"], begun.crib, model.post))
    assert told(model)[0].startswith("not called")
    assert "A-17" in told(model)[1]


def test_a_tool_that_was_never_shown_is_refused_with_those_at_hand(talk: Callable[..., Talk]) -> None:
    begun = talk("openai")
    with openai_model([("no_such_tool", {})], "Sorry.") as model:
        list(openai_chat.converse(["find the orders of Ada"], begun.crib, model.post))
    said = json.loads(told(model)[0])
    assert said["verdict"] == "deny"
    assert set(said["available"]) == set(names(model.requests[0])), "by the names that the model knows"


@pytest.mark.parametrize(("query", "said"), [("", "$.query"), ("   ", "the goal is empty"), (7, "$.query")])
def test_a_search_for_nothing_is_sent_back_too(query: object, said: str, talk: Callable[..., Talk]) -> None:
    begun = talk("openai")
    with openai_model([("toolcrib__search_tools", {"query": query})], "Sorry.") as model:
        list(openai_chat.converse(["find the orders of Ada"], begun.crib, model.post))
    assert said in told(model)[0]
    assert names(model.requests[1]) == names(model.requests[0])


def test_several_calls_of_one_reply_are_all_answered(converse: Converse, talk: Callable[..., Talk]) -> None:
    begun = talk("openai")
    with openai_model([SEARCH, FIND, ("stock__level", {"article": "lamp"})], "Seen.") as model:
        assert list(converse(["find the orders of Ada, and lamps in stock"], begun.crib, model.post)) == ["Seen."]
    assert len(told(model)) == 3
    assert "7" in told(model)


@pytest.mark.parametrize(("error", "kind"), [(TimeoutError("late"), "timeout"), (OSError("broken"), "tool_error")])
def test_a_tool_that_fails_tells_the_model_and_the_traces(
    error: Exception, kind: str, service: Service, talk: Callable[..., Talk]
) -> None:
    def fails(customer: str) -> None:
        raise error

    begun = talk("openai", **{"orders.find": fails})
    with openai_model([FIND], "It does not work.") as model:
        list(openai_chat.converse(["find the orders of Ada"], begun.crib, model.post))
    assert told(model) == [str(error)]
    assert [(trace.outcome, trace.error_class) for trace in service.traces()] == [("failure", kind)]


def test_a_graph_without_its_library_says_what_to_install(
    talk: Callable[..., Talk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "langgraph.graph", None)
    with pytest.raises(SystemExit, match="pip install langgraph"):
        langgraph_agent.graph(talk("openai").crib, lambda body: body)

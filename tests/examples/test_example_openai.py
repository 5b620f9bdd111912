"""The OpenAI example: a conversation with a scripted model and a real service, from the menu to the traces."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from conversations import Service, Talk
from openai.types.chat import ChatCompletion
from openai_chat import converse
from scripted_model import Json, Scripted, openai_model

FIND = ("orders__find", {"customer": "Ada"})
REFUND = ("orders__refund", {"order": "A-17", "amount": 40})
SEARCH = ("toolcrib__search_tools", {"query": "send an email message to a customer"})
SEND = ("mail__send", {"to": "Ada", "text": "Your money is on its way."})


def names(request: Json) -> list[str]:
    return [tool["function"]["name"] for tool in request["tools"]]


def last_told(model: Scripted) -> str:
    """What the model last got in answer to a call."""
    told = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]
    return str(told[-1])


def tools_bytes(request: Json) -> bytes:
    """The tools as they stand at the beginning of the request, without the bracket that closes them."""
    return json.dumps(request["tools"], separators=(",", ":"), ensure_ascii=False).encode()[:-1]


def test_a_conversation_finds_refunds_and_searches_for_what_its_menu_lacks(
    service: Service, talk: Callable[..., Talk]
) -> None:
    begun = talk("openai")
    with openai_model([FIND], "Two orders.", [REFUND], "Done.", [SEARCH], [SEND], "Sent.") as model:
        answers = list(
            converse(["find the orders of Ada", "refund order A-17", "now tell her"], begun.crib, model.post)
        )
    assert answers == ["Two orders.", "Done.", "Sent."]
    assert begun.desk.orders["A-17"]["refunded"] == 40
    assert begun.desk.sent == [("Ada", "Your money is on its way.")]
    assert [(trace.tool_id, trace.outcome) for trace in service.traces()] == [
        ("orders.find", "success"),
        ("orders.refund", "success"),
        ("mail.send", "success"),
    ]

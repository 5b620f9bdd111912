"""The stand-in models: what they answer is what the vendors' clients read, and what the vendors refuse they refuse."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message
from openai.types.chat import ChatCompletion
from scripted_model import Json, anthropic_model, openai_model

CALL = [("orders__find", {"customer": "Ada"})]
FUNCTION = {"name": "orders__find", "description": "", "parameters": {"type": "object", "properties": {}}}
OPENAI = {"tools": [{"type": "function", "function": FUNCTION}]}
LOADED = {"name": "search", "input_schema": {"type": "object"}}
DEFERRED = {"name": "orders__find", "input_schema": {"type": "object"}, "defer_loading": True}
ANTHROPIC: Json = {"max_tokens": 9, "tools": [LOADED, DEFERRED], "messages": [{"role": "user", "content": "hello"}]}


def found(name: str, answers: str = "toolu_1") -> list[Json]:
    reference = {"type": "tool_reference", "tool_name": name}
    return [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "search", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": answers, "content": [reference]}]},
    ]


@pytest.mark.parametrize("move", ["hello", CALL])
def test_the_vendors_clients_read_the_answers(move: Any) -> None:
    with openai_model(move) as model:
        completion = ChatCompletion.model_validate(model.post({**OPENAI, "messages": []}))
    assert (completion.choices[0].finish_reason == "tool_calls") == (move == CALL)
    with anthropic_model(move) as model:
        message = Message.model_validate(model.post({**ANTHROPIC, "messages": found("orders__find")}))
    assert (message.stop_reason == "tool_use") == (move == CALL)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tools": [DEFERRED]}, "must be non-deferred"),
        ({"tools": [LOADED, LOADED]}, "must be unique"),
        ({"tools": [LOADED, DEFERRED | {"cache_control": {}}]}, "cache_control"),
        ({"messages": found("mail__send")}, "'mail__send' has no corresponding tool definition"),
        ({"messages": found("orders__find", "toolu_9")}, "must have its tool_result"),
        ({"messages": found("orders__find")[1:]}, "roles must alternate"),
        ({"max_tokens": None}, "max_tokens"),
    ],
)
def test_a_request_that_anthropic_would_refuse_is_refused(change: Json, said: str) -> None:
    with anthropic_model("hello") as model, pytest.raises(AssertionError, match=said):
        model.post(ANTHROPIC | change)


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([{"role": "tool", "tool_call_id": "x", "content": ""}], "must follow"),
        ([{"role": "assistant", "tool_calls": [{"id": "x"}]}], "have no response"),
        ([{"role": "assistant", "tool_calls": [{"id": "x"}]}, {"role": "user", "content": ""}], "have no response"),
    ],
)
def test_a_request_that_openai_would_refuse_is_refused(messages: list[Json], said: str) -> None:
    with openai_model("hello") as model, pytest.raises(AssertionError, match=said):
        model.post({**OPENAI, "messages": messages})

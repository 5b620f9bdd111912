"""OpenAI tools: an agent on any endpoint that speaks Chat Completions, with its tools from a toolcrib service.

    toolcrib serve --bundle none --catalog examples/service_desk.jsonl --dev
    OPENAI_API_KEY=... OPENAI_MODEL=... python examples/openai_chat.py "refund order A-17, it cost 40 EUR"

OPENAI_BASE_URL points elsewhere. Several arguments are several turns of one conversation.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx
from crib import Crib, Menu
from service_desk import conversation

SYSTEM = "You help at a service desk. Use the tools; search for others if none of them does the next step."
MAX_STEPS = 12

Json = dict[str, Any]


def converse(goals: Sequence[str], crib: Crib, complete: Callable[[Json], Json]) -> Iterator[str]:
    """The model's answer to each of the user's turns. `complete` posts a body to `chat/completions`."""
    messages: list[Json] = [{"role": "system", "content": SYSTEM}]
    stable: list[Json] = []
    for goal in goals:
        messages.append({"role": "user", "content": goal})
        menu = crib.menu(messages=said_by_people(messages), caller={"used_tools": crib.used})
        # Providers cache a request from its first byte on, tools before messages. So: first what stays for the whole
        # conversation, which only ever grows at its end, then this turn's tools, then what the model searches for.
        stable = with_new(stable, menu["rendered"]["prefix"])
        tools = with_new(stable, menu["rendered"]["turn"])
        for _ in range(MAX_STEPS):
            reply = complete({"tools": tools, "messages": messages})["choices"][0]["message"]
            messages.append(reply)
            if not reply.get("tool_calls"):
                yield reply["content"]
                break
            for call in reply["tool_calls"]:
                result = crib.call(call["function"]["name"], call["function"]["arguments"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result.text})
                tools = with_new(tools, found_in(result.menu))
        else:
            yield f"(stopped after {MAX_STEPS} steps)"


def with_new(tools: list[Json], more: list[Json]) -> list[Json]:
    """`tools`, and at the end those of `more` whose name is new: nothing that was sent before moves or changes."""
    known = {tool["function"]["name"] for tool in tools}
    return [*tools, *(tool for tool in more if tool["function"]["name"] not in known)]


def found_in(menu: Menu | None) -> list[Json]:
    """All tools of a menu that a search brought."""
    return [] if menu is None else [*menu["rendered"]["prefix"], *menu["rendered"]["turn"]]


def said_by_people(messages: Sequence[Json]) -> list[Json]:
    """What user and assistant said last, for the menu: a bare "yes, do it" takes its meaning from it."""
    spoken = [one for one in messages if one["role"] in ("user", "assistant") and one.get("content")]
    return [{"role": one["role"], "content": one["content"]} for one in spoken[-6:]]


def at_terminal(converse: Callable[[Sequence[str], Crib, Callable[[Json], Json]], Iterator[str]]) -> None:
    """Run a conversation of what the command line says with the model that the environment names."""
    base_url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/") + "/"
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    with httpx.Client(base_url=base_url, headers=headers, timeout=120) as model, conversation("openai") as crib:

        def complete(body: Json) -> Json:
            answer = model.post("chat/completions", json={"model": os.environ["OPENAI_MODEL"], **body})
            completion: Json = answer.raise_for_status().json()
            return completion

        for text in converse(sys.argv[1:] or ["what has Ada ordered?"], crib, complete):
            print(text)


if __name__ == "__main__":
    at_terminal(converse)

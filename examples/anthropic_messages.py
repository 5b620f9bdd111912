"""Anthropic Messages: a tool search of one's own that answers with `tool_reference` blocks, from a toolcrib service.

    toolcrib serve --bundle none --catalog examples/service_desk.jsonl --dev
    ANTHROPIC_API_KEY=... ANTHROPIC_MODEL=... python examples/anthropic_messages.py "refund order A-17, it cost 40 EUR"

ANTHROPIC_BASE_URL points elsewhere. Several arguments are several turns of one conversation.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx
from crib import Crib, Result
from service_desk import conversation

SYSTEM = "You help at a service desk. Search for the tools that a step needs, then use them."
MAX_STEPS = 12
MAX_TOKENS = 2048

Json = dict[str, Any]


def converse(goals: Sequence[str], crib: Crib, create: Callable[[Json], Json]) -> Iterator[str]:
    """The model's answer to each of the user's turns. `create` posts a body to `v1/messages`."""
    messages: list[Json] = []
    tools: list[Json] = []
    for goal in goals:
        messages.append({"role": "user", "content": goal})
        # The search tool and the catalog's core tools, with the cache breakpoint on the last. It stays as it is for the
        # whole conversation: what is found later is deferred, and takes effect where the history refers to it.
        tools = tools or crib.menu(goal=goal)["rendered"]["prefix"]
        for _ in range(MAX_STEPS):
            reply = create({"max_tokens": MAX_TOKENS, "system": SYSTEM, "tools": tools, "messages": messages})
            messages.append({"role": "assistant", "content": reply["content"]})
            calls = [block for block in reply["content"] if block["type"] == "tool_use"]
            if not calls:
                yield "".join(block["text"] for block in reply["content"] if block["type"] == "text")
                break
            results = []
            for call in calls:
                result = crib.call(call["name"], call["input"])
                tools = with_found(tools, result)
                results.append({"type": "tool_result", "tool_use_id": call["id"], **told(result)})
            messages.append({"role": "user", "content": results})
        else:
            yield f"(stopped after {MAX_STEPS} steps)"


def told(result: Result) -> Json:
    """The content of a `tool_result`: references to the tools that a search found, else words."""
    references = [] if result.menu is None else result.menu["rendered"]["turn"]["content"]
    return {"content": references or result.text, "is_error": result.error}


def with_found(tools: list[Json], result: Result) -> list[Json]:
    """`tools`, and at the end the definitions that a search brought, deferred. None is ever taken out: the history
    refers to them, and the API refuses a reference to a tool that the request does not define."""
    known = {tool["name"] for tool in tools}
    found = [] if result.menu is None else result.menu["rendered"]["turn"]["tools"]
    return [*tools, *(tool for tool in found if tool["name"] not in known)]


def main() -> None:
    base_url = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com").rstrip("/") + "/"
    headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"}
    with (
        httpx.Client(base_url=base_url, headers=headers, timeout=120) as model,
        conversation("anthropic") as crib,
    ):

        def create(body: Json) -> Json:
            answer = model.post("v1/messages", json={"model": os.environ["ANTHROPIC_MODEL"], **body})
            message: Json = answer.raise_for_status().json()
            return message

        for answer in converse(sys.argv[1:] or ["what has Ada ordered?"], crib, create):
            print(answer)


if __name__ == "__main__":
    main()

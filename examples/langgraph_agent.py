"""LangGraph: a graph with a node that retrieves tools, as users of langgraph-bigtool have, from a toolcrib service.

    pip install langgraph
    toolcrib serve --bundle none --catalog examples/service_desk.jsonl --dev
    OPENAI_API_KEY=... OPENAI_MODEL=... python examples/langgraph_agent.py "refund order A-17, it cost 40 EUR"

The nodes are plain functions on plain messages. With a chat model of LangChain, bind `state["tools"]` to it instead.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, TypedDict

from crib import SEARCH, Crib
from openai_chat import MAX_STEPS, SYSTEM, at_terminal, found_in, said_by_people, with_new

Json = dict[str, Any]


class State(TypedDict):
    """`stable`: the tools that stay for the whole conversation. `tools`: these, then those of this turn."""

    messages: Annotated[list[Json], operator.add]
    stable: list[Json]
    tools: list[Json]


def graph(crib: Crib, complete: Callable[[Json], Json]) -> Any:
    """The compiled graph: retrieve -> agent -> (call | retrieve) -> agent -> ... -> end."""
    try:
        from langgraph.graph import END, START, StateGraph  # noqa: PLC0415 (to say what is missing, and how to get it)
    except ImportError as error:
        raise SystemExit("this example needs LangGraph: pip install langgraph") from error

    def retrieve(state: State) -> Json:
        """Tools for what the user said; or, where the model searches, for its query, beside those that it has."""
        searches = [call for call in open_calls(state) if is_search(call)]
        if not searches:
            menu = crib.menu(messages=said_by_people(state["messages"]), caller={"used_tools": crib.used})
            stable = with_new(state["stable"], menu["rendered"]["prefix"])
            return {"stable": stable, "tools": with_new(stable, menu["rendered"]["turn"])}
        tools, answers = state["tools"], []
        for search in searches:
            result = crib.call(SEARCH, search["function"]["arguments"])
            tools = with_new(tools, found_in(result.menu))
            answers.append(answer(search, result.text))
        return {"tools": tools, "messages": answers}

    def agent(state: State) -> Json:
        body = {"tools": state["tools"], "messages": [{"role": "system", "content": SYSTEM}, *state["messages"]]}
        return {"messages": [complete(body)["choices"][0]["message"]]}

    def call(state: State) -> Json:
        """Each call goes through the gate; what it says instead of a result is the model's to read."""
        made = [one for one in open_calls(state) if not is_search(one)]
        given = [(one, crib.call(one["function"]["name"], one["function"]["arguments"])) for one in made]
        return {"messages": [answer(one, result.text) for one, result in given]}

    built = StateGraph(State)
    nodes = {"retrieve": retrieve, "agent": agent, "call": call}
    for name, node in nodes.items():
        built.add_node(name, node)
        built.add_conditional_edges(name, following, {**{other: other for other in nodes}, "end": END})
    built.add_edge(START, "retrieve")
    return built.compile()


def following(state: State) -> str:
    """The node that comes next: calls first, then searches, then the model, until it calls nothing."""
    waiting = open_calls(state)
    if waiting:
        return "retrieve" if all(map(is_search, waiting)) else "call"
    return "end" if state["messages"][-1]["role"] == "assistant" else "agent"


def open_calls(state: State) -> list[Json]:
    """The model's calls that nothing has answered yet."""
    answered = {message["tool_call_id"] for message in state["messages"] if message["role"] == "tool"}
    calls = [call for message in state["messages"] for call in message.get("tool_calls") or ()]
    return [call for call in calls if call["id"] not in answered]


def is_search(call: Json) -> bool:
    return bool(call["function"]["name"] == SEARCH)


def answer(call: Json, text: str) -> Json:
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def converse(goals: Sequence[str], crib: Crib, complete: Callable[[Json], Json]) -> Iterator[str]:
    """The model's answer to each of the user's turns."""
    runs = graph(crib, complete)
    state: State = {"messages": [], "stable": [], "tools": []}
    for goal in goals:
        asked: State = {**state, "messages": [*state["messages"], {"role": "user", "content": goal}]}
        state = runs.invoke(asked, {"recursion_limit": 2 * MAX_STEPS})
        yield state["messages"][-1]["content"]


if __name__ == "__main__":
    at_terminal(converse)

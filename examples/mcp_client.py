"""An agent that has one MCP server, toolcrib, and reaches all others through it.

    pip install 'toolcrib[mcp]'
    python examples/mcp_client.py

It runs offline. The model is a script that stands where yours would: it is given the listed tools and the conversation,
and answers with the next call or with its last words. The server behind the door is this file too (`--server`).
"""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.client import Client
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import StdioServerParameters
from mcp.server.mcpserver import MCPServer

from data.cards import Trust
from data.importers.live import Server, read_live
from data.importers.terms import Terms
from data.jsonl import save_catalog

TASK = "Will it rain in Oslo tomorrow? If so, remind me to take an umbrella."


@dataclass
class Call:
    """The model wants a tool called."""

    tool: str
    arguments: dict[str, Any]


def model(tools: list[types.Tool], results: list[str]) -> Call | str:
    """Stands in for a model: the next call, or the last words. What it calls, it has read in the results before."""
    assert {"search_tools", "call_tool"} <= {tool.name for tool in tools}
    steps = len(results)
    if steps == 0:
        return Call("search_tools", {"query": "get the weather forecast for a city", "mutation": False})
    if steps == 1:
        return Call("call_tool", {"tool": first_tool(results[0]), "arguments": {"city": "Oslo"}})
    if steps == 2 and "rain" in results[1]:
        return Call("search_tools", {"query": "add a reminder for the user", "mutation": True})
    if steps == 3:
        arguments = {"text": "Take an umbrella"}
        return Call("call_tool", {"tool": first_tool(results[2]), "arguments": arguments})
    return f"It will rain in Oslo tomorrow. {results[-1]}"


def first_tool(menu: str) -> str:
    """The first tool that a search gave."""
    found = re.search(r"^(\S+) \(", menu, re.MULTILINE)
    assert found is not None, menu
    return found[1]


async def run_agent(door: StdioServerParameters) -> str:
    """The loop that every agent has: list the tools, ask the model, make its calls, until it has no more."""
    async with Client(door, elicitation_callback=ask_user) as client:
        tools = (await client.list_tools()).tools
        results: list[str] = []
        while True:
            wanted = model(tools, results)
            if isinstance(wanted, str):
                return wanted
            called = await client.call_tool(wanted.tool, wanted.arguments)
            results.append("\n".join(block.text for block in called.content if isinstance(block, types.TextContent)))
            print(f"> {wanted.tool} {wanted.arguments}\n{results[-1]}\n")


async def ask_user(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
    """A call that writes is put before the user; here they say yes."""
    print(f"? {params.message}\n  yes\n")
    return types.ElicitResult(action="accept", content={"approve": True})


def set_up(folder: Path) -> StdioServerParameters:
    """What an operator does once: import and approve the server's tools, name the server, say what is to be asked."""
    command = (sys.executable, str(Path(__file__).resolve()), "--server")
    catalog, _ = read_live(Server(command=command), Terms(server="desk", trust=Trust.TRUSTED))
    save_catalog(folder / "catalog.jsonl", catalog)
    (folder / "upstreams.yaml").write_text(
        f"upstreams:\n  desk:\n    command: [{', '.join(map(repr, command))}]\n    trust: trusted\n"
    )
    (folder / "policy.yaml").write_text(
        "rules:\n"
        "  - {name: reads, verdict: allow, when: {risk: read_only}}\n"
        "  - {name: writes_are_asked, verdict: confirm}\n"
    )
    arguments = ["-m", "toolcrib", "mcp", "--bundle", "none"]
    for name, file in (("catalog", "catalog.jsonl"), ("upstreams", "upstreams.yaml"), ("policy", "policy.yaml")):
        arguments += [f"--{name}", str(folder / file)]
    return StdioServerParameters(command=sys.executable, args=arguments, cwd=folder)


def serve_desk() -> None:
    """The server behind the door."""
    server = MCPServer("desk")

    @server.tool(annotations=types.ToolAnnotations(read_only_hint=True))
    def get_forecast(city: str) -> str:
        """Get the weather forecast of tomorrow for a city."""
        return f"{city}, tomorrow: rain, 11 degrees"

    @server.tool(annotations=types.ToolAnnotations(read_only_hint=False, destructive_hint=False))
    def add_reminder(text: str) -> str:
        """Add a reminder for the user."""
        return f"The reminder is set: {text}."

    server.run()


def main() -> None:
    if "--server" in sys.argv:
        serve_desk()
        return
    print(f"{TASK}\n")
    with tempfile.TemporaryDirectory() as folder:
        print(anyio.run(run_agent, set_up(Path(folder))))


if __name__ == "__main__":
    main()

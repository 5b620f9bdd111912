"""Stand-ins for models: local servers that speak a vendor's protocol, refuse what the vendor would, and play a script.

A script is a list of moves: a text is said, a list of `(name, arguments)` is called. What a request got wrong is the
vendor's 400, as the documentation words it, so that a wiring which breaks the protocol cannot come to its end.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

Move = str | list[tuple[str, Any]]
Json = dict[str, Any]

_CLIENT = httpx.Client(timeout=30)


class BadRequestError(Exception):
    """What the vendor answers with status 400."""


@dataclass
class Scripted:
    """A model that plays `script`; `requests` are the bodies it got, `raw` their bytes."""

    script: list[Move]
    path: str
    headers: tuple[str, ...]
    reply: Callable[[Json, Move, int], Json]
    requests: list[Json] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    url: str = ""

    def answer(self, path: str, headers: Any, body: bytes) -> Json:
        if path != self.path:
            raise BadRequestError(f"nothing under {path}")
        missing = [name for name in self.headers if name not in headers]
        if missing:
            raise BadRequestError(f"headers: {missing} required")
        request: Json = json.loads(body)
        self.requests.append(request)
        self.raw.append(body)
        if len(self.requests) > len(self.script):
            raise BadRequestError("the script has come to its end")
        return self.reply(request, self.script[len(self.requests) - 1], len(self.requests))

    def post(self, body: Json) -> Json:
        """As the examples post: the answer, or an error that says what the vendor would."""
        headers = dict.fromkeys(self.headers, "test")
        answer = _CLIENT.post(self.url + self.path, json={"model": "scripted", **body}, headers=headers)
        assert answer.status_code == 200, answer.text
        read: Json = answer.json()
        return read


@contextmanager
def openai_model(*script: Move) -> Iterator[Scripted]:
    """Chat Completions under `/v1/chat/completions`."""
    with _served(Scripted(list(script), "/v1/chat/completions", ("authorization",), _completion)) as model:
        yield model


@contextmanager
def anthropic_model(*script: Move) -> Iterator[Scripted]:
    """Messages under `/v1/messages`."""
    with _served(Scripted(list(script), "/v1/messages", ("x-api-key", "anthropic-version"), _message)) as model:
        yield model


@contextmanager
def _served(model: Scripted) -> Iterator[Scripted]:
    class Handler(BaseHTTPRequestHandler):
        wbufsize = -1  # head and body in one packet: the second of two would wait for the first to be acknowledged

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            try:
                status, answer = 200, model.answer(self.path, self.headers, body)
            except BadRequestError as error:
                status, answer = (
                    400,
                    {"type": "error", "error": {"type": "invalid_request_error", "message": str(error)}},
                )
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Say nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _completion(request: Json, move: Move, turn: int) -> Json:
    names = [_function(tool)["name"] for tool in request.get("tools", [])]
    _unique(names)
    _tool_messages_answer_calls(request["messages"])
    message: Json = {"role": "assistant", "content": move if isinstance(move, str) else None}
    if not isinstance(move, str):
        message["tool_calls"] = [
            {
                "id": f"call_{turn}_{place}",
                "type": "function",
                "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
            }
            for place, (name, given) in enumerate(move)
        ]
    reason = "stop" if isinstance(move, str) else "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    return {"id": f"c{turn}", "object": "chat.completion", "created": 0, "model": request["model"], "choices": [choice]}


def _function(tool: Json) -> Json:
    if tool.get("type") != "function" or set(tool["function"]) - {"name", "description", "parameters", "strict"}:
        raise BadRequestError("tools: not a function")
    function: Json = tool["function"]
    if function["parameters"].get("type") != "object" or len(function["description"]) > 1024:
        raise BadRequestError(f"tools: '{function['name']}' is not described as it must be")
    return function


def _tool_messages_answer_calls(messages: list[Json]) -> None:
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                raise BadRequestError("messages: a tool message must follow the tool_calls that it answers")
            if not isinstance(message["content"], str):
                raise BadRequestError("messages: the content of a tool message is text")
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            raise BadRequestError(f"messages: tool_call_ids {sorted(waiting)} have no response")
        waiting = {call["id"] for call in message.get("tool_calls") or ()}
    if waiting:
        raise BadRequestError(f"messages: tool_call_ids {sorted(waiting)} have no response")


def _message(request: Json, move: Move, turn: int) -> Json:
    if not isinstance(request.get("max_tokens"), int):
        raise BadRequestError("max_tokens: required")
    tools: list[Json] = request["tools"]
    _unique([tool["name"] for tool in tools])
    if all(tool.get("defer_loading") for tool in tools):
        raise BadRequestError("All tools have defer_loading set. At least one tool must be non-deferred.")
    if any(tool.get("defer_loading") and "cache_control" in tool for tool in tools):
        raise BadRequestError("tools: a deferred tool cannot have cache_control")
    loaded = {tool["name"] for tool in tools if not tool.get("defer_loading")} | _referenced(request)
    content: list[Json] = [{"type": "text", "text": move}] if isinstance(move, str) else []
    for place, (name, given) in enumerate(() if isinstance(move, str) else move):
        assert name in loaded or name.startswith("no_such"), f"the script calls '{name}', which the model cannot see"
        content.append({"type": "tool_use", "id": f"toolu_{turn}_{place}", "name": name, "input": given})
    return {
        "id": f"msg_{turn}",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": content,
        "stop_reason": "end_turn" if isinstance(move, str) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _referenced(request: Json) -> set[str]:
    """The deferred tools that the history has loaded; checks its tool results on the way."""
    deferred = {tool["name"] for tool in request["tools"] if tool.get("defer_loading")}
    loaded: set[str] = set()
    waiting: list[str] = []
    for place, message in enumerate(request["messages"]):
        if message["role"] != ("user", "assistant")[place % 2]:
            raise BadRequestError("messages: roles must alternate, and a user comes first")
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = [block for block in blocks if block["type"] == "tool_result"]
        if [block["tool_use_id"] for block in results] != waiting:
            raise BadRequestError("messages: each tool_use must have its tool_result in the next message")
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for block in results:
            for part in block["content"] if isinstance(block["content"], list) else ():
                if part["type"] == "tool_reference" and part["tool_name"] not in deferred:
                    raise BadRequestError(f"Tool reference '{part['tool_name']}' has no corresponding tool definition")
                loaded.add(part["tool_name"])
    return loaded


def _unique(names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise BadRequestError("tools: Tool names must be unique.")

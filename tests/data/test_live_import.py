"""A live MCP server as a source: its pages, its failures, and what is never told on."""

from __future__ import annotations

import contextlib
import http.server
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from data.cards import Risk, Trust
from data.errors import InputError
from data.importers import import_catalog
from data.importers.live import Server

# answers each method as the test says; speaks of before the probe for versions, as most servers do
SCRIPT = """
import json, os, sys
pages = json.loads(sys.argv[1])
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        info = {"name": "x", "title": "Mail of a team", "version": os.environ.get("TOKEN", "none")}
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    elif message["method"] == "tools/list":
        page = pages[int((message.get("params") or {}).get("cursor") or 0)]
        if page == "die":
            print("out of memory", file=sys.stderr)
            sys.exit(1)
        answer |= page
    else:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(answer), flush=True)
"""


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def started(*pages: Any, timeout: float = 20) -> Server:
    return Server(command=(sys.executable, "-c", SCRIPT, json.dumps(pages)), timeout_s=timeout)


def problem(server: Server) -> str:
    with pytest.raises(InputError) as caught:
        import_catalog(server, "mcp", domain="post")
    return str(caught.value).removeprefix(server.shown).lstrip(": ")


def test_a_server_that_is_met_says_what_it_is_for() -> None:
    (card,) = import_catalog(started({"result": {"tools": [tool("t")]}}), "mcp", domain="post")[0]
    assert card.server_description == "Mail of a team"


def test_every_page_is_asked_for(tmp_path: Path) -> None:
    pages = [{"result": {"tools": [tool(f"t{n}")], **({"nextCursor": str(n + 1)} if n < 2 else {})}} for n in range(3)]
    catalog, report = import_catalog(started(*pages), "mcp", domain="post", tenant="acme")
    assert catalog.ids == ("acme/post.t0", "acme/post.t1", "acme/post.t2")
    assert (report.read, report.imported, report.notes) == (3, 3, ())
    assert {card.tenants for card in catalog} == {("acme",)}


def test_hints_of_a_live_server_are_believed_only_where_it_is_trusted() -> None:
    pages = {"result": {"tools": [tool("get_mail", annotations={"readOnlyHint": True})]}}
    assert import_catalog(started(pages), "mcp", domain="p")[0]["p.get_mail"].risk is Risk.DESTRUCTIVE
    trusted = import_catalog(started(pages), "mcp", domain="p", trust=Trust.TRUSTED)[0]
    assert trusted["p.get_mail"].risk is Risk.READ_ONLY


def test_a_server_whose_pages_go_in_a_circle_is_left() -> None:
    pages = [{"result": {"tools": [tool(f"t{n}")], "nextCursor": str(1 - n)}} for n in range(2)]
    assert problem(started(*pages)).startswith("its list of tools does not end")


def test_a_server_that_dies_on_the_way_is_said_to_have_ended_and_what_it_said_last() -> None:
    pages = [{"result": {"tools": [tool("a")], "nextCursor": "1"}}, "die"]
    assert problem(started(*pages)) == "ended before it had listed its tools; it said: out of memory"


def test_a_server_that_answers_with_an_error_is_quoted_with_its_hidden_text_escaped() -> None:
    said = problem(started({"error": {"code": -32000, "message": "no\u202e token\nforged"}}))
    assert said == "cannot be asked for its tools: no\\u{202E} token forged"


@pytest.mark.parametrize("result", [{}, {"tools": [{"description": "x"}]}, {"tools": "many"}])
def test_an_answer_that_is_no_list_of_tools_is_refused(result: Any) -> None:
    assert "tools" in problem(started({"result": result}))


def test_two_tools_of_one_name_import_nothing_or_one_on_request() -> None:
    page = {"result": {"tools": [tool("a")] * 1_000}}
    assert "field '0.tools.1.name': 'post.a' was defined already" in problem(started(page))
    catalog, report = import_catalog(started(page), "mcp", domain="post", skip_bad=True)
    assert (len(catalog), report.skipped) == (1, {"not usable": 999})
    assert len(report.notes) == 5


def test_a_server_that_never_answers_is_left_after_its_time() -> None:
    server = Server(command=(sys.executable, "-c", "import sys; sys.stdin.read()"), timeout_s=0.3)
    assert problem(server).startswith("did not answer within 0.3 s")


def test_a_program_that_talks_of_something_else_is_no_server() -> None:
    chatter = "import sys\nfor _ in sys.stdin: print('<html>', flush=True)"
    server = Server(command=(sys.executable, "-c", chatter), timeout_s=1)
    assert problem(server).startswith("what it answers is not the protocol's JSON")


def test_a_command_that_is_not_there_cannot_be_started() -> None:
    assert problem(Server(command=("/nonexistent/server",))).startswith("cannot be started")


def test_a_started_server_sees_of_the_environment_only_what_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "outer")
    tells = SCRIPT.replace("answer |= page", "answer |= page; answer['result']['tools'][0]['name'] = info['version']")
    command = (sys.executable, "-c", tells, json.dumps([{"result": {"tools": [tool("x")]}}]))
    assert import_catalog(Server(command=command), "mcp", domain="p")[0].ids == ("p.none",)
    given = Server(command=command, environment={"TOKEN": "inner"})
    assert import_catalog(given, "mcp", domain="p")[0].ids == ("p.inner",)
    assert "inner" not in repr(given) + given.shown


@contextlib.contextmanager
def served(status: int, headers: list[dict[str, str]]) -> Iterator[str]:
    """A streamable HTTP server of one tool; notes the headers of each request."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            headers.append({name.lower(): value for name, value in self.headers.items()})
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message.get("id")}
            if message["method"] == "initialize":
                info = {"name": "x", "version": "1"}
                result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
                answer["result"] = result
            elif message["method"] == "tools/list":
                answer["result"] = {"tools": [tool("far")]}
            else:
                answer["error"] = {"code": -32601, "message": "Method not found"}
            body = json.dumps(answer).encode() if status == 200 else b"go away"
            self.send_response(status if "id" in message or status != 200 else 202)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_error(405)

        def do_DELETE(self) -> None:
            self.send_error(405)

        def log_message(self, *_: Any) -> None:
            """Nothing: the test reads the headers."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_server_at_an_address_is_asked_with_the_credentials_given() -> None:
    headers: list[dict[str, str]] = []
    with served(200, headers) as url:
        server = Server(url=url, headers={"Authorization": "Bearer abc"})
        assert import_catalog(server, "mcp")[0].ids == ("127.0.0.1.far",)
    assert {seen["authorization"] for seen in headers} == {"Bearer abc"}
    assert "abc" not in repr(server)


@pytest.mark.parametrize("status", [401, 404, 500])
def test_an_address_that_refuses_is_one_message_without_the_credentials(status: int) -> None:
    with served(status, []) as url:
        said = problem(Server(url=f"{url}?key=abc", headers={"Authorization": "Bearer abc"}, timeout_s=5))
    assert said
    assert "abc" not in said
    assert "\n" not in said


def test_an_address_where_nobody_listens_is_one_message() -> None:
    assert problem(Server(url="http://127.0.0.1:9/mcp", timeout_s=5)).startswith("cannot be asked for its tools")


@pytest.mark.parametrize(
    ("command", "shown", "name"),
    [
        (("/usr/bin/npx", "-y", "@acme/post-server", "--token", "abc"), "npx @acme/post-server", "post-server"),
        (("python", "-m", "post.server", "abc"), "python post.server", "post"),
        (("server", "--token", "abc"), "server", "server"),
        (("python", "-c", "abc"), "python", "python"),
    ],
)
def test_a_command_is_named_without_its_arguments(command: tuple[str, ...], shown: str, name: str) -> None:
    server = Server(command=command)
    assert (server.shown, server.name) == (shown, name)


def test_a_server_is_an_address_or_a_command_and_only_for_mcp() -> None:
    for both in ({}, {"url": "http://a", "command": ("b",)}, {"url": "ftp://a"}):
        with pytest.raises(InputError):
            Server(**both)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"a live server speaks mcp"):
        import_catalog(Server(url="http://a"), "openai")

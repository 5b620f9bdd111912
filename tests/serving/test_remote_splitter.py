"""The remote splitter against a stand-in endpoint on this machine: what it gives is used, what it cannot is said."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from data.context import Subgoal
from data.errors import InputError
from serving.remote_splitter import MAX_STEP_CHARACTERS, RemoteSplitter
from serving.several import subgoals_of
from serving.splitting import split

REQUEST = "find the sales report and email it to Ann"
RULES = split(REQUEST)
KEY = "TOOLCRIB_TEST_SPLITTER_KEY"


class Endpoint:
    """A chat-completions endpoint that answers with what `body`, `status` and `headers` say, or waits for `release`."""

    def __init__(self) -> None:
        self.status, self.body, self.headers = 200, b"", {"content-type": "application/json"}
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.release = threading.Event()
        self.release.set()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
                endpoint.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}, sent))
                endpoint.release.wait()
                try:
                    self.send_response(endpoint.status)
                    for name, value in endpoint.headers.items():
                        self.send_header(name, value)
                    self.send_header("content-length", str(len(endpoint.body)))
                    self.end_headers()
                    self.wfile.write(endpoint.body)
                except OSError:
                    return  # the client has gone

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def says(self, content: object) -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        self.body = json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()

    def close(self) -> None:
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.close()


@pytest.fixture
def splitter(endpoint: Endpoint) -> Iterator[RemoteSplitter]:
    made = RemoteSplitter(endpoint.url, "small-model")
    yield made
    made.close()


def test_the_steps_of_a_good_answer_are_used(endpoint: Endpoint, splitter: RemoteSplitter) -> None:
    endpoint.says({"steps": ["Find the sales report", "Email the\n sales report to Ann"]})
    found = splitter.split(REQUEST)
    assert found.steps == ("Find the sales report", "Email the sales report to Ann")
    assert found.degradation is None


def test_a_request_of_one_step_stays_as_it_was_written(endpoint: Endpoint, splitter: RemoteSplitter) -> None:
    endpoint.says({"steps": ["Grant everybody access"]})
    assert splitter.split(REQUEST).steps == (REQUEST,)


def test_it_asks_for_json_of_one_form_with_the_request_as_text_alone(
    endpoint: Endpoint, splitter: RemoteSplitter
) -> None:
    endpoint.says({"steps": ["a", "b"]})
    splitter.split(REQUEST)
    [(path, headers, sent)] = endpoint.asked
    assert path == "/v1/chat/completions"
    assert "authorization" not in headers
    assert sent["model"] == "small-model"
    assert sent["messages"][-1] == {"role": "user", "content": REQUEST}
    assert sent["response_format"]["type"] == "json_schema"
    assert sent["response_format"]["json_schema"]["schema"]["required"] == ["steps"]


def test_the_key_comes_from_the_environment_and_without_it_nothing_is_sent(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.says({"steps": ["a", "b"]})
    splitter = RemoteSplitter(endpoint.url, "m", key_variable=KEY)
    monkeypatch.setenv(KEY, "sk-1")
    assert splitter.split(REQUEST).steps == ("a", "b")
    assert endpoint.asked[0][1]["authorization"] == "Bearer sk-1"
    monkeypatch.delenv(KEY)
    for value in (None, "bad\nkey", "schlüssel"):
        if value is not None:
            monkeypatch.setenv(KEY, value)
        found = splitter.split(REQUEST)
        assert found.steps == RULES
        assert found.degradation is not None
        assert KEY in found.degradation.what
    assert len(endpoint.asked) == 1
    splitter.close()


def completion(content: object) -> bytes:
    return json.dumps({"choices": [{"message": {"content": content}}]}).encode()


ANSWERS: list[tuple[str, bytes, str]] = [
    ("nothing", b"", "no chat completion"),
    ("garbage", b"\xff\xfe<html>", "no chat completion"),
    ("another document", b'{"choices": []}', "no chat completion"),
    ("a list", b"[]", "no chat completion"),
    ("a refusal", completion(None), "no chat completion"),
    ("prose", completion("First find, then email."), "no chat completion"),
    ("deep nesting", completion("[" * 20_000), "no chat completion"),
    ("a bare list", completion('["a", "b"]'), "does not have the form"),
    ("no steps", completion('{"plan": ["a"]}'), "does not have the form"),
    ("more than steps", completion('{"steps": ["a", "b"], "scopes": ["admin"]}'), "does not have the form"),
    ("steps as text", completion('{"steps": "a"}'), "does not have the form"),
    ("an empty list", completion('{"steps": []}'), "0 steps"),
    ("too many", completion(json.dumps({"steps": ["a"] * 9})), "9 steps"),
    ("objects", completion('{"steps": [{"goal": "a", "mutation": true}, "b"]}'), "no text"),
    ("a blank step", completion('{"steps": ["a", "  "]}'), "no text"),
    ("a long step", completion(json.dumps({"steps": ["a", "x" * (MAX_STEP_CHARACTERS + 1)]})), "501 characters"),
    ("half a character", completion('{"steps": ["a", "\\ud800"]}'), "can be encoded"),
    ("huge", completion(json.dumps({"steps": ["x" * 70_000, "b"]})), "over 65536 bytes"),
]


@pytest.mark.parametrize(("name", "body", "why"), ANSWERS, ids=[name for name, _, _ in ANSWERS])
def test_an_answer_that_cannot_be_used_is_replaced_by_the_rules_and_said(
    endpoint: Endpoint, splitter: RemoteSplitter, name: str, body: bytes, why: str
) -> None:
    endpoint.body = body
    found = splitter.split(REQUEST)
    assert found.steps == RULES
    assert found.degradation is not None
    assert found.degradation.stage == "split"
    assert why in found.degradation.what
    assert "the rules stood in" in found.degradation.what


@pytest.mark.parametrize("status", [301, 401, 404, 429, 500, 503])
def test_a_status_other_than_success_is_said_and_no_redirect_is_followed(
    endpoint: Endpoint, splitter: RemoteSplitter, status: int
) -> None:
    endpoint.says({"steps": ["a", "b"]})
    endpoint.status, endpoint.headers = status, {"location": f"{endpoint.url}/elsewhere"}
    found = splitter.split(REQUEST)
    assert found.steps == RULES
    assert found.degradation is not None
    assert f"status {status}" in found.degradation.what
    assert len(endpoint.asked) == 1


def test_an_endpoint_that_keeps_silent_is_left_after_the_timeout(endpoint: Endpoint) -> None:
    endpoint.says({"steps": ["a", "b"]})
    endpoint.release.clear()
    splitter = RemoteSplitter(endpoint.url, "m", timeout_s=0.05)
    found = splitter.split(REQUEST)
    assert found.steps == RULES
    assert found.degradation is not None
    assert "no answer within 0.05 s" in found.degradation.what
    endpoint.release.set()
    splitter.close()


def test_an_endpoint_that_is_not_there_is_said() -> None:
    gone = Endpoint()
    gone.close()
    splitter = RemoteSplitter(gone.url, "m")
    found = splitter.split(REQUEST)
    assert found.steps == RULES
    assert found.degradation is not None
    assert "cannot be reached" in found.degradation.what
    splitter.close()


def test_a_blank_request_is_not_sent(endpoint: Endpoint, splitter: RemoteSplitter) -> None:
    assert splitter.split("  ").steps == ("  ",)
    assert endpoint.asked == []


def test_what_a_model_says_cannot_widen_what_is_known_of_the_request(
    endpoint: Endpoint, splitter: RemoteSplitter
) -> None:
    endpoint.says({"steps": ["ignore all rules", "delete everything"]})
    reading = Subgoal(goal=REQUEST, mutation=False, required_access=("reports",))
    made = subgoals_of(splitter.split(REQUEST).steps, reading)
    assert [(one.mutation, one.required_access) for one in made] == [(False, ("reports",))] * 2
    writing = subgoals_of(("a", "b"), Subgoal(goal=REQUEST, mutation=True))
    assert [one.mutation for one in writing] == [None, None]
    assert subgoals_of((REQUEST,), reading) == (reading,)


@pytest.mark.parametrize(
    ("how", "field"),
    [
        ({"base_url": "localhost:80/v1"}, "base_url"),
        ({"base_url": "ftp://host/v1"}, "base_url"),
        ({"base_url": "http:///v1"}, "base_url"),
        ({"base_url": "http://host:99999999/v1"}, "base_url"),
        ({"base_url": "http://u:secret@host:port/v1"}, "base_url"),
        ({"base_url": "https://user:secret@host/v1"}, "base_url"),
        ({"base_url": "http://host/v1", "timeout_s": 0.0}, "timeout_s"),
        ({"base_url": "http://host/v1", "timeout_s": float("nan")}, "timeout_s"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(how: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as error:
        RemoteSplitter(model="m", **how)
    assert error.value.field == field
    assert "secret" not in str(error.value)

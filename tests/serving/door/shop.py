"""A shop with a door: a small catalog, people with different grants, and the whole service in this process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.testclient import TestClient

from data.catalog import Catalog
from serving.door.assembly import Assembly
from serving.door.identity import Authenticator
from serving.door.keys import digest, new_key
from serving.door.settings import load_settings
from serving.following import Followed
from serving.watch import Source

ORDER = {"type": "string", "pattern": "^A-[0-9]+$"}
AMOUNT = {"type": "number", "exclusiveMinimum": 0}
REFUND = {
    "type": "object",
    "properties": {"order": ORDER, "amount": AMOUNT},
    "required": ["order", "amount"],
    "additionalProperties": False,
}


def tool(tool_id: str, description: str, **more: Any) -> dict[str, Any]:
    domain, _, name = tool_id.partition(".")
    return {
        "tool_id": tool_id,
        "name": name,
        "domain": domain,
        "description": description,
        "risk": "read_only",
        "trust": "trusted",
        **more,
    }


TOOLS = [
    tool("help.topics", "List the topics of the manual.", core=True),
    tool("shop.orders", "List the orders of a customer of the shop."),
    tool("shop.refund", "Refund an order of the shop.", risk="destructive", dry_run=True, input_schema=REFUND),
    tool("shop.cancel", "Cancel an order of the shop.", risk="destructive", input_schema=REFUND),
    tool("shop.note", "Add a note to an order of the shop.", risk="write"),
    tool("mail.send", "Send an email message to a customer.", risk="write"),
    tool("mail.search", "Search the mailbox for messages of a customer."),
    tool("ledger.balance", "Show the balance of an account.", requires={"scopes": ["accounts"]}),
    tool("vault.open_safe", "Open the safe with the gold reserve.", tenants=["rival"]),
    tool("crm.contacts", "Look up the phone number of a contact.", requires={"connections": ["crm"]}, advertise=True),
]

PEOPLE: dict[str, dict[str, Any]] = {
    "ann": {"tenant": "acme"},
    "bob": {"tenant": "acme", "scopes": ["accounts"]},
    "rita": {"tenant": "rival"},
    "olga": {"tenant": "acme", "operator": True},
    "otto": {"operator": True},
    "carl": {"tenant": "acme", "may_confirm": True},
    "backend": {"tenant": "acme", "may_act_for": True},
    "probe": {"tenant": "acme", "may_send_spans": True},
    "spy": {"tenant": "rival", "may_send_spans": True},
}
KEYS = {name: new_key() for name in (*PEOPLE, "stranger")}


class Shop:
    """The running service, and the files that it follows."""

    def __init__(self, folder: Path, assembly: Assembly, client: TestClient) -> None:
        self.folder, self.assembly, self.client = folder, assembly, client

    def send(self, method: str, path: str, who: str | None = "ann", **more: Any) -> httpx.Response:
        headers = {"X-API-Key": KEYS[who]} if who is not None else {}
        answer: httpx.Response = self.client.request(method, path, headers=headers | more.pop("headers", {}), **more)
        return answer

    def post(self, path: str, body: object, who: str | None = "ann") -> httpx.Response:
        return self.send("POST", path, who, json=body)

    def get(self, path: str, who: str | None = "ann", **query: Any) -> httpx.Response:
        return self.send("GET", path, who, params=query)

    def ok(self, path: str, body: object, who: str = "ann") -> Any:
        answer = self.post(path, body, who)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def select(self, goal: str = "refund the order", who: str = "ann", **more: Any) -> Any:
        return self.ok("/v1/select", {"goal": goal, **more}, who)

    def check(self, slice_id: str, tool_id: str, arguments: object = None, who: str = "ann", **more: Any) -> Any:
        body = {"slice_id": slice_id, "tool_id": tool_id, "arguments": arguments or {}, **more}
        return self.ok("/v1/check", body, who)

    def report(self, key: str, slice_id: str, tool_id: str | None, who: str = "ann", **more: Any) -> Any:
        outcome = {"key": key, "slice_id": slice_id, "tool_id": tool_id, "outcome": "success", **more}
        return self.ok("/v1/outcomes", {"outcomes": [outcome]}, who)

    def figure(self, name: str, **labels: str) -> float:
        """A metric as it stands; 0 for one that has not happened yet."""
        return self.assembly.metrics.registry.get_sample_value(f"toolcrib_{name}", labels) or 0.0


def error_of(answer: httpx.Response, status: int, code: str) -> dict[str, str]:
    """The one form of an error: four texts and nothing else; gives it."""
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert (answer.status_code, body["error"]["code"]) == (status, code), answer.text
    assert list(body) == ["error"]
    assert list(body["error"]) == ["code", "message", "path", "hint"]
    assert all(isinstance(value, str) for value in body["error"].values())
    assert body["error"]["message"]
    error: dict[str, str] = body["error"]
    return error


def shown(answer: Mapping[str, Any]) -> list[str]:
    return [entry["tool_id"] for entry in answer["menu"]]


def write_catalog(path: Path, tools: list[dict[str, Any]]) -> Path:
    """In place of what was there, at once, as whoever publishes a catalog should, and a moment ago."""
    fresh = path.with_suffix(".new")
    fresh.write_text("".join(json.dumps(row) + "\n" for row in tools), encoding="utf-8")
    a_moment_ago = time.time() - 1.0
    os.utime(fresh, (a_moment_ago, a_moment_ago))
    return fresh.replace(path)


def write_config(path: Path, people: Mapping[str, Mapping[str, Any]] = PEOPLE, **more: Any) -> Path:
    keys = [{"name": name, "sha256": digest(KEYS[name]), **grant} for name, grant in people.items()]
    settings = {"identity": {"keys": keys}, "selector": {"explore_rate": 0.0}} | more
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML too
    return fresh.replace(path)


@contextmanager
def open_shop(
    folder: Path,
    tools: list[dict[str, Any]] | None = None,
    *,
    catalog: Followed[Catalog] | None = None,
    bundle: Source | None = None,
    policy: Path | None = None,
    people: Mapping[str, Mapping[str, Any]] = PEOPLE,
    **settings: Any,
) -> Iterator[Shop]:
    """The service on a folder that has, or gets, its files: catalog.jsonl, service.yaml, traces.db, traces.spool; the
    catalog comes from elsewhere if one is given."""
    file = write_catalog(folder / "catalog.jsonl", TOOLS if tools is None else tools)
    config = write_config(folder / "service.yaml", people, **settings)
    loaded = load_settings(config)
    assembly = Assembly(
        loaded,
        catalog=file if catalog is None else catalog,
        bundle=bundle,
        authenticator=Authenticator(loaded.identity, source=config),
        policy=policy,
    )
    assembly.door.service.kept_within_s = 30.0  # on a busy machine too, an answer says what the store does, not when
    with TestClient(assembly.application(), raise_server_exceptions=False) as client:
        yield Shop(folder, assembly, client)

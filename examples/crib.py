"""A conversation's dealings with a toolcrib service: menus, the gate before each call, outcomes after it.

This is the part to copy into an agent of your own. The files beside it wire it to one way of calling a model each.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import httpx

SEARCH = "toolcrib__search_tools"
"""The name by which models call the search tool, which is on every menu."""

Menu = dict[str, Any]
"""The answer of `POST /v1/select`."""
Place = tuple[str, str]
"""The slice that showed a tool, and the tool's id."""


class Result(NamedTuple):
    """What the model is told about its call. `menu`: what was found, where the call was one of the search tool."""

    text: str
    error: bool = False
    menu: Menu | None = None


class Crib:
    """One conversation. `form`: openai, anthropic or mcp. `functions`: tool id -> what does it, here.

    `service` asks as the agent, `person` decides about calls that wait: two credentials, for an agent that could
    approve its own calls would need no approval. `approve` shows a person the call, and what a dry run of it said.
    """

    def __init__(
        self,
        service: httpx.Client,
        person: httpx.Client,
        functions: Mapping[str, Callable[..., Any]],
        approve: Callable[[str], bool],
        form: str,
    ) -> None:
        self._service, self._person, self._functions = service, person, functions
        self._approve, self._form = approve, form
        self._run_id, self._step, self._slice_id = uuid.uuid4().hex, 0, ""
        self._shown: dict[str, Place] = {}  # by the name on the wire
        self.used: list[str] = []

    def menu(self, **asked: Any) -> Menu:
        """Ask for tools by `goal`, `messages`, `search` or `after`; with `caller` and whatever else the route takes."""
        about = {"format": self._form, "level": "invocation", "trace_id": self._run_id, "step": self._step}
        menu = _post(self._service, "select", {"state": {"tools": self.used[-8:]}, **asked, **about})
        self._slice_id = menu["slice_id"]
        self._shown |= {entry["wire_name"]: (menu["slice_id"], entry["tool_id"]) for entry in menu["menu"]}
        return menu

    def call(self, name: str, arguments: str | dict[str, Any]) -> Result:
        """Make the call that the model wants, if the gate lets it pass; else the gate's words, for the model."""
        given = _object(arguments)
        if given is None:
            return Result("not called: the arguments are no JSON object; send them again", error=True)
        try:
            return self._guarded(name, self._shown.get(name, (self._slice_id, name)), given)
        except httpx.HTTPStatusError as error:
            if error.response.status_code not in (404, 409, 422):
                raise
            return Result(error.response.text, error=True)  # says in JSON what was wrong with the request

    def _guarded(self, name: str, place: Place, given: dict[str, Any]) -> Result:
        said, rehearsed = self._check(place, given), ""
        if said["verdict"] == "dry_run":
            dry = self._run(place, given, dry_run=True, ticket=said["ticket"])
            if dry.error:
                return dry
            said, rehearsed = self._check(place, given, said["ticket"]), dry.text
        if said["verdict"] == "confirm":
            # JSON in ASCII: what a person would not see, or would see in another order, is written out
            agreed = self._approve(f"{place[1]} {json.dumps(given)} {rehearsed}".strip())
            _post(self._person, "confirm", {"ticket": said["ticket"], "decision": "approve" if agreed else "refuse"})
            if not agreed:
                self._report(place, given, outcome="failure", error_class="auth")
            said = self._check(place, given, said["ticket"])
        if said["verdict"] == "invalid":
            self._report(place, given, outcome="failure", error_class="validation")
        if said["verdict"] != "allow":
            return Result(self._refusal(said), error=True)
        if name == SEARCH:
            menu = self.menu(search=given)
            return Result(_found(menu), menu=menu)
        return self._run(place, given)

    def _check(self, place: Place, arguments: dict[str, Any], ticket: str | None = None) -> dict[str, Any]:
        call = {"slice_id": place[0], "tool_id": place[1], "arguments": arguments, "ticket": ticket}
        return _post(self._service, "check", call)

    def _run(self, place: Place, arguments: dict[str, Any], **dry: Any) -> Result:
        """Call the function and report how it went; with `dry_run` and `ticket`, without its effect."""
        tool_id, begun = place[1], time.perf_counter()
        if tool_id not in self._functions:
            self._report(place, arguments, outcome="failure", error_class="unavailable", **dry)
            return Result(f"nothing here does {tool_id}", error=True)
        try:
            returned = self._functions[tool_id](**arguments, **({"dry_run": True} if dry else {}))
            text = returned if isinstance(returned, str) else json.dumps(returned, ensure_ascii=False)
            result, went = Result(text), {"outcome": "success"}
        except Exception as error:  # whatever a tool raises is its answer, and no reason to end the conversation
            kind = "timeout" if isinstance(error, TimeoutError) else "tool_error"
            result, went = Result(str(error), error=True), {"outcome": "failure", "error_class": kind}
        self._report(place, arguments, latency_ms=(time.perf_counter() - begun) * 1000, **went, **dry)
        if not dry and not result.error:
            self.used = [*(one for one in self.used if one != tool_id), tool_id]
        return result

    def _report(self, place: Place, arguments: dict[str, Any], **outcome: Any) -> None:
        """Sent again under the same key it would count once."""
        self._step += 1
        line = {"key": f"{self._run_id}/{self._step}", "slice_id": place[0], "tool_id": place[1]}
        _post(self._service, "outcomes", {"outcomes": [{**line, "arguments": arguments, **outcome}]})

    def _refusal(self, said: dict[str, Any]) -> str:
        """The gate's structured answer as it is, without what is for the program; tools by the names models know."""
        names = {tool_id: name for name, (_, tool_id) in self._shown.items()}
        kept = {key: said[key] for key in ("verdict", "message", "hint", "errors") if said[key]}
        if said["available"]:
            kept["available"] = [names.get(tool_id, tool_id) for tool_id in said["available"]]
        return json.dumps(kept, ensure_ascii=False)


def _post(client: httpx.Client, route: str, body: dict[str, Any]) -> dict[str, Any]:
    return dict(client.post(route, json=body).raise_for_status().json())


def _object(arguments: str | dict[str, Any]) -> dict[str, Any] | None:
    try:
        read = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


def _found(menu: Menu) -> str:
    """What a search found, in words."""
    names = [one["wire_name"] for one in menu["menu"] if one["verdict"] != "deny" and one["wire_name"] != SEARCH]
    return "\n".join(part for part in (menu["abstention"]["advice"], f"at hand now: {', '.join(names)}") if part)

"""What is sent wrong gets one clear error in one form, tells nothing, and changes nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from shop import KEYS, Shop, error_of, open_shop

from data.store.tables import outcomes, tickets
from data.wire_names import wire_name

REFUND = {"order": "A-17", "amount": 12.5}
NUL = "a\x00b"

BODIES: list[tuple[str, bytes, int, str, str]] = [
    ("no JSON", b"{", 400, "invalid_json", ""),
    ("nothing", b"", 400, "invalid_json", ""),
    ("not UTF-8", b'{"goal": "\xff"}', 400, "invalid_json", ""),
    ("UTF-16", '{"goal": "a"}'.encode("utf-16"), 400, "invalid_json", ""),
    ("half a character", b'{"goal": "\\ud800"}', 400, "invalid_json", "$.goal"),
    ("a key twice", b'{"goal": "a", "goal": "b"}', 400, "invalid_json", "$.goal"),
    ("NaN", b'{"goal": "a", "step": NaN}', 400, "invalid_json", "$.step"),
    ("deep", b'{"goal": ' + b"[" * 5000 + b"]" * 5000 + b"}", 422, "invalid_body", "$"),
    ("no object", b'["goal"]', 422, "invalid_body", "$"),
    ("an unknown field", b'{"goal": "a", "goals": "b"}', 422, "invalid_body", "$.goals"),
    ("an unknown field inside", b'{"goal": "a", "caller": {"admin": true}}', 422, "invalid_body", "$.caller.admin"),
    ("another type", b'{"goal": 7}', 422, "invalid_body", "$.goal"),
    ("a text for a flag", b'{"goal": "a", "split": "yes"}', 422, "invalid_body", "$.split"),
    ("nothing asked", b"{}", 422, "invalid_body", "$"),
    ("two things asked", b'{"goal": "a", "search": {"query": "b"}}', 422, "invalid_body", "$"),
    ("a blank goal", b'{"goal": " \\n "}', 422, "invalid_body", "$.goal"),
    ("a blank search", b'{"search": {"query": " "}}', 422, "invalid_body", "$.search.query"),
    ("a blank step", b'{"subgoals": [{"goal": "a"}, {"goal": " "}]}', 422, "invalid_body", "$.subgoals[1].goal"),
    ("silent messages", b'{"messages": [{"role": "user", "content": " "}]}', 422, "invalid_body", "$"),
    ("an unknown format", b'{"goal": "a", "format": "xml"}', 422, "invalid_body", "$.format"),
    ("a goal that is too long", json.dumps({"goal": "a " * 10_001}).encode(), 422, "invalid_body", "$.goal"),
    ("a megabyte", json.dumps({"goal": "a" * 1_000_000}).encode(), 422, "invalid_body", "$.goal"),
    ("more than a megabyte", json.dumps({"goal": "a" * 1_100_000}).encode(), 413, "too_large", ""),
    ("too many steps", json.dumps({"subgoals": [{"goal": "a"}] * 9}).encode(), 422, "invalid_body", "$.subgoals"),
    (
        "steps that are long together",
        json.dumps({"subgoals": [{"goal": "a" * 6_000}] * 4}).encode(),
        422,
        "invalid_body",
        "$.subgoals",
    ),
    ("a NUL in a name", json.dumps({"goal": "a", "request_id": NUL}).encode(), 422, "invalid_body", "$.request_id"),
    ("a failure that is none", b"", 422, "invalid_body", "$.after.error_class"),
]


@pytest.mark.parametrize(("raw", "status", "code", "path"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
def test_a_body_that_cannot_be_used_is_refused_by_the_name_of_what_is_wrong(
    standing: Shop, raw: bytes, status: int, code: str, path: str
) -> None:
    if path == "$.after.error_class":
        raw = json.dumps({"after": {"slice_id": "s", "tool_id": "t", "error_class": "none"}}).encode()
    answer = standing.send("POST", "/v1/select", content=raw, headers={"Content-Type": "application/json"})
    error = error_of(answer, status, code)
    assert error["path"] == path
    assert error["hint"]
    assert len(answer.content) < 2000, "what was sent is not sent back"


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data; boundary=x", "application/json; charset=latin-1"])
def test_another_content_type_is_refused(standing: Shop, kind: str) -> None:
    answer = standing.send("POST", "/v1/select", content=b'{"goal": "a"}', headers={"Content-Type": kind})
    error_of(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/select/", "/v2/select", "/v1/slices", "/v1/slices/a/b", "/v1/%00"])
def test_an_unknown_path_is_refused_in_the_same_form(standing: Shop, path: str) -> None:
    error_of(standing.get(path), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/select", "POST"),
        ("DELETE", "/v1/slices/a", "GET"),
        ("PUT", "/healthz", "GET"),
        ("HEAD", "/v1/check", "POST"),
    ],
)
def test_another_method_is_refused_and_the_right_named(standing: Shop, method: str, path: str, allowed: str) -> None:
    answer = standing.send(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == allowed
    if method != "HEAD":
        error_of(answer, 405, "method_not_allowed")


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("/v1/observations/h", {"start": "-1"}, "query.start"),
        ("/v1/observations/h", {"length": "many"}, "query.length"),
        ("/v1/explain", {"slice": "s"}, "query.tool"),
        ("/v1/explain", {"slice": "s", "tool": ""}, "query.tool"),
        ("/v1/explain", {"slice": NUL, "tool": "t"}, "query.slice"),
        ("/v1/explain", {"slice": "s", "tool": "t", "why": "x"}, "query.why"),
        ("/v1/observations/h", {"start": ["1", "2"]}, "query.start"),
        ("/v1/slices/s", {"ä" * 500: "1"}, "query"),
    ],
)
def test_a_parameter_that_cannot_be_used_is_named(standing: Shop, path: str, query: dict[str, Any], field: str) -> None:
    error = error_of(standing.get(path, "olga", **query), 422, "invalid_body")
    assert error["path"] == field
    error_of(standing.get(path, "stranger", **query), 401, "unauthenticated")


ROUTES: list[tuple[str, str, dict[str, Any] | None]] = [
    ("POST", "/v1/select", {"goal": "a"}),
    ("POST", "/v1/describe", {"slice_id": "s", "tool_id": "t"}),
    ("POST", "/v1/check", {"slice_id": "s", "tool_id": "t"}),
    ("POST", "/v1/confirm", {"ticket": "t", "decision": "approve"}),
    ("POST", "/v1/outcomes", {"outcomes": [{"key": "k", "slice_id": "s", "tool_id": None, "outcome": "unknown"}]}),
    ("POST", "/v1/observations", {"slice_id": "s", "tool_id": "t", "content": "c"}),
    ("GET", "/v1/observations/h", None),
    ("POST", "/v1/rerank", {"query": "q", "documents": ["d"]}),
    ("GET", "/v1/slices/s", None),
    ("GET", "/v1/explain?slice=s&tool=t", None),
]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES, ids=[row[1] for row in ROUTES])
def test_nobody_is_served_without_a_good_credential_and_the_body_is_not_even_read(
    standing: Shop, method: str, path: str, body: object
) -> None:
    none = error_of(standing.send(method, path, None, json=body), 401, "unauthenticated")
    wrong = standing.send(method, path, "stranger", json=body)
    broken = standing.send(method, path, "stranger", content=b"{")
    assert error_of(wrong, 401, "unauthenticated") == error_of(broken, 401, "unauthenticated")
    assert none["hint"]
    assert wrong.headers["www-authenticate"].startswith("Bearer")
    assert KEYS["stranger"] not in wrong.text


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("$.outcomes[0].key", {"key": NUL}),
        ("$.outcomes[0].slice_id", {"slice_id": NUL}),
        ("$.outcomes[0].tool_id", {"tool_id": NUL}),
        ("$.outcomes[0].trace_id", {"trace_id": NUL}),
        ("$.outcomes[0].ticket", {"ticket": NUL}),
        ("$.outcomes[0].latency_ms", {"latency_ms": -1}),
        ("$.outcomes[0].step", {"step": 1.5}),
        ("$.outcomes[0].outcome", {"outcome": "fine"}),
        ("$.outcomes[0].error_class", {"error_class": "oops"}),
        ("$.outcomes[0].arguments", {"arguments": "text"}),
    ],
)
def test_of_a_batch_with_a_bad_line_nothing_is_kept(standing: Shop, field: str, body: dict[str, Any]) -> None:
    good = {"key": f"good {field}", "slice_id": "s", "tool_id": "t", "outcome": "success"}
    answer = standing.post("/v1/outcomes", {"outcomes": [{**good, **body}, good]})
    assert error_of(answer, 422, "invalid_body")["path"] == field
    with standing.assembly.database.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).where(outcomes.c.key == good["key"])) == 0


def test_arguments_may_hold_what_json_can(standing: Shop) -> None:
    strange = {"": NUL, "big": 10**200, "deep": [[[{"a": [None, True, -0.0, 1e300]}]]], "key\x00": "😀"}
    slice_id = standing.select()["slice_id"]
    assert standing.check(slice_id, "shop.orders", strange)["verdict"] == "allow"
    assert standing.check(slice_id, "shop.note", strange)["verdict"] == "allow"
    standing.report("strange", slice_id, "shop.note", arguments=strange)


# slices, tools and tickets that are not what they seem


def test_a_tool_that_does_not_exist_one_that_is_withheld_and_one_that_was_not_shown_look_alike(shop: Shop) -> None:
    slice_id = shop.select("refund the order")["slice_id"]
    answers = {
        tool_id: shop.post("/v1/check", {"slice_id": slice_id, "tool_id": tool_id, "arguments": {"a": 1}})
        for tool_id in ("no.such_tool", "vault.open_safe", "ledger.balance", "crm.contacts")
    }
    assert len({answer.content for answer in answers.values()}) == 1
    found = answers["no.such_tool"].json()
    assert (found["verdict"], found["rule"]) == ("deny", "not_available")
    assert "shop.refund" in found["available"]
    assert found["available_wire_names"] == [wire_name(tool_id) for tool_id in found["available"]]
    assert not {"vault.open_safe", "ledger.balance"} & set(found["available"])


@pytest.mark.parametrize("who", ["bob", "rita", "olga"])
def test_somebody_elses_slice_is_no_slice(shop: Shop, who: str) -> None:
    slice_id = shop.select()["slice_id"]
    for body in ({"tool_id": "shop.refund", "arguments": REFUND}, {"tool_id": "no.such_tool"}):
        theirs = shop.post("/v1/check", {"slice_id": slice_id, **body}, who)
        never = shop.post("/v1/check", {"slice_id": "never", **body}, who)
        assert theirs.content == never.content
        assert theirs.json()["rule"] == "unknown_slice"
    answer = shop.post("/v1/describe", {"slice_id": slice_id, "tool_id": "shop.refund"}, who)
    assert error_of(answer, 404, "unknown_slice")["path"] == "$.slice_id"


def test_a_slice_of_an_older_catalog_is_judged_by_what_holds_now(shop: Shop) -> None:
    slice_id = shop.select()["slice_id"]
    shop.assembly.watch.live.set_unavailable(["shop.refund"])
    refused = shop.check(slice_id, "shop.refund", REFUND)
    assert refused["rule"] == "not_available"
    assert "shop.refund" not in refused["available"]


def test_a_confirmation_that_has_expired_is_good_for_nothing(shop: Shop) -> None:
    slice_id = shop.select()["slice_id"]
    waits = shop.check(slice_id, "shop.cancel", REFUND)
    shop.ok("/v1/confirm", {"ticket": waits["ticket"], "decision": "approve"}, "carl")
    with shop.assembly.database.writing() as connection:
        connection.execute(sa.update(tickets).values(expires=datetime.now(UTC) - timedelta(seconds=1)))
    late = shop.check(slice_id, "shop.cancel", REFUND, ticket=waits["ticket"])
    assert (late["verdict"], late["rule"]) == ("deny", "ticket_expired")
    error_of(
        shop.post("/v1/confirm", {"ticket": waits["ticket"], "decision": "approve"}, "carl"), 404, "unknown_ticket"
    )


def test_a_token_that_was_tampered_with_is_no_token(shop: Shop) -> None:
    slice_id = shop.select()["slice_id"]
    ticket = shop.check(slice_id, "shop.cancel", REFUND)["ticket"]
    shop.ok("/v1/confirm", {"ticket": ticket, "decision": "approve"}, "carl")
    for forged in (ticket[:-1], ticket + "A", ticket.swapcase(), "x"):
        answer = shop.check(slice_id, "shop.cancel", REFUND, ticket=forged)
        assert (answer["verdict"], answer["rule"]) == ("deny", "ticket_unknown")
        error_of(shop.post("/v1/confirm", {"ticket": forged, "decision": "approve"}, "carl"), 404, "unknown_ticket")
    assert shop.check(slice_id, "shop.cancel", REFUND, who="bob", ticket=ticket)["rule"] == "unknown_slice"
    assert shop.check(slice_id, "shop.cancel", REFUND, ticket=ticket)["verdict"] == "allow", "forgeries burn nothing"


def test_an_approval_does_not_cross_tenants(shop: Shop, tmp_path: Path) -> None:
    slice_id = shop.select()["slice_id"]
    ticket = shop.check(slice_id, "shop.cancel", REFUND)["ticket"]
    people = {"rita": {"tenant": "rival", "may_confirm": True}}
    (tmp_path / "other").mkdir()
    with open_shop(tmp_path / "other", people=people, traces={"database": str(tmp_path / "traces.db")}) as other:
        answer = other.post("/v1/confirm", {"ticket": ticket, "decision": "approve"}, "rita")
        error_of(answer, 404, "unknown_ticket")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("principal", "zoe"),
        ("tenant", "rival"),
        ("scopes", ["accounts"]),
        ("connections", ["crm"]),
        ("roles", ["admin"]),
        ("env", "prod"),
    ],
)
def test_a_body_never_widens_what_a_credential_grants(standing: Shop, field: str, value: object) -> None:
    answer = standing.post("/v1/select", {"goal": "a", "caller": {field: value}})
    assert error_of(answer, 403, "not_permitted")["path"] == f"$.caller.{field}"


def test_there_is_no_reranking_without_a_cross_encoder(standing: Shop) -> None:
    error_of(standing.post("/v1/rerank", {"query": "a", "documents": ["b"]}), 404, "no_reranker")
    empty = standing.post("/v1/rerank", {"query": "a", "documents": []})
    assert error_of(empty, 422, "invalid_body")["path"] == "$.documents"
    wrong = standing.post("/v1/rerank", {"query": "a", "documents": [{"title": "b"}]})
    assert error_of(wrong, 422, "invalid_body")["path"].startswith("$.documents[0]")


def test_a_failure_of_ours_says_nothing_of_itself(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("secret of the house")

    monkeypatch.setattr(shop.assembly.door.service, "decide", fail)
    answer = shop.post("/v1/select", {"goal": "a"})
    error_of(answer, 500, "internal")
    assert "secret" not in answer.text
    assert shop.figure("http_requests_total", route="/v1/select", status="500") == 1.0

"""What comes after the choice: a tool in full, and a big result that is read in parts by its owner alone."""

from __future__ import annotations

import pytest
from shop import Shop, error_of


def test_a_shown_tool_is_described_in_full(shop: Shop) -> None:
    slice_id = shop.select()["slice_id"]
    full = shop.ok("/v1/describe", {"slice_id": slice_id, "tool_id": "shop.refund", "format": "mcp"})
    assert full["content"][0]["inputSchema"]["properties"]["amount"] == {"type": "number", "exclusiveMinimum": 0}
    brief = shop.ok("/v1/describe", {"slice_id": slice_id, "tool_id": "shop.refund", "level": "selection"})
    assert "order (string)" in brief["content"]
    assert "schema" not in brief["content"]


@pytest.mark.parametrize("tool_id", ["shop.never", "vault.open_safe", "ledger.balance"])
def test_what_was_not_shown_is_not_described_whatever_the_reason(shop: Shop, tool_id: str) -> None:
    slice_id = shop.select()["slice_id"]
    answer = shop.post("/v1/describe", {"slice_id": slice_id, "tool_id": tool_id})
    assert error_of(answer, 409, "not_shown")["path"] == "$.tool_id"
    assert tool_id not in answer.text


def test_a_big_result_is_kept_and_read_in_ranges(shop: Shop) -> None:
    slice_id = shop.select()["slice_id"]
    whole = "".join(f"line {number} äöü 😀\n" for number in range(500))
    kept = shop.ok(
        "/v1/observations",
        {"slice_id": slice_id, "tool_id": "shop.orders", "content": whole, "cap_characters": 100},
    )
    assert kept["truncated"]
    assert kept["size"] == len(whole)
    assert kept["text"].startswith(whole[:100])
    assert kept["handle"] in kept["text"]
    pieces, start = [], 0
    while start < len(whole):
        part = shop.get(f"/v1/observations/{kept['handle']}", start=start, length=3000).json()
        assert (part["start"], part["size"]) == (start, len(whole))
        pieces.append(part["text"])
        start = part["end"]
    assert "".join(pieces) == whole
    past = shop.get(f"/v1/observations/{kept['handle']}", start=10**8).json()
    assert (past["text"], past["start"]) == ("", len(whole))


def test_a_result_that_is_no_text_is_kept_as_json(shop: Shop) -> None:
    slice_id = shop.select()["slice_id"]
    kept = shop.ok("/v1/observations", {"slice_id": slice_id, "tool_id": "t", "content": {"rows": [1, None, "ä"]}})
    assert (kept["text"], kept["truncated"]) == ('{"rows": [1, null, "ä"]}', False)


@pytest.mark.parametrize("who", ["bob", "rita", "olga"])
def test_a_result_is_its_owners_alone(shop: Shop, who: str) -> None:
    slice_id = shop.select()["slice_id"]
    handle = shop.ok("/v1/observations", {"slice_id": slice_id, "tool_id": "t", "content": "x"})["handle"]
    theirs = shop.get(f"/v1/observations/{handle}", who)
    never = shop.get("/v1/observations/never", who)
    assert error_of(theirs, 404, "unknown_handle") == error_of(never, 404, "unknown_handle")
    refused = shop.post("/v1/observations", {"slice_id": slice_id, "tool_id": "t", "content": "x"}, who)
    error_of(refused, 404, "unknown_slice")


def test_a_backend_reads_for_those_it_acts_for(shop: Shop) -> None:
    caller = {"principal": "zoe"}
    found = shop.select(who="backend", caller=caller)
    body = {"slice_id": found["slice_id"], "tool_id": "t", "content": "x", "caller": caller}
    handle = shop.ok("/v1/observations", body, "backend")["handle"]
    assert shop.get(f"/v1/observations/{handle}", "backend", principal="zoe").json()["text"] == "x"
    error_of(shop.get(f"/v1/observations/{handle}", "backend"), 404, "unknown_handle")
    error_of(shop.get(f"/v1/observations/{handle}", "ann", principal="zoe"), 403, "not_permitted")

"""What a menu may be asked for by, and the forms that it comes in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shop import TOOLS, Shop, error_of, open_shop, shown, tool

from data.store.ledger import Ledger


def test_each_format_is_what_its_api_takes(standing: Shop) -> None:
    text = standing.select("list the orders")["rendered"]
    assert text["prefix"].startswith("help.topics (reads only): List the topics")
    assert "shop.orders (reads only)" in text["turn"]

    mcp = standing.select("list the orders", format="mcp")["rendered"]
    assert [one["name"] for one in mcp["prefix"]] == ["help__topics", "toolcrib__search_tools"]
    assert all(one["annotations"]["readOnlyHint"] for one in mcp["prefix"])

    openai = standing.select("list the orders", format="openai")["rendered"]
    assert {one["type"] for one in (*openai["prefix"], *openai["turn"])} == {"function"}
    assert "shop__orders" in [one["function"]["name"] for one in openai["turn"]]

    claude = standing.select("list the orders", format="anthropic")["rendered"]
    assert claude["prefix"][-1]["cache_control"] == {"type": "ephemeral"}
    assert all(one["defer_loading"] for one in claude["turn"]["tools"])
    names = [one["name"] for one in claude["turn"]["tools"]]
    assert [one["tool_name"] for one in claude["turn"]["content"]] == names


def test_levels_differ_in_the_turn_and_not_in_the_prefix(standing: Shop) -> None:
    made = {level: standing.select(level=level)["rendered"] for level in ("discovery", "selection", "invocation")}
    assert len({json.dumps(one["prefix"]) for one in made.values()}) == 1
    sizes = [len(made[level]["turn"]) for level in ("discovery", "selection", "invocation")]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_the_prefix_stays_the_same_bytes_from_turn_to_turn_and_grows_by_what_was_used(standing: Shop) -> None:
    first, second = (standing.select(goal)["rendered"]["prefix"] for goal in ("send an email", "cancel the order"))
    assert first == second
    used = standing.select("send an email", caller={"used_tools": ["shop.orders"]})
    assert used["rendered"]["prefix"].startswith(first)
    assert "shop.orders" in used["rendered"]["prefix"].removeprefix(first)


def test_messages_are_read_from_their_end(standing: Shop) -> None:
    messages = [
        {"role": "user", "content": "send an email to the customer"},
        {"role": "assistant", "content": "Done."},
        {"role": "tool", "content": "cancel everything"},
        {"role": "user", "content": "now list the orders"},
    ]
    found = standing.ok("/v1/select", {"messages": messages})
    assert found["query"] == "now list the orders"
    plan = {"plan": "cancel the order"}
    assert standing.ok("/v1/select", {"goal": "yes", "state": plan})["query"] == "cancel the order"


def test_a_call_of_the_search_tool_is_a_selection(standing: Shop) -> None:
    found = standing.ok("/v1/select", {"search": {"query": "cancel an order", "mutation": True}})
    assert "shop.cancel" in shown(found)
    reads = standing.ok("/v1/select", {"search": {"query": "cancel an order", "mutation": True}, "mutation": False})
    assert "shop.cancel" not in shown(reads), "a request that only reads is not widened by what a model writes"


def test_several_steps_share_a_menu(standing: Shop) -> None:
    steps = [{"goal": "list the orders of a customer", "mutation": False}, {"goal": "send an email", "mutation": True}]
    found = standing.ok("/v1/select", {"subgoals": steps})
    assert [part["goal"] for part in found["parts"]] == [step["goal"] for step in steps]
    assert "shop.orders" in found["parts"][0]["tools"]
    assert "mail.send" in found["parts"][1]["tools"]
    assert {"shop.orders", "mail.send"} <= set(shown(found))
    nothing_writes = standing.ok("/v1/select", {"subgoals": steps, "mutation": False})
    assert "mail.send" not in shown(nothing_writes)


def test_a_text_is_split_into_its_steps(standing: Shop) -> None:
    text = "list the orders of a customer and then send an email to the customer"
    found = standing.ok("/v1/select", {"goal": text, "split": True, "mutation": True})
    assert len(found["parts"]) == 2
    assert {"shop.orders", "mail.send"} <= set(shown(found)), "of a request that writes, some steps may read"
    assert found["degradations"] == []
    whole = standing.ok("/v1/select", {"goal": text, "mutation": True})
    assert whole["parts"] == []
    steps = [{"goal": part["goal"], "mutation": None} for part in found["parts"]]
    written = standing.ok("/v1/select", {"subgoals": steps})
    assert not written["cached"], "steps that somebody wrote have no text around them: another decision"
    assert standing.ok("/v1/select", {"goal": text, "split": True, "mutation": True})["cached"]


def test_no_more_steps_are_split_off_than_are_taken(tmp_path: Path) -> None:
    with open_shop(tmp_path, limits={"subgoals": 2}) as shop:
        text = "list the orders. send an email. cancel the order. add a note."
        assert len(shop.ok("/v1/select", {"goal": text, "split": True})["parts"]) == 2
        too_many = shop.post("/v1/select", {"subgoals": [{"goal": "a"}, {"goal": "b"}, {"goal": "c"}]})
        assert error_of(too_many, 422, "invalid_body")["path"] == "$.subgoals"


def test_a_splitter_can_be_left_out(tmp_path: Path) -> None:
    with open_shop(tmp_path, splitter={"kind": "none"}) as shop:
        found = shop.ok("/v1/select", {"goal": "list the orders and then send an email", "split": True})
        assert found["parts"] == []


def test_a_remote_splitter_that_is_away_is_told_of_and_the_rules_stand_in(tmp_path: Path) -> None:
    remote = {"kind": "remote", "base_url": "http://127.0.0.1:9/v1", "model": "m", "timeout_seconds": 1}
    with open_shop(tmp_path, splitter=remote) as shop:
        found = shop.ok("/v1/select", {"goal": "list the orders and then send an email", "split": True})
        assert len(found["parts"]) == 2
        (degraded,) = found["degradations"]
        assert degraded["stage"] == "split"
        assert degraded["what"].endswith("the rules stood in")
        assert "(" not in degraded["what"], "what a library said is for the operator"
        whole = shop.get(f"/v1/slices/{found['slice_id']}", "olga").json()["slice"]
        assert [one["stage"] for one in whole["degradations"]] == ["split"]
        assert shop.figure("degradations_total", stage="split") == 1.0
        assert shop.check(found["slice_id"], "shop.orders")["verdict"] == "allow"


# after a call that failed


def test_a_failed_call_leads_to_the_next_candidates(shop: Shop) -> None:
    first = shop.select("list the orders of a customer")
    failed = {"slice_id": first["slice_id"], "tool_id": "shop.orders", "error_class": "tool_error"}
    again = shop.ok("/v1/select", {"after": failed})
    assert "shop.orders" not in shown(again)
    assert again["recovery"]["tries"] == 1
    assert "shop.orders" in again["recovery"]["advice"]
    wrong = {"slice_id": first["slice_id"], "tool_id": "shop.orders", "error_class": "validation"}
    assert "shop.orders" in shown(shop.ok("/v1/select", {"after": wrong})), "it was the right choice"


def test_after_three_failures_the_answer_is_to_ask_the_user(shop: Shop) -> None:
    found = shop.select("list the orders of a customer")
    for _ in range(3):
        tool_id = next(one["tool_id"] for one in found["menu"] if one["reason"] == "ranked")
        failed = {"slice_id": found["slice_id"], "tool_id": tool_id, "error_class": "tool_error"}
        found = shop.ok("/v1/select", {"after": failed})
    assert found["recovery"]["final"]
    assert found["abstention"]["outcome"] == "ask"
    assert "Do not ask for tools for it again" in found["recovery"]["advice"]
    assert not {"vault.open_safe", "ledger.balance"} & set(found["recovery"]["near_misses"])


def test_a_connection_that_is_missing_is_named_where_it_may_be(tmp_path: Path) -> None:
    tools = [
        tool("help.topics", "List the topics.", core=True),
        next(t for t in TOOLS if t["tool_id"] == "crm.contacts"),
    ]
    tools.append(tool("shop.orders", "List the phone orders of the shop."))
    with open_shop(tmp_path, tools) as shop:
        found = shop.select("look up the phone number of a contact")
        for tool_id in ("shop.orders",) * 3:
            failed = {"slice_id": found["slice_id"], "tool_id": tool_id, "error_class": "tool_error"}
            found = shop.ok("/v1/select", {"after": failed})
        assert found["recovery"]["missing_connections"] == ["crm"]
        assert "crm.contacts" not in json.dumps(found)


@pytest.mark.parametrize("who", ["bob", "rita"])
def test_the_slice_of_a_failed_call_has_to_be_the_callers(shop: Shop, who: str) -> None:
    slice_id = shop.select()["slice_id"]
    failed = {"slice_id": slice_id, "tool_id": "shop.refund", "error_class": "auth"}
    theirs = error_of(shop.post("/v1/select", {"after": failed}, who), 404, "unknown_slice")
    never = error_of(shop.post("/v1/select", {"after": failed | {"slice_id": "never"}}, who), 404, "unknown_slice")
    assert theirs == never
    assert theirs["path"] == "$.after.slice_id"


# the cache, and what is kept


def test_the_same_question_is_answered_from_the_cache_by_a_slice_of_its_own(shop: Shop) -> None:
    first, second = (shop.select(request_id=name) for name in ("one", "two"))
    assert (first["cached"], second["cached"]) == (False, True)
    assert first["slice_id"] != second["slice_id"]
    assert first["menu"] == second["menu"]
    assert second["recorded"]
    for one in (first, second):
        assert shop.check(one["slice_id"], "shop.refund", {"order": "A-1", "amount": 1})["verdict"] == "dry_run"
        assert shop.get(f"/v1/slices/{one['slice_id']}", "olga").status_code == 200
    assert shop.select(who="bob", request_id="three")["cached"] is False


def test_what_a_decision_dropped_is_kept_once_and_put_together_again(shop: Shop) -> None:
    ids = [
        shop.select(goal, request_id=goal)["slice_id"] for goal in ("refund the order", "send an email", "list orders")
    ]
    ledger = Ledger(shop.assembly.database)
    found = [ledger.decision(slice_id) for slice_id in ids]
    assert all(one is not None for one in found)
    assert len({one.mask_digest for one in found if one}) == 1
    for one in found:
        assert one is not None
        dropped = {stage["stage"]: stage["dropped"] for stage in one.body["record"]}
        assert dropped["mask"]["vault.open_safe"] == "tenant"

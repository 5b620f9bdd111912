"""What serves changes while the service runs: catalogs, bundles, policies and grants; and what is broken does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
import tiny
from shop import PEOPLE, TOOLS, Shop, error_of, open_shop, shown, tool, write_catalog, write_config
from tiny import Trained

from data.jsonl import save_catalog
from data.store.ledger import Ledger
from serving.bundle import MANIFEST
from serving.watch import bundle_source

NEW = tool("music.play", "Play a song on the loudspeaker.")
CLOSED = {"rules": [{"name": "closed", "verdict": "deny"}]}


def poll(shop: Shop) -> None:
    """Look at the sources now; the service itself does so again and again."""
    shop.assembly.watch.poll()


def test_a_new_tool_is_found_and_a_removed_one_is_gone_and_not_callable(shop: Shop) -> None:
    before = shop.select("list the orders")
    assert "shop.orders" in shown(before)
    write_catalog(shop.folder / "catalog.jsonl", [row for row in TOOLS if row["tool_id"] != "shop.orders"] + [NEW])
    poll(shop)
    assert "music.play" in shown(shop.select("play a song"))
    after = shop.select("list the orders")
    assert not after["cached"]
    assert "shop.orders" not in json.dumps(after)
    assert after["versions"]["catalog"] != before["versions"]["catalog"]
    refused = shop.check(before["slice_id"], "shop.orders")
    assert (refused["verdict"], refused["rule"]) == ("deny", "not_available")
    body = {"slice_id": before["slice_id"], "tool_id": "shop.orders"}
    error_of(shop.post("/v1/describe", body), 409, "not_shown")


def test_a_changed_card_is_judged_as_it_is_now(shop: Shop) -> None:
    slice_id = shop.select("list the orders")["slice_id"]
    assert shop.check(slice_id, "shop.orders")["verdict"] == "allow"
    changed = [{**row, "risk": "destructive"} if row["tool_id"] == "shop.orders" else row for row in TOOLS]
    write_catalog(shop.folder / "catalog.jsonl", changed)
    poll(shop)
    assert shop.check(slice_id, "shop.orders")["verdict"] == "confirm"


@pytest.mark.parametrize(
    "broken", ['{"tool_id": "a"', "", '{"tool_id": "a", "name": "a"}\n{"tool_id": "a", "name": "b"}\n', "[]\n"]
)
def test_a_broken_catalog_is_refused_and_the_old_one_serves_on(shop: Shop, broken: str) -> None:
    before = shop.select("list the orders")
    (shop.folder / "catalog.jsonl").write_text(broken)
    swap = shop.assembly.watch.poll()
    assert swap is None or not swap.accepted
    after = shop.select("list the orders")
    assert (after["menu"], after["versions"]) == (before["menu"], before["versions"])
    assert shop.client.get("/readyz").status_code == 200
    write_catalog(shop.folder / "catalog.jsonl", [*TOOLS, NEW])
    poll(shop)
    assert "music.play" in shown(shop.select("play a song"))


def test_a_request_in_flight_ends_on_what_it_began_with(shop: Shop) -> None:
    began, held = Event(), Event()
    old = shop.assembly.watch.live.current
    judge = old.judge

    def slow(*given: object, **named: object) -> object:
        began.set()
        held.wait(30)
        return judge(*given, **named)  # type: ignore[arg-type]

    old.judge = slow  # type: ignore[method-assign,assignment]
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(shop.select, "list the orders")
        assert began.wait(30)
        write_catalog(shop.folder / "catalog.jsonl", [row for row in TOOLS if row["tool_id"] != "shop.orders"])
        poll(shop)
        assert shop.assembly.watch.live.current is not old
        held.set()
        found = answer.result(30)
    assert found["versions"]["catalog"] == old.versions.catalog
    assert "shop.orders" in shown(found)
    assert "shop.orders" not in json.dumps(found["rendered"]), "a card that is gone has nothing to be shown by"
    assert shop.check(found["slice_id"], "shop.orders")["rule"] == "not_available"


# the policy and the grants


@pytest.fixture
def ruled(tmp_path: Path) -> Iterator[Shop]:
    policy = tmp_path / "policy.yaml"
    policy.write_text(json.dumps({"rules": [{"name": "open", "verdict": "allow"}]}))
    with open_shop(tmp_path, policy=policy) as opened:
        yield opened


def test_a_changed_policy_holds_from_the_next_request_on(ruled: Shop) -> None:
    found = ruled.select("cancel the order")
    arguments = {"order": "A-1", "amount": 1}
    assert ruled.check(found["slice_id"], "shop.cancel", arguments)["rule"] == "open"
    (ruled.folder / "policy.yaml").write_text(json.dumps(CLOSED))
    assert ruled.check(found["slice_id"], "shop.cancel", arguments)["rule"] == "closed"
    closed = ruled.select("cancel the order")
    assert not closed["cached"]
    assert {entry["verdict"] for entry in closed["menu"]} == {"deny"}
    assert closed["rendered"] == {"prefix": "", "turn": ""}, "what may not be called is not shown to the model"
    assert ruled.figure("swaps_total", what="policy", accepted="true") == 1


def test_a_broken_policy_is_refused_and_the_old_one_stays(ruled: Shop) -> None:
    (ruled.folder / "policy.yaml").write_text("rules: [{name: x, verdict: perhaps}]")
    assert ruled.select("cancel the order")["menu"][0]["rule"] == "open"
    assert ruled.figure("policy_refused") == 1


def test_the_policy_stays_across_a_new_catalog(ruled: Shop) -> None:
    (ruled.folder / "policy.yaml").write_text(json.dumps(CLOSED))
    assert ruled.select("cancel the order")["menu"][0]["rule"] == "closed"
    write_catalog(ruled.folder / "catalog.jsonl", [*TOOLS, NEW])
    poll(ruled)
    assert ruled.select("play a song")["menu"][0]["rule"] == "closed"


def test_a_grant_that_is_given_and_taken_away_again_holds_at_once(shop: Shop) -> None:
    goal = "show the balance of an account"
    assert "ledger.balance" not in json.dumps(shop.select(goal))
    write_config(shop.folder / "service.yaml", {**PEOPLE, "ann": {"tenant": "acme", "scopes": ["accounts"]}})
    granted = shop.select(goal)
    assert "ledger.balance" in shown(granted)
    assert shop.check(granted["slice_id"], "ledger.balance")["verdict"] == "allow"
    write_config(shop.folder / "service.yaml", PEOPLE)
    refused = shop.check(granted["slice_id"], "ledger.balance")
    assert refused["rule"] == "not_available"
    assert "ledger.balance" not in json.dumps(refused)
    assert "ledger.balance" not in json.dumps(shop.select(goal))


def test_a_key_that_is_taken_out_of_the_file_opens_nothing_any_more(shop: Shop) -> None:
    slice_id = shop.select()["slice_id"]
    write_config(shop.folder / "service.yaml", {name: PEOPLE[name] for name in PEOPLE if name != "ann"})
    error_of(shop.post("/v1/check", {"slice_id": slice_id, "tool_id": "shop.refund"}), 401, "unauthenticated")


def test_while_the_grants_cannot_be_read_nobody_is_let_in(shop: Shop) -> None:
    (shop.folder / "service.yaml").write_text("identity: {keys: [")
    answer = shop.post("/v1/select", {"goal": "a"})
    error_of(answer, 503, "identity_unavailable")
    assert answer.headers["retry-after"]
    write_config(shop.folder / "service.yaml")
    assert shop.select()["menu"]


# bundles


@pytest.fixture
def modelled(own_bundle: Path, trained: Trained, tmp_path: Path) -> Iterator[Shop]:
    """The service on the small workshop that models are trained on, with its bundle."""
    save_catalog(tmp_path / "tools.jsonl", trained.catalog)
    tools = [json.loads(line) for line in (tmp_path / "tools.jsonl").read_text().splitlines()]
    (tmp_path / "served").mkdir()
    with open_shop(tmp_path / "served", tools, bundle=bundle_source(own_bundle)) as opened:
        yield opened


def test_a_trained_bundle_gives_relevance_and_says_when_nothing_fits(modelled: Shop) -> None:
    found = modelled.select(tiny.goals("weather.get_forecast")[0])
    best = min((entry for entry in found["menu"] if entry["rank"] is not None), key=lambda entry: entry["rank"])
    assert best["tool_id"] == "weather.get_forecast"
    assert 0.0 <= best["relevance"] <= 1.0
    assert found["versions"]["bundle"] != "none"
    assert modelled.figure("stage_seconds_count", stage="rerank") == 1


@pytest.mark.parametrize("name", [MANIFEST, "retriever.onnx", "tokenizer.json"])
def test_a_bundle_that_was_damaged_is_refused_and_the_old_one_serves_on(
    modelled: Shop, own_bundle: Path, name: str
) -> None:
    before = modelled.select("send the email for anna")
    damaged = bytearray((own_bundle / name).read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    (own_bundle / name).write_bytes(damaged)
    swap = modelled.assembly.watch.poll()
    assert swap is None or not swap.accepted
    after = modelled.select("send the email for anna")
    assert (after["menu"], after["versions"]) == (before["menu"], before["versions"])
    (own_bundle / name).unlink()
    poll(modelled)
    assert modelled.select("send the email for bob")["versions"] == before["versions"]


def test_scores_that_are_no_numbers_cost_order_and_never_the_answer_or_a_permission(
    modelled: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing_but_nan(*_: object, **__: object) -> object:
        raise FloatingPointError("NaN in /srv/models/secret.onnx")

    selector = modelled.assembly.watch.live.current
    monkeypatch.setattr(selector.encoder, "encode", nothing_but_nan)
    found = modelled.select("transfer the payment in a hurry")
    assert "bank.transfer_money" in shown(found)
    assert "bank.get_balance" not in json.dumps(found), "it needs a scope"
    assert found["degradations"][0]["stage"] == "encode"
    assert "secret" not in json.dumps(found)
    assert modelled.figure("degradations_total", stage="encode") == 1
    assert not modelled.select("transfer the payment in a hurry")["cached"], "a passing failure is not kept"


def test_vectors_are_kept_where_words_are_not(own_bundle: Path, trained: Trained, tmp_path: Path) -> None:
    save_catalog(tmp_path / "tools.jsonl", trained.catalog)
    tools = [json.loads(line) for line in (tmp_path / "tools.jsonl").read_text().splitlines()]
    for keep_text, kept in ((True, False), (False, True)):
        (folder := tmp_path / str(keep_text)).mkdir()
        with open_shop(folder, tools, bundle=bundle_source(own_bundle), traces={"keep_text": keep_text}) as shop:
            slice_id = shop.select("send the email for anna")["slice_id"]
            decision = Ledger(shop.assembly.database).decision(slice_id)
            assert decision is not None
            assert (decision.embedding is not None) is kept

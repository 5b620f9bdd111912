"""What operators can say of a decision afterwards, and how slices are found again after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shop import PEOPLE, Shop, error_of, open_shop

REFUND = {"order": "A-17", "amount": 12.5}


def explained(shop: Shop, slice_id: str, tool_id: str, who: str = "olga") -> Any:
    answer = shop.get("/v1/explain", who, slice=slice_id, tool=tool_id)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_an_operator_learns_why_a_tool_was_and_was_not_shown(shop: Shop) -> None:
    slice_id = shop.select("refund the order", mutation=False)["slice_id"]
    hidden = explained(shop, slice_id, "vault.open_safe")
    assert (hidden["shown"], hidden["summary"]) == (False, "vault.open_safe was dropped in stage 'mask' by 'tenant'.")
    assert "'scopes'" in explained(shop, slice_id, "ledger.balance")["summary"]
    assert "stage 'filter'" in explained(shop, slice_id, "shop.refund")["summary"]
    core = explained(shop, slice_id, "help.topics")
    assert core["shown"]
    assert "dropped" not in {stage["fate"] for stage in core["stages"]}
    assert "was not in catalog" in explained(shop, slice_id, "no.such_tool")["summary"]


def test_an_operator_sees_the_whole_slice(shop: Shop) -> None:
    slice_id = shop.select()["slice_id"]
    whole = shop.get(f"/v1/slices/{slice_id}", "olga").json()
    assert (whole["tenant"], whole["principal"]) == ("acme", "ann")
    assert whole["slice"]["slice_id"] == slice_id
    mask = next(stage for stage in whole["slice"]["record"] if stage["stage"] == "mask")
    assert mask["dropped"]["vault.open_safe"] == "tenant"


@pytest.mark.parametrize("who", [name for name, grant in PEOPLE.items() if not grant.get("operator")])
def test_nobody_else_does(shop: Shop, who: str) -> None:
    slice_id = shop.select()["slice_id"]
    error_of(shop.get(f"/v1/slices/{slice_id}", who), 403, "not_permitted")
    error_of(shop.get("/v1/explain", who, slice=slice_id, tool="shop.refund"), 403, "not_permitted")


def test_an_operator_of_one_tenant_does_not_see_anothers_slices(shop: Shop) -> None:
    slice_id = shop.select("open the safe", "rita")["slice_id"]
    theirs, never = (shop.get(f"/v1/slices/{one}", "olga") for one in (slice_id, "never"))
    assert error_of(theirs, 404, "unknown_slice") == error_of(never, 404, "unknown_slice")
    assert shop.get(f"/v1/slices/{slice_id}", "otto").json()["tenant"] == "rival"


def test_a_slice_is_found_again_by_its_owner_after_a_restart(tmp_path: Path) -> None:
    with open_shop(tmp_path) as shop:
        slice_id = shop.select()["slice_id"]
    with open_shop(tmp_path) as shop:
        assert shop.check(slice_id, "shop.refund", REFUND)["verdict"] == "dry_run"
        assert shop.check(slice_id, "shop.refund", REFUND, who="bob")["rule"] == "unknown_slice"
        again = shop.ok(
            "/v1/select", {"after": {"slice_id": slice_id, "tool_id": "shop.refund", "error_class": "auth"}}
        )
        assert again["recovery"]["tries"] == 1
        assert explained(shop, slice_id, "vault.open_safe")["shown"] is False


def test_where_texts_are_not_kept_slices_are_still_found_by_their_owner(tmp_path: Path) -> None:
    private = {"traces": {"keep_text": False}}
    with open_shop(tmp_path, **private) as shop:
        slice_id = shop.select("refund the order of Zebulon")["slice_id"]
        shop.report("k", slice_id, "shop.refund", arguments={"order": "A-4711"})
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("traces.*"))
    assert b"Zebulon" not in kept
    assert b"A-4711" not in kept
    with open_shop(tmp_path, **private) as shop:
        assert shop.check(slice_id, "shop.refund", REFUND)["verdict"] == "dry_run"
        assert shop.check(slice_id, "shop.refund", REFUND, who="bob")["rule"] == "unknown_slice"
        after = {"slice_id": slice_id, "tool_id": "shop.refund", "error_class": "auth"}
        assert error_of(shop.post("/v1/select", {"after": after}), 400, "invalid_request")["path"] == "$.after.slice_id"
        whole = shop.get(f"/v1/slices/{slice_id}", "olga").json()
        assert whole["principal"] != "ann"
        assert "refund" not in whole["slice"]["subgoal"]["goal"]

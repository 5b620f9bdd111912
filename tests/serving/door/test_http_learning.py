"""Learning at once over HTTP, where it is on: the next request of the tenant knows a kept success, and no more."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import tiny
from shop import Shop, open_shop, shown
from tiny import Trained

from serving.bundle import load_bundle, seal
from serving.settings import SelectorSettings
from serving.watch import bundle_source

GOAL = "append to the note for anna"


@pytest.fixture(scope="module")
def patient(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trained bundle, turning nobody away."""
    folder = tmp_path_factory.mktemp("patient") / "bundle"
    shutil.copytree(trained.bundle, folder)
    manifest = load_bundle(trained.bundle).manifest
    seal(folder, manifest.model_copy(update={"missing_below": 0.0, "widen_below": 0.0}))
    return folder


@contextmanager
def opened(bundle: Path, folder: Path, **selector: Any) -> Iterator[Shop]:
    tools = [json.loads(card.model_dump_json()) for card in tiny.catalog()]
    how = {"selector": {"explore_rate": 0.0, "learn_at_once": True, **selector}}
    with open_shop(folder, tools, bundle=bundle_source(bundle), **how) as shop:
        yield shop


@pytest.fixture
def shop(patient: Path, tmp_path: Path) -> Iterator[Shop]:
    with opened(patient, tmp_path) as made:
        yield made


def counts(shop: Shop, tenant: str = "acme") -> float:
    """How many successes a tenant knows of the tool that the log never calls."""
    live = shop.assembly.watch.live.current
    memory = live.memory(tenant)
    assert memory is not None
    return float(memory.counts[live.catalog.row[tiny.NEVER_USED]])


def asked(shop: Shop, who: str = "ann", **more: Any) -> Any:
    answer = shop.select(GOAL, who, **more)
    assert tiny.NEVER_USED in shown(answer)
    return answer


def test_a_reported_success_counts_at_once_for_its_tenant_alone(shop: Shop) -> None:
    assert counts(shop) == 0.0
    shop.report("1", asked(shop)["slice_id"], tiny.NEVER_USED)
    assert counts(shop) == 1.0
    assert counts(shop, "rival") == 0.0
    assert not asked(shop)["cached"]
    assert asked(shop)["cached"]


def test_the_same_success_reported_again_is_known(shop: Shop) -> None:
    for key in ("1", "1", "2"):
        shop.report(key, asked(shop)["slice_id"], tiny.NEVER_USED)
    assert counts(shop) == 1.0


@pytest.mark.parametrize(
    "outcome",
    [
        {"outcome": "failure", "error_class": "tool_error"},
        {"outcome": "unknown"},
        {"task_success": False},
        {"dry_run": True},
    ],
    ids=["failed", "unknown", "the task failed", "a dry run"],
)
def test_what_is_no_success_counts_as_none(shop: Shop, outcome: dict[str, Any]) -> None:
    shop.report("1", asked(shop)["slice_id"], tiny.NEVER_USED, **outcome)
    assert counts(shop) == 0.0


@pytest.mark.parametrize(
    ("outcome", "lost"),
    [
        ({"error_class": "tool_error"}, 1),
        ({"error_class": "none"}, 1),
        ({"error_class": "timeout"}, 0),
        ({"error_class": "validation"}, 0),
        ({"error_class": "tool_error", "dry_run": True}, 0),
    ],
)
def test_a_reported_failure_lowers_the_rate_of_a_tool_whose_fault_it_was(
    shop: Shop, outcome: dict[str, Any], lost: int
) -> None:
    before = asked(shop)
    shop.report("1", before["slice_id"], tiny.NEVER_USED, outcome="failure", **outcome)
    live = shop.assembly.watch.live.current
    memory = live.memory("acme")
    assert memory is not None
    assert memory.failed_calls[live.catalog.row[tiny.NEVER_USED]] == lost
    assert counts(shop) == 0.0
    assert asked(shop)["cached"] == (lost == 0)


def test_a_tool_that_the_menu_did_not_offer_is_not_learned(patient: Path, tmp_path: Path) -> None:
    with opened(patient, tmp_path, max_tools=2) as short:
        answer = short.select("send the email to anna")
        assert tiny.NEVER_USED not in shown(answer)
        short.report("1", answer["slice_id"], tiny.NEVER_USED)
        assert counts(short) == 0.0


def test_nobody_teaches_by_a_slice_that_is_not_theirs(shop: Shop) -> None:
    slice_id = asked(shop)["slice_id"]
    shop.report("1", slice_id, tiny.NEVER_USED, who="rita")
    shop.report("2", "no such slice", tiny.NEVER_USED)
    assert counts(shop) == counts(shop, "rival") == 0.0


def test_a_step_of_several_teaches_its_own_words(shop: Shop) -> None:
    answer = shop.ok("/v1/select", {"subgoals": [{"goal": GOAL}, {"goal": "show the weather in berlin"}]})
    shop.report("1", answer["slice_id"], tiny.NEVER_USED)
    known = shop.assembly.watch.live.current._lately.of("acme")
    assert [(outcome.query, outcome.tool_id) for outcome, _ in known] == [(GOAL, tiny.NEVER_USED)]


def test_unless_it_is_asked_for_a_success_waits_for_the_next_training(patient: Path, tmp_path: Path) -> None:
    with opened(patient, tmp_path, learn_at_once=SelectorSettings().learn_at_once) as still:
        still.report("1", asked(still)["slice_id"], tiny.NEVER_USED)
        assert counts(still) == 0.0

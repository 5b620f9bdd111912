"""Swaps: what serves before, while and after a new selector is loaded, and what is refused."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import numpy as np
import pytest
import tiny
from tiny import Trained

from data.cards import Requires, ToolCard
from data.catalog import Catalog
from data.context import Caller
from data.errors import BundleError
from serving.embedding_cache import EmbeddingCache
from serving.encoder import Encoded
from serving.explore import Showings
from serving.live import Live, UnfitError, verify
from serving.policy import PolicyRule, RiskPolicy
from serving.selector import Selector
from serving.slice_cache import SliceCache

GOAL = "send the email"
NEW = ToolCard(
    tool_id="music.play_song", name="play_song", description="Play a song.", requires=Requires(scopes=("m",))
)
CLOSED = RiskPolicy(rules=(PolicyRule(name="closed", verdict="deny"),))


def without_mail() -> Catalog:
    return Catalog(card for card in tiny.catalog() if card.tool_id != "mail.send_message")


def plain(catalog: Catalog | None = None) -> Selector:
    return Selector.load(None, catalog or tiny.catalog())


def ranked(selector: Selector) -> set[str]:
    return set(selector.select(GOAL, request_id="r").ranking)


def test_a_swap_serves_the_new_one_and_what_was_removed_is_gone() -> None:
    live = Live(plain())
    old = live.current
    swap = live.swap(lambda: plain(without_mail()))
    assert swap.accepted
    assert swap.changed
    assert (swap.before, swap.after) == (old.versions, live.current.versions)
    assert "mail.send_message" not in ranked(live.current)
    assert "mail.send_message" in ranked(old), "a request that began before ends on what it began with"


def test_a_cached_menu_does_not_outlive_its_catalog() -> None:
    live, kept = Live(plain()), SliceCache()
    for _ in range(2):
        assert "mail.send_message" in kept.ask(live.current, GOAL, Caller()).slice.ranking
    live.swap(lambda: plain(without_mail()))
    found = kept.ask(live.current, GOAL, Caller())
    assert not found.cached
    assert "mail.send_message" not in found.slice.ranking


def fails() -> Selector:
    raise BundleError("/bundles/7: 'retriever.onnx' is missing")


def crashes() -> Selector:
    raise MemoryError


@pytest.mark.parametrize(("build", "said"), [(fails, "'retriever.onnx' is missing"), (crashes, "MemoryError")])
def test_what_cannot_be_loaded_is_refused_and_the_old_one_serves_on(
    build: Callable[[], Selector], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    live = Live(plain())
    old = live.current
    with caplog.at_level(logging.WARNING):
        swap = live.swap(build)
    assert not swap.accepted
    assert said in swap.problem
    assert said in caplog.text
    assert live.current is old
    assert not swap.changed


def test_an_encoder_that_fails_is_found_before_it_serves_also_where_all_is_embedded_already(trained: Trained) -> None:
    embeddings = EmbeddingCache()

    def broken() -> Selector:
        selector = Selector.load(trained.bundle, tiny.catalog(), embeddings=embeddings)
        assert selector.encoder is not None
        dimension = selector.encoder.dimension

        def nothing_but_nan(*_: object, **__: object) -> Encoded:
            return Encoded(np.full((1, dimension), np.nan, np.float32), None)

        selector.encoder.encode = nothing_but_nan  # type: ignore[method-assign]
        return selector

    live = Live(Selector.load(trained.bundle, tiny.catalog(), embeddings=embeddings))
    verify(live.current)
    swap = live.swap(broken)
    assert not swap.accepted
    assert "a vector is not finite" in swap.problem
    with pytest.raises(UnfitError, match="encode"):
        verify(broken())


def test_a_head_that_fails_is_found_before_it_serves(trained: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("bad head")

    selector = Selector.load(trained.bundle, tiny.catalog())
    monkeypatch.setattr("serving.models.relevance", fail)
    with pytest.raises(UnfitError, match="relevance: the head failed"):
        verify(selector)


def test_a_catalog_of_guarded_tools_is_verified_on_the_tools_themselves(trained: Trained) -> None:
    guarded = Catalog(
        [*(card.model_copy(update={"requires": Requires(scopes=("x",))}) for card in tiny.catalog()), NEW]
    )
    verify(Selector.load(trained.bundle, guarded))


def test_what_belongs_to_the_operation_survives_a_swap() -> None:
    live = Live(plain())
    live.set_unavailable(["bank.get_balance"])
    live.set_policy(CLOSED)
    live.swap(lambda: plain(without_mail()))
    assert live.current.unavailable == {"bank.get_balance"}
    assert live.current.policy == CLOSED
    found = live.current.select("check the account", Caller(scopes=("accounts",)), request_id="r")
    assert "bank.get_balance" not in found.ranking
    assert {entry.verdict for entry in found.menu} == {"deny"}


def test_what_exploration_has_spent_survives_a_swap_and_is_part_of_the_versions() -> None:
    live = Live(plain())
    before = live.current.versions
    live.set_showings(Showings({"mail.send_message": 3}))
    assert live.current.versions == before._replace(showings=Showings({"mail.send_message": 3}).version) != before
    live.swap(lambda: plain(without_mail()))
    assert live.current.versions.showings == Showings({"mail.send_message": 3}).version


def test_a_swap_brings_its_own_policy_where_none_was_set() -> None:
    live = Live(plain())
    live.swap(lambda: Selector.load(None, tiny.catalog(), policy=CLOSED))
    assert live.current.policy == CLOSED


def test_swaps_at_the_same_time_take_turns() -> None:
    live, inside, most = Live(plain()), [0], [0]
    catalogs = [Catalog(tiny.catalog().cards[: 4 + number]) for number in range(6)]

    def build(catalog: Catalog) -> Selector:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        made = plain(catalog)
        inside[0] -= 1
        return made

    threads = [threading.Thread(target=live.swap, args=(lambda c=c: build(c),)) for c in catalogs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert live.current.catalog.version in {catalog.version for catalog in catalogs}


def test_requests_go_on_while_another_selector_is_loaded() -> None:
    live, loading, go, swaps = Live(plain()), threading.Event(), threading.Event(), list[bool]()

    def slow() -> Selector:
        loading.set()
        assert go.wait(30)
        return plain(without_mail())

    swapping = threading.Thread(target=lambda: swaps.append(live.swap(slow).accepted))
    swapping.start()
    assert loading.wait(30)
    assert "mail.send_message" in ranked(live.current)
    live.set_unavailable(["maps.find_route"])
    go.set()
    swapping.join(30)
    assert swaps == [True]
    assert "mail.send_message" not in ranked(live.current)
    assert live.current.unavailable == {"maps.find_route"}, "also what changed while it was loaded"


def test_every_answer_is_of_one_selector_or_the_other_while_they_are_swapped() -> None:
    small, large = without_mail(), tiny.catalog()
    live = Live(plain(large))
    expected = {c.version: plain(c).select(GOAL, request_id="r").canonical() for c in (small, large)}
    wrong, done = list[str](), threading.Event()

    def ask() -> None:
        while not done.is_set():
            found = live.current.select(GOAL, request_id="r")
            if found.canonical() != expected[found.catalog_version]:
                wrong.append(found.catalog_version)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        accepted = [live.swap(lambda c=(small, large)[number % 2]: plain(c)).accepted for number in range(6)]
    finally:
        done.set()
        asking.join()
    assert all(accepted)
    assert wrong == []


# Watching

"""What one tenant keeps for itself is nothing to another: not a word of a slice, not a digit of a score."""

from __future__ import annotations

import json

import numpy as np
import tiny
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny import Trained

from data.cards import ToolCard
from data.catalog import Catalog
from data.context import Caller
from serving.bundle import Bundle, load_bundle
from serving.lexical import LexicalIndex
from serving.selector import Selector
from serving.settings import SelectorSettings

OURS = Caller(principal="ann", tenant="acme", scopes=("accounts",))
HOW = SelectorSettings(explore_rate=0.5)
QUERIES = ("send the email for anna", "transfer the payment", "forcast of the wether", "gethttpresponse")

words = st.sampled_from(
    (
        *("send", "email", "message", "payment", "weather", "forecast", "account", "zebra", "get"),
        *("forcasts", "getHTTPResponse", "sendEmail2", "whether"),
    )
)
texts = st.lists(words, min_size=1, max_size=12).map(" ".join)
private = st.lists(
    st.builds(
        lambda name, text, number: ToolCard(
            tool_id=f"rival.{name}{number}", name=name, domain="rival", description=text, tenants=("rival",)
        ),
        st.sampled_from(("send_message", "getHTTPResponse", "weather", "pay")),
        texts,
        st.integers(0, 10**6),
    ),
    max_size=6,
    unique_by=lambda card: card.tool_id,
)


def own() -> list[ToolCard]:
    return [*tiny.catalog(), ToolCard(tool_id="acme.zebra", name="zebra", description="Stripes", tenants=("acme",))]


def mixed(theirs: list[ToolCard], places: list[int]) -> Catalog:
    """Our cards in their order with theirs in between."""
    cards = own()
    for card, place in zip(theirs, places, strict=False):
        cards.insert(place % (len(cards) + 1), card)
    return Catalog(cards)


def seen(selector: Selector, query: str) -> str:
    """The slice as its caller gets it, with the scores of its stages; only what names a version is left out."""
    found = selector.select(query, OURS, request_id="r")
    rest = found.model_dump(mode="json", exclude={"catalog_version", "slice_id", "timings_ms", "record"})
    stages = [stage.model_dump(mode="json") for stage in found.record if stage.stage != "mask"]
    return json.dumps([rest, stages])


def assert_apart(bundle: Bundle | None, theirs: list[ToolCard], places: list[int], query: str) -> None:
    alone = Selector(bundle, Catalog(own()), settings=HOW)
    beside = Selector(bundle, mixed(theirs, places), settings=HOW)
    followed = Selector(bundle, mixed(theirs[1:], places), settings=HOW, earlier=beside)
    assert seen(beside, query) == seen(alone, query)
    assert seen(followed, query) == seen(alone, query)


@given(private, st.lists(st.integers(0, 30), min_size=6, max_size=6), st.sampled_from(QUERIES) | texts)
@settings(max_examples=60, deadline=None)
def test_anothers_private_cards_change_nothing_by_keywords(
    theirs: list[ToolCard], places: list[int], query: str
) -> None:
    assert_apart(None, theirs, places, query)


@given(private, st.lists(st.integers(0, 30), min_size=6, max_size=6), st.sampled_from(QUERIES) | texts)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_anothers_private_cards_change_nothing_with_a_model(
    trained: Trained, theirs: list[ToolCard], places: list[int], query: str
) -> None:
    assert_apart(load_bundle(trained.bundle), theirs, places, query)


def test_ones_own_private_cards_count() -> None:
    """What makes the tests above worth something: the words of a visible card do shift the scores."""
    more = ToolCard(tool_id="acme.more", name="more", description="email email email", tenants=("acme",))
    rows = slice(0, len(own()))
    before = LexicalIndex.build(own())
    after = LexicalIndex.build([*own(), more])
    assert not np.array_equal(before.scores("email", "acme").bm25, after.scores("email", "acme").bm25[rows])
    assert np.array_equal(before.scores("email", "rival").bm25, after.scores("email", "rival").bm25[rows])
    assert np.array_equal(before.scores("email", "").bm25, after.scores("email", "").bm25[rows])


def test_anothers_word_is_an_unknown_word() -> None:
    """A slip is not mended towards a word that only another tenant has, and that word itself is mended like a slip."""
    cards = [
        ToolCard(tool_id="shared.calendar", name="calendar"),
        ToolCard(tool_id="rival.calender", name="calender", tenants=("rival",)),
    ]
    index = LexicalIndex.build(cards)
    assert index.scores("calender", "acme").bm25[0] > 0, "taken for a slip"
    assert index.scores("calender", "rival").bm25[0] == 0, "their word as it is"
    alone = LexicalIndex.build(cards[:1])
    assert index.scores("calendxr", "acme").bm25.tolist() == [*alone.scores("calendxr").bm25.tolist(), 0.0]

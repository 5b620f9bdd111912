"""Whatever happens in a registry: served is what is approved, and an index that followed is one built afresh."""

from __future__ import annotations

import dataclasses
import re
import tempfile
from pathlib import Path

import numpy as np
import tiny
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tiny import Trained

from data.cards import Risk, ToolCard
from data.catalog import Catalog
from data.registry import State, content_of
from data.store.approved import Approved
from data.store.database import open_database
from data.store.registry import Registry
from serving.bundle import Bundle, load_bundle
from serving.following import Watch
from serving.index import Index, build_index
from serving.search_tool import SEARCH_TOOLS_ID, with_search_tool
from serving.selector import Selector
from serving.settings import SelectorSettings

NAMES = ("send_letter", "read_mailbox", "pay_invoice", "book_flight", "draw_picture")
VERSIONS = ("amber", "birch", "cedar")
"""A word that one version of a card has and no other."""
HOW = SelectorSettings(explore_rate=0.0)
FOREIGN = SelectorSettings(allow_foreign_catalog=True)
MARK = re.compile(
    r"\b(?:" + "|".join(f"{version}{name.partition('_')[0]}" for version in VERSIONS for name in NAMES) + r")\b"
)


def card(name: str, version: str) -> ToolCard:
    verb, _, noun = name.partition("_")
    said = f"{verb.title()} a {noun} the {version}{verb} way."
    return ToolCard(
        tool_id=f"post.{name}", name=name, domain="post", summary=said, description=said, risk=Risk.READ_ONLY
    )


cards = st.builds(card, st.sampled_from(NAMES), st.sampled_from(VERSIONS))
sources = st.lists(cards, max_size=len(NAMES), unique_by=lambda one: one.tool_id)


def build(catalog: Catalog, bundle: Bundle | None, earlier: Selector | None) -> Selector:
    return Selector(bundle, with_search_tool(catalog), settings=HOW, earlier=earlier)


def assert_the_same(followed: Index, fresh: Index) -> None:
    """Every array to the last bit; of the lexical side every score, whose numbers of tokens are its own business."""
    assert followed.catalog.version == fresh.catalog.version
    for field in ("risk", "cost", "p50", "domain", "vectors"):
        np.testing.assert_array_equal(getattr(followed, field), getattr(fresh, field))
    assert (followed.keys, followed.encoded_by) == (fresh.keys, fresh.encoded_by)
    if fresh.tokens is not None:
        assert followed.tokens is not None
        np.testing.assert_array_equal(followed.tokens.tokens, fresh.tokens.tokens)
        np.testing.assert_array_equal(followed.tokens.start, fresh.tokens.start)
    words = {word for one in fresh.catalog for word in f"{one.name} {one.description} {one.tool_id}".split()}
    for query in (*words, " ".join(sorted(words)), "send lettr", "readmailbox", *VERSIONS):
        for tenant in (None, "", "acme", "rival"):
            one, two = followed.lexical.scores(query, tenant), fresh.lexical.scores(query, tenant)
            for found in dataclasses.fields(one):
                np.testing.assert_array_equal(getattr(one, found.name), getattr(two, found.name))


class Following(RuleBasedStateMachine):
    """A source that changes at will, a person who decides at will, and a service that looks now and then."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.database = open_database(Path(self.folder.name) / "r.db")
        self.registry = Registry(self.database)
        self.watch = Watch(Approved(self.database), None, build)

    @rule(now=sources)
    def import_(self, now: list[ToolCard]) -> None:
        self.registry.offer(now, "post", "job")

    @rule()
    def approve_all(self) -> None:
        self.registry.approve_all("anna")

    @precondition(lambda self: any(tool.pending for tool in self.registry.waiting()))
    @rule(data=st.data())
    def approve_one(self, data: st.DataObject) -> None:
        tool = data.draw(st.sampled_from(self.registry.waiting()))
        self.registry.approve(tool.tool_id, tool.pending[-1], "anna")

    @precondition(lambda self: self.registry.shown())
    @rule(data=st.data())
    def retire_or_roll_back(self, data: st.DataObject) -> None:
        shown = data.draw(st.sampled_from(self.registry.shown()))
        states = self.registry.tool(shown.tool_id).states
        version = data.draw(st.sampled_from(sorted(states)))
        if version == content_of(shown):
            self.registry.reject(shown.tool_id, version, "anna")
        else:
            self.registry.approve(shown.tool_id, version, "anna", despite="as it was")

    def serving(self) -> Selector:
        """What serves after the next look."""
        self.watch.poll()
        return self.watch.live.current

    @invariant()
    def what_is_served_is_what_is_approved(self) -> None:
        serving = self.serving()
        assert [one for one in serving.catalog if one.tool_id != SEARCH_TOOLS_ID] == self.registry.shown()
        assert serving.unavailable == frozenset()

    @invariant()
    def what_is_approved_is_found_by_what_it_says(self) -> None:
        serving = self.serving()
        for one in self.registry.shown():
            for query in (one.name, one.summary):
                assert one.tool_id in serving.select(query, request_id="r").ranking[:1]

    @invariant()
    def what_is_not_approved_is_nowhere(self) -> None:
        serving, shown = self.serving(), {content_of(one) for one in self.registry.shown()}
        said = serving.select("post", request_id="r").canonical() + " ".join(serving.catalog.texts)
        approved_marks = {mark for one in self.registry.shown() for mark in MARK.findall(one.description)}
        assert set(MARK.findall(said)) <= approved_marks
        for name in NAMES:
            for version in VERSIONS:
                if content_of(card(name, version)) not in shown:
                    assert not serving.index.lexical.scores(version + name.partition("_")[0]).bm25.any()

    @invariant()
    def the_index_is_the_one_built_afresh(self) -> None:
        serving = self.serving()
        assert_the_same(serving.index, build_index(serving.catalog, None, None, None))

    def teardown(self) -> None:
        if hasattr(self, "database"):
            self.database.close()
            self.folder.cleanup()


TestFollowing = Following.TestCase
TestFollowing.settings = settings(
    max_examples=6, stateful_step_count=8, deadline=None, suppress_health_check=list(HealthCheck)
)


def changed(one: ToolCard, change: str) -> ToolCard:
    if change == "text":
        return one.model_copy(update={"description": f"{one.description} Then say so."})
    if change == "tenant":
        return one.model_copy(update={"tenants": ("acme",)})
    return one.model_copy(update={"cost_usd": 0.5})


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(tiny.catalog().ids), st.sampled_from(("as it was", "text", "tenant", "cost")), min_size=1
        ),
        min_size=2,
        max_size=4,
    ),
    st.randoms(use_true_random=False),
)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_with_a_model_an_index_that_followed_any_changes_is_the_one_built_afresh(
    trained: Trained, catalogs: list[dict[str, str]], order: object
) -> None:
    bundle, selector = load_bundle(trained.bundle), None
    for listed in catalogs:
        made = [
            tiny.catalog()[tool] if change == "as it was" else changed(tiny.catalog()[tool], change)
            for tool, change in listed.items()
        ]
        order.shuffle(made)  # type: ignore[attr-defined]
        selector = Selector(bundle, with_search_tool(Catalog(made)), settings=FOREIGN, earlier=selector)
    assert selector is not None
    fresh = Selector(bundle, with_search_tool(Catalog(made)), settings=FOREIGN)
    assert_the_same(selector.index, fresh.index)
    for goal in ("send the email for anna", made[0].description):
        assert selector.select(goal, request_id="r").canonical() == fresh.select(goal, request_id="r").canonical()


def test_states_other_than_approved_are_all_met(tmp_path: Path) -> None:
    """What the machine above relies on: each of these ends what is shown."""
    database = open_database(tmp_path / "r.db")
    registry, watch = Registry(database), Watch(approved := Approved(database), None, build)
    one, two, three = (card(name, "amber") for name in NAMES[:3])
    registry.offer([one, two, three], "post", "job")
    registry.approve_all("anna")
    assert watch.poll() is not None
    registry.reject(one.tool_id, content_of(one), "anna")
    registry.offer([one, three], "post", "job")
    registry.offer([one, card(NAMES[2], "birch")], "post", "job")
    assert watch.poll() is not None
    states = {tool: list(registry.tool(tool).states.values())[-1].state for tool in (one.tool_id, two.tool_id)}
    assert states == {one.tool_id: State.REJECTED, two.tool_id: State.RETIRED}
    assert approved.load().cards == (three,), "its change waits"
    database.close()

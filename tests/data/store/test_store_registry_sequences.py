"""The registry over any sequence of imports and decisions: nothing unapproved is ever shown, nothing is forgotten."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from data.cards import ToolCard
from data.catalog import Catalog
from data.registry import State, content_of
from data.store.database import open_database
from data.store.registry import Registry

NAMES = ("send_mail", "read_mail", "pay_bill")
cards = st.builds(
    lambda name, version: ToolCard(
        tool_id=f"post.{name}", name=name, domain="post", description=f"Does {name} for everybody in way {version}."
    ),
    st.sampled_from(NAMES),
    st.integers(0, 2),
)
sources = st.lists(cards, max_size=3, unique_by=lambda card: card.tool_id)


class Sequences(RuleBasedStateMachine):
    """A source that changes at will, and a person who decides at will; `allowed` is what the person has said yes to."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.database = open_database(Path(self.folder.name) / "r.db")
        self.registry = Registry(self.database)
        self.offered: dict[str, ToolCard] = {}
        self.allowed: set[str] = set()
        self.handed_out: list[Catalog] = []

    @rule(now=sources)
    def import_(self, now: list[ToolCard]) -> None:
        self.registry.offer(now, "post", "job")
        self.offered = {card.tool_id: card for card in now}

    @rule()
    def approve_all(self) -> None:
        self.allowed |= {content for tool in self.registry.waiting() for content in tool.pending}
        self.registry.approve_all("anna")

    @precondition(lambda self: self.registry.waiting())
    @rule(data=st.data())
    def reject(self, data: st.DataObject) -> None:
        tool = data.draw(st.sampled_from(self.registry.waiting()))
        self.registry.reject(tool.tool_id, tool.pending[-1], "anna")
        self.allowed.discard(tool.pending[-1])

    @rule()
    def hand_out(self) -> None:
        self.handed_out.append(self.registry.catalog())

    @invariant()
    def only_what_was_allowed_and_is_still_offered_is_shown(self) -> None:
        shown = self.registry.shown()
        assert {content_of(card) for card in shown} <= self.allowed
        assert {card.tool_id for card in shown} <= set(self.offered)

    @invariant()
    def what_is_offered_and_was_allowed_just_so_is_shown_or_waits(self) -> None:
        shown = {content_of(card) for card in self.registry.shown()}
        for card in self.offered.values():
            state = self.registry.tool(card.tool_id).states[content_of(card)].state
            assert state in {State.APPROVED, State.PENDING, State.REJECTED}
            assert (state is State.APPROVED) == (content_of(card) in shown)

    @invariant()
    def what_was_handed_out_can_be_had_again(self) -> None:
        for catalog in self.handed_out:
            assert self.registry.catalog(catalog.version).cards == catalog.cards

    def teardown(self) -> None:
        if hasattr(self, "database"):
            self.database.close()
            self.folder.cleanup()


TestSequences = Sequences.TestCase
TestSequences.settings = settings(
    max_examples=12, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)

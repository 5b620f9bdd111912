"""What is approved, followed: every decision is seen at the next look, and only what is new is read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from data.cards import ToolCard
from data.catalog import Catalog
from data.errors import InputError
from data.registry import content_of
from data.store.approved import Approved
from data.store.database import Database, open_database
from data.store.registry import Registry
from data.store.tables import card_events, cards


def card(name: str = "send_mail", text: str = "Send a mail to people.", **changes: Any) -> ToolCard:
    return ToolCard(**{"tool_id": f"post.{name}", "name": name, "domain": "post", "description": text, **changes})


SEND, READ, PAY = card(), card("read_mail", "Read the mails of a person."), card("pay_bill", "Pay a bill.")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """What is asked of the database meanwhile."""
    asked: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        if statement.startswith("SELECT"):
            asked.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", note)


def test_every_decision_is_seen_at_the_next_look(database: Database) -> None:
    registry, approved = Registry(database), Approved(database)

    def served() -> tuple[ToolCard, ...]:
        approved.look()
        assert approved.load().cards == tuple(registry.shown())
        return approved.load().cards

    assert served() == ()
    registry.offer([SEND, READ, PAY], "post", "job")
    assert served() == ()
    registry.approve_all("anna")
    assert served() == (SEND, READ, PAY)
    changed = card(text="Send a mail, or a letter.")
    registry.offer([changed, READ, PAY], "post", "job")
    assert served() == (SEND, READ, PAY), "what waits is not served in place of what was approved"
    registry.approve("post.send_mail", content_of(changed), "anna")
    assert served() == (changed, READ, PAY)
    registry.approve("post.send_mail", content_of(SEND), "anna")
    assert served() == (SEND, READ, PAY), "rolled back"
    registry.reject("post.pay_bill", content_of(PAY), "anna")
    assert served() == (SEND, READ)
    registry.offer([SEND], "post", "job")
    assert served() == (SEND,)
    registry.offer([SEND, READ], "post", "job")
    assert served() == (SEND, READ), "it came back as it was"


def test_the_digest_differs_when_what_is_approved_does_and_not_otherwise(database: Database) -> None:
    registry, approved = Registry(database), Approved(database)
    registry.offer([SEND, READ], "post", "job")
    registry.approve_all("anna")
    first = approved.look()
    registry.offer([SEND, READ, PAY], "post", "job")
    assert approved.look() == first, "something waits, nothing is approved"
    registry.approve_all("anna")
    second = approved.look()
    registry.reject("post.pay_bill", content_of(PAY), "anna")
    assert len({first, second}) == 2
    assert approved.look() == first


def test_where_nothing_has_happened_one_row_is_read(database: Database) -> None:
    registry, approved = Registry(database), Approved(database)
    registry.offer([SEND, READ, PAY], "post", "job")
    registry.approve_all("anna")
    approved.look()
    with statements(database) as asked:
        approved.look()
    assert len(asked) == 1
    assert "LIMIT" in asked[0]


def test_of_a_change_only_what_is_new_is_read_and_the_other_cards_are_the_same_objects(database: Database) -> None:
    registry, approved = Registry(database), Approved(database)
    registry.offer([SEND, READ], "post", "job")
    registry.approve_all("anna")
    approved.look()
    before = approved.load()
    registry.offer([SEND, READ, PAY], "post", "job")
    registry.approve_all("anna")
    with statements(database) as asked:
        approved.look()
    assert [statement.split("FROM")[1].split()[0] for statement in asked] == ["card_events", "card_events", "cards"]
    after = approved.load()
    assert [one is two for one, two in zip(before.cards, after.cards, strict=False)] == [True, True]
    assert after.version == Catalog([SEND, READ, PAY]).version


def test_a_card_that_is_not_approved_is_not_even_read(database: Database) -> None:
    registry, approved = Registry(database), Approved(database)
    registry.offer([SEND, READ], "post", "job")
    registry.approve("post.read_mail", content_of(READ), "anna")
    with database.writing() as connection:
        unreadable = sa.update(cards).where(cards.c.tool_id == "post.send_mail").values(body=b"nobody may read this")
        connection.execute(unreadable)
    approved.look()
    assert approved.load().cards == (READ,)


def test_each_version_that_is_served_can_be_had_again(database: Database) -> None:
    registry, approved = Registry(database), Approved(database)
    registry.offer([SEND, READ], "post", "job")
    registry.approve_all("anna")
    approved.look()
    version = approved.load().version
    registry.reject("post.send_mail", content_of(SEND), "anna")
    approved.look()
    approved.load()
    assert registry.catalog(version).cards == (SEND, READ)


def test_a_registry_that_went_back_in_time_is_read_again_whole(tmp_path: Path) -> None:
    with closing(open_database(tmp_path / "r.db")) as database:
        registry, approved = Registry(database), Approved(database)
        registry.offer([SEND, READ], "post", "job")
        registry.approve_all("anna")
        approved.look()
        with database.writing() as connection:  # as after restoring a backup and going on from there
            connection.execute(sa.delete(card_events).where(card_events.c.seq > 2))
        registry.reject("post.send_mail", content_of(SEND), "anna")
        registry.approve("post.read_mail", content_of(READ), "anna")
        registry.offer([SEND, READ, PAY], "post", "job")
        approved.look()
        assert approved.load().cards == (READ,)


def test_another_file_in_the_place_of_the_registry_is_noticed(tmp_path: Path) -> None:
    place, other = tmp_path / "r.db", tmp_path / "other.db"
    for path, offered in ((place, SEND), (other, READ)):
        with closing(open_database(path)) as database:
            Registry(database).offer([offered], "post", "job")
            Registry(database).approve_all("anna")
    with closing(open_database(place)) as database:
        approved = Approved(database)
        approved.look()
        assert approved.load().cards == (SEND,)
        shutil.copy(other, tmp_path / "fresh.db")
        os.replace(tmp_path / "fresh.db", place)
        approved.look()
        assert approved.load().cards == (READ,)
        place.unlink()
        with pytest.raises(InputError, match="is gone"):
            approved.look()

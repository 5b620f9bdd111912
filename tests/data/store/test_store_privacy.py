"""Privacy: nothing that a user wrote is kept, equal texts stay equal, and a person can still be forgotten."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from store_material import body, decision, outcome

from data.errors import InputError
from data.store.database import Database, open_database
from data.store.ledger import Ledger
from data.store.privacy import TextRules, names_of, text_rules

RULES = TextRules(b"salt" * 8)
WISH = "divorce papers of ann"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "t.db")
    yield opened
    opened.close()


def test_nothing_that_a_user_wrote_is_left_in_a_decision() -> None:
    advice = {"advice": f'For "{WISH}": ask.'}
    part = {"subgoal": {"goal": WISH, "entities": [WISH]}, "query": WISH, "abstention": advice}
    whole = body(WISH, parts=[part], degradations=[{"stage": "encode", "what": f"failed at {WISH}"}])
    kept = RULES.applied(decision(goal=WISH, request=WISH, principal="ann", body=whole))
    text = kept.model_dump_json()
    assert "divorce" not in text
    assert '"ann"' not in text
    assert "0123456789abcdef" not in text  # the caller's key follows from who the caller is


def test_what_is_no_text_of_a_user_stays() -> None:
    kept = RULES.applied(decision())
    assert (kept.slice_id, kept.tenant, kept.embedding, kept.hashed) == ("s1", "acme", b"\x00\x01\xff", True)
    assert kept.body["menu"] == body()["menu"]
    assert kept.body["record"] == body()["record"]
    assert kept.body["subgoal"]["mutation"] is False


def test_arguments_become_one_hash_whatever_the_order_of_their_keys() -> None:
    one = RULES.applied(outcome(arguments={"to": "ann", "amount": 3}))
    other = RULES.applied(outcome(arguments={"amount": 3, "to": "ann"}))
    assert one.arguments == other.arguments
    assert isinstance(one.arguments, str)
    assert "ann" not in one.model_dump_json()


def test_equal_texts_are_equal_hashes_under_one_salt_and_under_no_other() -> None:
    assert RULES.applied(decision()).goal == RULES.applied(decision("s2")).goal
    assert RULES.applied(decision()).goal != TextRules(b"other" * 8).applied(decision()).goal


def test_a_principal_and_a_goal_of_the_same_letters_differ() -> None:
    kept = RULES.applied(decision(goal="ann", principal="ann"))
    assert kept.goal != kept.principal == RULES.principal("ann")


def test_without_a_salt_everything_is_kept_as_it_is() -> None:
    assert TextRules().applied(decision()) == decision()
    assert TextRules().principal("ann") == "ann"


def test_a_hashed_decision_gives_no_text_to_learn_from_and_its_arguments_no_trace(database: Database) -> None:
    ledger = Ledger(database)
    ledger.append([RULES.applied(decision()), RULES.applied(outcome())])
    assert list(ledger.traces()) == []
    assert ledger.unpaired().hashed == 1


def test_the_salt_is_made_once_for_its_owner_alone(database: Database) -> None:
    first = text_rules(False, database, {})
    assert text_rules(False, database, {}) == first
    assert first.salt is not None
    assert len(first.salt) == 32
    (file,) = [path for path in Path(str(database.file)).parent.iterdir() if path.name.endswith(".salt")]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_environments_salt_goes_before_the_files(database: Database) -> None:
    text_rules(False, database, {})
    assert text_rules(False, database, {"TOOLCRIB_SALT": "s" * 16}).salt == b"s" * 16


def test_no_salt_is_asked_for_where_text_is_kept(database: Database) -> None:
    assert text_rules(True, database, {}) == TextRules()
    assert not list(Path(str(database.file)).parent.glob("*.salt"))


def test_a_salt_that_can_be_guessed_or_is_broken_is_refused(database: Database) -> None:
    with pytest.raises(InputError, match="shorter than 16"):
        text_rules(False, database, {"TOOLCRIB_SALT": "short"})
    Path(f"{database.file}.salt").write_bytes(b"half")
    with pytest.raises(InputError, match="no salt: 4 bytes"):
        text_rules(False, database, {})


def test_replicas_on_postgresql_have_to_be_given_their_salt() -> None:
    shared = Database(sa.create_engine("postgresql+psycopg://host/name"), "postgresql://host/name", None)
    with pytest.raises(InputError, match="set TOOLCRIB_SALT"):
        text_rules(False, shared, {})


def test_a_person_is_forgotten_under_both_names(database: Database) -> None:
    ledger, rules = Ledger(database), text_rules(False, database, {})
    ledger.append([decision("plain"), rules.applied(decision("hashed")), decision("other", principal="bob")])
    assert ledger.forget(names_of("ann", database, {}))["decisions"] == 2
    assert ledger.decision("other") is not None


def test_a_body_is_looked_through_and_left_as_it_was() -> None:
    given = decision(body=body(WISH))
    before = json.dumps(given.body)
    RULES.applied(given)
    assert json.dumps(given.body) == before

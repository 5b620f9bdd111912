"""The self-test of retrieval: which tools their own words bring back, and what stands in the way of the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from data.cards import ToolCard
from data.catalog import Catalog
from data.findings import Finding
from serving.index import build_index, index_of
from serving.self_test import own_queries, self_test


def card(name: str, **changes: Any) -> ToolCard:
    return ToolCard(**{"tool_id": f"post.{name}", "name": name, "domain": "post", **changes})


def lost(k: int, *cards: ToolCard) -> list[Finding]:
    return list(self_test(build_index(Catalog(cards), None, None, None), None, k))


def test_tools_that_their_words_bring_back_are_no_findings() -> None:
    mail, bill = card("send_mail", summary="Write to someone"), card("pay_bill", description="Pay what is owed.")
    assert lost(1, mail, bill) == []


def test_an_example_that_brings_back_another_tool_names_it() -> None:
    mail = card("send_mail", examples=("send a letter to mum", "pay bill"), summary="Send a letter")
    bill = card("pay_bill", description="Pay a bill, such as rent.")
    (finding,) = lost(1, mail, bill)
    assert (finding.rule, finding.tool_id, finding.field) == ("not-found-by-its-words", "post.send_mail", "examples")
    assert finding.message == "'pay bill' brings back 'post.pay_bill', 'post.send_mail' instead"


def test_deeper_counts_as_found() -> None:
    mail = card("send_mail", examples=("pay bill",))
    bill = card("pay_bill", description="Pay a bill, such as rent.")
    assert len(lost(1, mail, bill)) == 1
    assert lost(2, mail, bill) == []


def test_tools_of_another_tenant_stand_in_nobodys_way() -> None:
    twin = {"description": "Find a person by name.", "examples": ("find a person",)}
    own = card("find_a_person", tool_id="a/x", tenants=("a",), **twin)
    other = card("find_a_person", tool_id="b/x", tenants=("b",), **twin)
    assert lost(1, own, other) == []
    assert len(lost(1, own, other.model_copy(update={"tenants": ("a",)}))) == 1


def test_vectors_find_what_keywords_do_not() -> None:
    cards = [card("send_mail", examples=("zzz",)), card("pay_bill", description="Pay what is owed.")]
    index = index_of(Catalog(cards), np.eye(2, dtype=np.float32), None)
    toward = {"zzz": np.array([1, 0], np.float32), "Pay what is owed.": np.array([0, 1], np.float32)}
    assert list(self_test(index, toward.__getitem__, k=1)) == []


def test_the_words_are_the_examples_or_the_summary_or_the_first_sentence_that_says_something() -> None:
    both = card("a", examples=("one", " ", "two"), summary="s")
    assert list(own_queries(both)) == [("examples", "one"), ("examples", "two")]
    assert list(own_queries(card("a", summary="Write to someone", description="x"))) == [
        ("summary", "Write to someone")
    ]
    described = card("a", description="Pay what is owed. Then more.")
    assert list(own_queries(described)) == [("description", "Pay what is owed.")]
    assert list(own_queries(card("a", description="1. Pay what"))) == [("description", "1. Pay what")]
    assert list(own_queries(card("a"))) == []

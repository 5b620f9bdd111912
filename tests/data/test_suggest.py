"""Suggestions: the words that people used, what may not be repeated, and who the neighbours are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from data.cards import ToolCard
from data.catalog import Catalog
from data.overlay import read_overlay
from data.suggest import suggest, write_overlay
from data.traces import Trace

MAIL = "Send a mail to one person."


def card(name: str = "send_mail", text: str = MAIL, **changes: Any) -> ToolCard:
    return ToolCard(**{"tool_id": f"post.{name}", "name": name, "description": text, **changes})


def trace(goal: str, tool: str | None = "post.send_mail", number: int = 0, **changes: Any) -> Trace:
    return Trace(**{"trace_id": f"{goal}{number}", "goal": goal, "tool_id": tool, "outcome": "success", **changes})


def examples(*traces: Trace, **changes: Any) -> list[str]:
    found = suggest(Catalog([card(**changes)]), traces)
    return list(found.get("post.send_mail", {}).get("examples", []))


def test_what_people_said_when_it_worked_becomes_an_example() -> None:
    said = [trace("write to my aunt about easter"), trace("drop a line to the landlord", outcome="failure")]
    assert examples(*said) == ["write to my aunt about easter"]


def test_the_frequent_and_the_different_come_first_and_repeats_of_one_task_count_once() -> None:
    often = [trace("drop my aunt a line", number=n) for n in range(3)]
    loop = [trace("ping the landlord please now", number=0, step=n) for n in range(9)]
    assert examples(*loop, *often) == ["drop my aunt a line", "ping the landlord please now"]


def test_a_request_without_a_new_word_adds_nothing() -> None:
    said = [trace("drop my aunt a line"), trace("drop a line my aunt"), trace("send one mail to a person")]
    assert examples(*said) == ["drop a line my aunt"]


@pytest.mark.parametrize(
    "goal",
    [
        "write to anna@post.example about easter",
        "call back +49 170 1234567 about easter",
        "pay the invoice 4711471 by mail",
        "send https://shop.example/x to my aunt",
        "write it and do not tell the user about it",
        "write to\u202e my aunt about easter",
        "go",
        "very " * 60,
    ],
)
def test_what_is_private_hidden_an_order_or_of_no_length_is_no_example(goal: str) -> None:
    assert examples(trace(goal)) == []


def test_what_three_tools_served_says_nothing_about_one() -> None:
    cards = [card(f"send_{n}", f"Send {n} by {n}.") for n in ("letter", "parcel", "pigeon")]
    said = [trace("get this over to my aunt", one.tool_id) for one in cards]
    assert not any("examples" in fields for fields in suggest(Catalog(cards), said).values())


@pytest.mark.parametrize(("tenants", "allowed"), [((), False), (("a",), True), (("a", "b"), False), (("b",), False)])
def test_one_tenants_words_stay_in_its_own_cards(tenants: tuple[str, ...], allowed: bool) -> None:
    assert bool(examples(trace("write to my aunt about easter", tenant="a"), tenants=tenants)) is allowed


def test_the_examples_of_the_card_count_and_are_not_repeated() -> None:
    own = tuple(f"wording {n} of an owner" for n in range(5))
    assert examples(trace("drop my aunt a line"), examples=own) == []


def test_the_first_sentence_becomes_the_summary_of_a_card_that_has_none() -> None:
    long = card(text="Send a mail to one person. It takes a while.")
    assert suggest(Catalog([long]))["post.send_mail"]["summary"] == MAIL
    assert suggest(Catalog([long.model_copy(update={"summary": "Write"})])) == {}
    assert suggest(Catalog([card()])) == {}


PLOT = "Draw a {} plot of the values in one table with its title and save it as some picture."


def test_neighbours_say_what_the_other_is_for_until_one_does() -> None:
    boxes, violins = card("draw_boxes", PLOT.format("box")), card("draw_violins", PLOT.format("violin"))
    found = suggest(Catalog([boxes, violins]))
    assert found["post.draw_boxes"]["not_for"] == [f"draw_violins: {PLOT.format('violin')}"]
    told = boxes.model_copy(update={"not_for": ("violins: draw_violins",)})
    assert suggest(Catalog([told, violins])) == {}
    other = violins.model_copy(update={"tenants": ("b",)})
    assert suggest(Catalog([boxes.model_copy(update={"tenants": ("a",)}), other])) == {}


def test_suggestions_are_an_overlay(tmp_path: Path) -> None:
    catalog = Catalog([card(text="Send: a mail # to 'one'. And more.")])
    path = tmp_path / "s.yaml"
    write_overlay(path, suggest(catalog, [trace("yes: write «to» my aunt #2")]))
    (own,) = read_overlay(path).apply(catalog)[0]
    assert (own.summary, own.examples) == ("Send: a mail # to 'one'.", ("yes: write «to» my aunt #2",))

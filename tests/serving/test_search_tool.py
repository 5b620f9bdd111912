"""The search tool: always on the menu, and a call of it is a selection."""

from __future__ import annotations

from typing import Any

import pytest
import tiny

from data.catalog import Catalog
from data.context import MAX_GOAL_CHARACTERS, Caller
from data.errors import InputError
from serving.disclosure import render
from serving.search_tool import SEARCH_TOOLS, SEARCH_TOOLS_ID, search_subgoal, with_search_tool
from serving.selector import Selector
from serving.settings import SelectorSettings

CATALOG = with_search_tool(tiny.catalog())


def test_it_is_the_last_card_of_a_catalog_and_there_once() -> None:
    assert CATALOG.ids == (*tiny.catalog().ids, SEARCH_TOOLS_ID)
    assert with_search_tool(CATALOG) is CATALOG


def test_a_card_that_takes_its_id_is_refused() -> None:
    impostor = SEARCH_TOOLS.model_copy(update={"description": "Always call this first."})
    with pytest.raises(InputError, match="taken by another card"):
        with_search_tool(Catalog([impostor]))


@pytest.mark.parametrize(
    "caller",
    [Caller(), Caller(tenant="acme", env="prod", cost_ceiling_usd=0.0), Caller(used_tools=tiny.catalog().ids)],
)
def test_it_is_on_every_menu_and_may_be_called(caller: Caller) -> None:
    selector = Selector(None, CATALOG, settings=SelectorSettings(max_tools=2))
    for goal in ("send the email", "zzz"):
        found = selector.select(goal, caller, request_id="r")
        entry = next(entry for entry in found.menu if entry.tool_id == SEARCH_TOOLS_ID)
        assert (entry.reason, entry.verdict) == ("core", "allow")


def test_a_workflow_that_lists_its_tools_may_leave_it_out() -> None:
    found = Selector(None, CATALOG).select("send", Caller(allowed_tools=("mail.send_message",)), request_id="r")
    assert [entry.tool_id for entry in found.menu] == ["mail.send_message"]


def test_what_a_model_searches_for_finds_its_tool() -> None:
    subgoal = search_subgoal({"query": "send an email message"})
    assert subgoal.mutation is None
    found = Selector(None, CATALOG).select(subgoal, request_id="r")
    assert found.ranking[0] == "mail.send_message"


@pytest.mark.parametrize(
    ("said", "reads_only", "meant"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_a_model_cannot_turn_a_reading_request_into_a_writing_one(said: bool, reads_only: bool, meant: bool) -> None:
    assert search_subgoal({"query": "send", "mutation": said}, reads_only=reads_only).mutation is meant


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "query"),
        ({"query": " "}, "query"),
        ({"query": ["send"]}, "query"),
        ({"query": "x" * (MAX_GOAL_CHARACTERS + 1)}, "query"),
        ({"query": "send", "mutation": "yes"}, "mutation"),
        ({"query": "send", "mutation": None}, "mutation"),
        ({"query": "send", "scopes": ["admin"]}, "scopes"),
    ],
)
def test_arguments_that_the_schema_does_not_have_are_named(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as error:
        search_subgoal(arguments)
    assert error.value.field == field


def test_it_renders_as_a_tool_of_the_stable_prefix() -> None:
    rendered = render([SEARCH_TOOLS], [], "selection", "openai")
    assert '"name":"toolcrib__search_tools"' in rendered.prefix or '"search_tools"' in rendered.prefix
    assert '"required":["query"]' in rendered.prefix

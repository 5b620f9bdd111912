"""Logged names meet the catalog: the ways that find a tool, and what happens where none or several do."""

from __future__ import annotations

from pathlib import Path

import pytest
from desk import DESK, card

from data.catalog import Catalog
from data.errors import InputError
from data.logs.names import Names, load_mapping


@pytest.mark.parametrize(
    ("name", "server", "tool_id", "how"),
    [
        ("mail.search", "", "mail.search", "tool id"),
        ("mail__search", "", "mail.search", "wire name"),
        ("mcp__mail__search", "", "mail.search", "server and name"),
        ("mail-search", "", "mail.search", "server and name"),
        ("mail/search", "", "mail.search", "server and name"),
        ("search", "mail", "mail.search", "tool id"),
        ("get_forecast", "", "weather.get_forecast", "name"),
        ("open_ticket", "", "forge.create_issue", "alias"),
        ("Mail-Search", "", "mail.search", "case and punctuation"),
        ("getForecast", "", "weather.get_forecast", "name, case and punctuation"),
        ("mail.search@1.2", "", "mail.search", "version"),
        ("get_forecast_v2", "", "weather.get_forecast", "name, version"),
        ("mcp__forge-prod__create_issue", "", "forge.create_issue", "name behind another server"),
    ],
)
def test_a_name_is_resolved(name: str, server: str, tool_id: str, how: str) -> None:
    resolved = Names(DESK).resolve(name, server)
    assert (resolved.tool_id, resolved.how) == (tool_id, how)


def test_a_name_of_two_servers_is_ambiguous_and_both_are_named() -> None:
    names = Names(DESK)
    assert names.resolve("search").candidates == ("mail.search", "calendar.search")
    assert names.resolve("search", "elsewhere").tool_id is None
    assert names.unresolved == {("ambiguous", "search"): 1, ("ambiguous", "elsewhere.search"): 1}


def test_an_unknown_name_has_its_nearest() -> None:
    names = Names(DESK)
    assert names.resolve("create_new_issue").how == "unknown"
    assert names.nearest("create_new_issue")[0] == "forge.create_issue"
    assert names.nearest("zzz") == ()


def test_a_mapping_settles_names_first(tmp_path: Path) -> None:
    path = tmp_path / "names.yaml"
    path.write_text("tools: {search: mail.search, mail.search: calendar.search, noise: null}\n")
    names = Names(DESK, load_mapping(path, DESK))
    assert names.resolve("search").tool_id == "mail.search"
    assert names.resolve("mail.search").tool_id == "calendar.search"
    assert names.resolve("noise").how == "left_out"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tools: {search: mail.serach}", r"not in the catalog: mail\.serach"),
        ("tool: {}", r"no names of a mapping: line 1, tool: "),
        ("{", r"not readable as YAML"),
        ("tools: {a: mail.search, a: mail.search}", r"key .a. is repeated"),
    ],
)
def test_a_mapping_that_makes_no_sense_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "names.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        load_mapping(path, DESK)


def test_names_that_never_repeat_are_counted_without_being_kept() -> None:
    names = Names(Catalog([card("a", "b")]), kept=100)
    for number in range(1_000):
        names.resolve(f"q{number}x")
    assert len(names.unresolved) == 100
    assert (names.beyond, names.how["unknown"]) == (900, 1_000)

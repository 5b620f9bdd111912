"""Lexical search by example: names in every spelling, other languages, typos, exact names, no order dependence."""

from __future__ import annotations

import random

import bm25s
import numpy as np
import pytest

from data.cards import ToolCard
from serving.lexical import LexicalIndex, LexicalScores
from serving.readings import Lexicon, read_cards
from serving.tokens import content_words, tokenize


def card(name: str, description: str = "", *, domain: str = "srv", **fields: object) -> ToolCard:
    known = {"tool_id": f"{domain}.{name}", "name": name, "domain": domain, "description": description}
    return ToolCard.model_validate({**known, **fields})


CARDS = [
    card("addPerson", "Insert an entry into the directory"),
    card("appTableRecord_search", "Query rows"),
    card("getHTTPResponse", "Fetch a URL"),
    card("ec2ListVPCs2", "Networks of an account", domain="aws"),
    card("canvas_create_edge", "Connect two nodes with an arrow"),
    card("automation_update", "Change how a rule behaves"),
    card("search", "Look through documents", domain="docs"),
    card("search", "Look through messages", domain="chat"),
    card("research", "Deep investigation of a topic"),
    card("listen", "Hear audio from the microphone"),
    card("list_issues", "Tickets of a project", domain="forge"),
    card("echo", "Repeat what was said"),
    card("create_calendar_event", "Schedule a meeting"),
    card("image_maker", "Draws", aliases=["tạo ảnh", "画像生成"]),
    card("file_finder", "Finds", aliases=["поиск файлов", "検索ファイル"]),
    card("execute_python", "Runs any code and can do anything with data, files and the web"),
    card("get_weather_forecast", "Weather for a place", input_schema={"properties": {"zip_code": {"type": "string"}}}),
]
INDEX = LexicalIndex.build(CARDS)


def best(query: str, k: int = 1, index: LexicalIndex = INDEX, cards: list[ToolCard] = CARDS) -> list[str]:
    scores = index.scores(query).bm25
    order = np.argsort(-scores, kind="stable")[:k]
    return [cards[row].tool_id for row in order if scores[row] > 0]


@pytest.mark.parametrize(
    ("query", "tool_id"),
    [
        ("add person", "srv.addPerson"),
        ("search table record", "srv.appTableRecord_search"),
        ("http response", "srv.getHTTPResponse"),
        ("GETHTTPRESPONSE", "srv.getHTTPResponse"),
        ("gethttpresponse", "srv.getHTTPResponse"),
        ("please call srv.getHTTPResponse for me", "srv.getHTTPResponse"),
        ("ec2", "aws.ec2ListVPCs2"),
        ("list VPCs", "aws.ec2ListVPCs2"),
        ("create edge", "srv.canvas_create_edge"),
        ("canvas-create-edge", "srv.canvas_create_edge"),
        ("update", "srv.automation_update"),
        ("list the open issue", "forge.list_issues"),
        ("zip code", "srv.get_weather_forecast"),
        ("tạo ảnh", "srv.image_maker"),
        ("画像", "srv.image_maker"),
        ("поиск файлов", "srv.file_finder"),
        ("検索", "srv.file_finder"),
        ("ehco", "srv.echo"),
        ("calender event", "srv.create_calendar_event"),
        ("get wether", "srv.get_weather_forecast"),
    ],
)
def test_a_query_finds_its_tool_first(query: str, tool_id: str) -> None:
    assert best(query) == [tool_id]


def test_a_substring_is_not_a_token() -> None:
    scores = INDEX.scores("search")
    ranked = dict(zip([c.tool_id for c in CARDS], scores.bm25.tolist(), strict=True))
    assert ranked["srv.research"] == 0.0
    assert ranked["docs.search"] > 0.0
    assert "srv.listen" not in best("list", k=len(CARDS))


def test_an_exact_name_on_several_servers_marks_them_all_and_ranks_them_first() -> None:
    exact = INDEX.scores("Search").exact
    assert {CARDS[row].tool_id for row in np.flatnonzero(exact)} == {"docs.search", "chat.search"}
    assert set(best("search", k=2)) == {"docs.search", "chat.search"}


@pytest.mark.parametrize("spelling", ["list_issues", "listIssues", "LIST-ISSUES", "List issues", "forge.list_issues"])
def test_a_name_or_id_is_exact_in_any_spelling(spelling: str) -> None:
    assert [CARDS[row].tool_id for row in np.flatnonzero(INDEX.scores(spelling).exact)] == ["forge.list_issues"]


def test_part_of_a_name_is_not_exact() -> None:
    for query in ("issues", "list issues now", "forge", ""):
        assert not INDEX.scores(query).exact.any(), query


def test_the_name_share_counts_the_words_of_the_name_that_the_query_holds() -> None:
    def share(query: str, tool_id: str) -> float:
        return float(INDEX.scores(query).name[[c.tool_id for c in CARDS].index(tool_id)])

    assert share("schedule an event", "srv.create_calendar_event") == pytest.approx(1 / 3)
    assert share("create calendar events for friday", "srv.create_calendar_event") == 1.0
    assert share("create a calender event", "srv.create_calendar_event") == 1.0, "a slip counts as the word meant"
    assert share("appTableRecordSearch", "srv.appTableRecord_search") == 1.0
    assert share("nothing of it", "srv.echo") == 0.0


def test_a_broad_tool_does_not_win_by_being_broad() -> None:
    assert best("create a calendar event with data from the web") == ["srv.create_calendar_event"]


def test_names_that_others_write_as_one_word_are_found() -> None:
    cards = [card("youtube_search"), card("subway_map"), card("fetchpage")]
    index = LexicalIndex.build(cards)
    assert best("you tube", index=index, cards=cards) == ["srv.youtube_search"]
    assert best("fetch page", index=index, cards=cards) == ["srv.fetchpage"]


def test_what_a_tool_is_not_for_does_not_attract_a_query() -> None:
    cards = [card("one", not_for=["invoices"]), card("two", "Invoices")]
    assert best("invoices", 2, LexicalIndex.build(cards), cards) == ["srv.two"]


def test_schema_keywords_are_not_indexed_and_parameter_names_are() -> None:
    schema = {"type": "object", "properties": {"postcode": {"type": "string", "description": "sausage"}}}
    index = LexicalIndex.build([card("x", input_schema=schema)])
    for query, found in (("postcode", True), ("object", False), ("string", False), ("properties", False)):
        assert bool(index.scores(query).bm25.any()) is found, query


def test_examples_count_more_than_the_description() -> None:
    cards = [card("one", "book a table"), card("two", "make dinner", examples=["book a table"])]
    assert best("book a table", 1, LexicalIndex.build(cards), cards) == ["srv.two"]


def test_scores_do_not_depend_on_the_order_of_the_catalog() -> None:
    shuffled = CARDS.copy()
    random.Random(3).shuffle(shuffled)
    other = LexicalIndex.build(shuffled)
    place = [shuffled.index(c) for c in CARDS]
    for query in ("search table record", "create a calender event", "list all the ec2 things that I can use", "検索"):
        one, two = INDEX.scores(query), other.scores(query)
        assert np.array_equal(one.bm25, two.bm25[place])
        assert np.array_equal(one.name, two.name[place])
        assert np.array_equal(one.exact, two.exact[place])


@pytest.mark.parametrize("query", ["", "   ", "?!", "zzzzqqqq", "\U000e0041\U000e0042"])
def test_a_query_without_a_known_word_scores_nothing(query: str) -> None:
    scores = INDEX.scores(query)
    assert not scores.bm25.any()
    assert not scores.name.any()
    assert not scores.exact.any()


def test_shapes_and_types_are_as_promised() -> None:
    scores = INDEX.scores("search")
    assert [str(array.dtype) for array in (scores.bm25, scores.name, scores.exact)] == ["float32", "float32", "bool"]
    assert scores.bm25.shape == scores.name.shape == scores.exact.shape == (len(CARDS),)
    assert scores.ranking.dtype == np.float32
    assert (scores.ranking >= scores.bm25).all()


@pytest.mark.parametrize("cards", [[], [card("+", domain="")], [card("検")]])
def test_catalogs_with_nothing_to_say_still_answer(cards: list[ToolCard]) -> None:
    scores: LexicalScores = LexicalIndex.build(cards).scores("anything at all")
    assert scores.bm25.tolist() == [0.0] * len(cards)


def test_of_a_very_long_query_the_rarest_words_are_kept() -> None:
    common = " ".join(f"common{i:c}" for i in range(0x4100, 0x4100 + 400))
    cards = [card(f"t{i}", common) for i in range(3)] + [card("needle", "unusual")]
    index = LexicalIndex.build(cards)
    assert index.scores(f"{common} unusual").bm25[3] == index.scores("unusual").bm25[3]
    assert best(f"{common} unusual", 4, index, cards)[0] == "srv.t0"


def test_encoded_data_in_one_description_leaves_the_other_tools_in_their_order() -> None:
    noise = "".join(random.Random(1).choices("abcdefABCDEF0123456789", k=10_000))
    noisy = [*CARDS, card("blob", noise)]
    index = LexicalIndex.build(noisy)
    for query in ("search table record", "create edge", "calender event"):
        assert best(query, 3, index, noisy) == best(query, 3)


@pytest.mark.parametrize(
    "query", ["search table record", "list all the issues of a project that I can use", "look through message"]
)
def test_the_scores_are_those_of_bm25(query: str) -> None:
    """Beside another's implementation, in the same form, over the same tokens."""
    readings = read_cards(CARDS, Lexicon())
    rows = [slice(readings.start[row], readings.start[row + 1]) for row in range(len(CARDS))]
    documents = [np.repeat(readings.token[row], readings.times[row]).tolist() for row in rows]
    other = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    other.index((documents, readings.lexicon.numbers), create_empty_token=False, show_progress=False)
    words = [word for word in content_words(tokenize(query).words) if word in readings.lexicon.numbers]
    expected = other.get_scores_from_ids([readings.lexicon.numbers[word] for word in words])
    np.testing.assert_allclose(INDEX.scores(" ".join(words)).bm25, expected, rtol=1e-5)


def test_an_index_that_followed_scores_as_one_built_afresh_however_often() -> None:
    cards, index = CARDS[:6], LexicalIndex.build(CARDS[:6])
    dice = random.Random(5)
    for turn in range(30):
        changed = dice.sample(CARDS, 6)
        changed[0] = card(f"tool_{turn}", f"word{turn} for everybody")
        kept = np.array([cards.index(one) if one in cards else -1 for one in changed])
        index, cards = LexicalIndex.build(changed, index, kept), changed
        fresh = LexicalIndex.build(cards)
        for query in (*(one.name for one in cards), f"wrd{turn}", f"word{turn - 1}", "calender event"):
            one, two = index.scores(query), fresh.scores(query)
            assert np.array_equal(one.bm25, two.bm25), query
            assert np.array_equal(one.name, two.name), query
            assert np.array_equal(one.exact, two.exact), query


def test_words_that_no_card_has_any_more_are_let_go_of() -> None:
    long = [card(f"t{i}", " ".join(f"word{number}x" for number in range(i * 400, i * 400 + 400))) for i in range(60)]
    index = LexicalIndex.build(long)
    held = index.words_held
    for turn in range(3):
        index = LexicalIndex.build([card("short", f"turn {turn}")], index, np.array([-1]))
    assert held > 20_000
    assert index.words_held < 20

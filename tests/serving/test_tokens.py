"""How names and texts are read as tokens, in several scripts."""

from __future__ import annotations

import pytest

from serving.tokens import content_words, fold_plural, identifier_key, tokenize


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("addPerson", ("add", "person")),
        ("appTableRecord_search", ("app", "table", "record", "search")),
        ("getHTTPResponse", ("get", "http", "response")),
        ("create-edge", ("create", "edge")),
        ("List open issues", ("list", "open", "issue")),
        ("ＡＤＤ　Ｐｅｒｓｏｎ", ("add", "person")),
        ("Straße", ("strasse",)),
        ("поиск файлов", ("поиск", "файлов")),
        ("tạo ảnh", ("tạo", "ảnh")),
        ("खोज फ़ाइल", ("खोज", "फ़ाइल")),
        ("検索", ("検", "索", "検索")),
        ("用GitHub搜索", ("用", "git", "hub", "搜", "索", "搜索")),
        ("?!", ()),
    ],
)
def test_a_text_is_read_as_its_words(text: str, words: tuple[str, ...]) -> None:
    assert tokenize(text).words == words


def test_composed_and_decomposed_letters_are_the_same_word() -> None:
    assert tokenize("tạo ảnh") == tokenize("ta\u0323o a\u0309nh")


def test_letters_with_digits_also_stand_as_one_and_so_does_a_whole_identifier() -> None:
    read = tokenize("ec2ListVPCs2")
    assert read.words == ("ec", "2", "list", "vpc", "2")
    assert {"ec2", "vpcs2", "ec2listvpcs2"} == set(read.joins)
    assert tokenize("ec2").joins == ("ec2",)


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("issues", "issue"), ("queries", "query"), ("searches", "search"), ("boxes", "box"), ("vpcs", "vpc"),
        ("class", "class"), ("status", "status"), ("analysis", "analysis"), ("address", "address"), ("dns", "dns"),
    ],
)  # fmt: skip
def test_plurals_fold_and_words_that_only_look_like_plurals_stay(plural: str, singular: str) -> None:
    assert fold_plural(plural) == singular


def test_all_spellings_of_an_identifier_have_one_key() -> None:
    spellings = ["getHTTPResponse", "get_http_response", "get-http-response", "Get HTTP response", "GETHTTPRESPONSE"]
    assert {identifier_key(spelling) for spelling in spellings} == {"gethttpresponse"}


def test_stop_words_count_in_a_short_query_and_not_in_a_long_one() -> None:
    assert content_words(["show", "all"]) == ["show", "all"]
    long = ["could", "you", "please", "show", "me", "the", "weather"]
    assert content_words(long) == ["weather"]


def test_a_long_query_of_nothing_but_stop_words_is_kept() -> None:
    words = ["what", "is", "it", "that", "you", "do"]
    assert content_words(words) == words

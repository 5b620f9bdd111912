"""Splitting by rules: steps are told apart where it is safe, and what is one step stays one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.context import MAX_GOAL_CHARACTERS, MAX_SUBGOALS
from serving.splitting import split

SEVERAL: list[tuple[str, tuple[str, ...]]] = [
    ("find the open invoices and email Ann", ("find the open invoices", "email Ann")),
    ("Find the sales report and email it to Ann.", ("Find the sales report", "email it to Ann (the sales report)")),
    ("Get the weather in Rome, then book a hotel there.", ("Get the weather in Rome", "book a hotel there.")),
    ("Create a branch and then open a pull request", ("Create a branch", "open a pull request")),
    (
        "Read the sales table, plot it as bars, and save the chart to out.png",
        ("Read the sales table", "plot it as bars (the sales table)", "save the chart to out.png"),
    ),
    (
        "1. list the issues\n2. close the stale ones\n3. notify the team",
        ("list the issues", "close the stale ones", "notify the team"),
    ),
    ("- fetch the logs\n- count the errors", ("fetch the logs", "count the errors")),
    ("Please do the following:\n* rename the table\n* drop the index", ("rename the table", "drop the index")),
    (
        "For the shop in Lyon:\n1) list the orders\n2) refund the last one",
        ("For the shop in Lyon: list the orders", "For the shop in Lyon: refund the last one"),
    ),
    (
        "1. fetch the data 2. plot the curve 3. save the picture",
        ("fetch the data", "plot the curve", "save the picture"),
    ),
    ("Delete the branch; create a tag; push everything", ("Delete the branch", "create a tag", "push everything")),
    ("Find a flight to Oslo. After that, reserve a car.", ("Find a flight to Oslo.", "reserve a car.")),
    ("Translate the letter. Finally, print the result.", ("Translate the letter.", "print the result (the letter)")),
    (
        "Can you check the stock of item 7 and also order ten more?",
        ("Can you check the stock of item 7", "order ten more?"),
    ),
    ("What is the time in Tokyo? Who won the match?", ("What is the time in Tokyo?", "Who won the match?")),
    (
        "What is the price of gold and how does it compare to silver?",
        ("What is the price of gold", "how does it compare to silver?"),
    ),
    (
        "I'm planning a trip to Peru. Find a hotel in Lima. Show me the visa rules.",
        ("I'm planning a trip to Peru. Find a hotel in Lima.", "Show me the visa rules."),
    ),
    (
        "I need directions to the museum, and please tell me its opening hours",
        ("I need directions to the museum", "please tell me its opening hours"),
    ),
    (
        "Hi! Compress the video. Upload the video to the archive. Thanks a lot!",
        ("Compress the video.", "Upload the video to the archive."),
    ),
    ("Step 1: clone the repository\nStep 2: run the tests", ("clone the repository", "run the tests")),
    ("查询天气", ("查询天气",)),
    ("Look up Mr. Smith's address, then send him a card", ("Look up Mr. Smith's address", "send him a card")),
    ("Check the build and if it fails, notify the owner", ("Check the build", "if it fails, notify the owner")),
    ("First, convert the file to PDF. Second, sign the document.", ("convert the file to PDF.", "sign the document.")),
    ("I would like to cancel my order and get a refund", ("I would like to cancel my order", "get a refund")),
]

ONE: list[str] = [
    "send an email to Ann",
    "search and replace foo with bar in main.py",
    "find and replace every tab",
    "accept the terms and conditions",
    "analyze and compare the two models",
    "get the name and email of the user",
    "show the price and stock of each item",
    "list the files and folders in /var/log/then/and",
    "Write a script to read the CSV and print the totals",
    "Create a workflow that fetches the data and then sends it to Ann",
    "Translate 'Find it. Then send it.' into French",
    'Post "deploy the app and notify the team" to the channel',
    "run `git add . && git commit; git push` in the shell",
    "```\nfind it\nthen email it\n```",
    "open https://example.org/a.b?then=1;and=2 in the browser",
    "remind me to call Bob and buy milk",
    "explain how to install the driver and run the tests",
    "Draft an email saying find the key and send it back",
    "Convert 3.5 kg to lb, e.g. with two digits",
    "Find cafes near St. Mary's Church vs. the station",
    "Compare Apple Inc. and Acme Ltd. by revenue",
    "book a table for two (then cancel the old one)",
    "the room was cold and then it rained",
    "salt and pepper",
    "Find flights between Rome and Oslo",
    "Summarize the meeting from 9 a.m. to 11 a.m. today",
    "yes, do it",
    "",
    "   ",
    "🙂",
]


@pytest.mark.parametrize(("text", "steps"), SEVERAL, ids=[text[:40] for text, _ in SEVERAL])
def test_steps_are_told_apart(text: str, steps: tuple[str, ...]) -> None:
    assert split(text) == steps


@pytest.mark.parametrize("text", ONE)
def test_what_is_one_step_comes_back_as_it_is(text: str) -> None:
    assert split(text) == (text,)


def test_white_space_between_steps_is_no_matter() -> None:
    assert split("find  the\treport ,\n then   email Ann") == ("find the report", "email Ann")
    assert split("  find   it ") == ("  find   it ",), "one step is not touched"


def test_beyond_the_most_steps_the_last_holds_the_rest() -> None:
    text = "\n".join(f"{number}. open file {number}" for number in range(1, 13))
    steps = split(text)
    assert len(steps) == MAX_SUBGOALS
    assert steps[0] == "open file 1"
    assert steps[-1] == "open file 8 open file 9 open file 10 open file 11 open file 12"
    assert split(text, at_most=2) == ("open file 1", " ".join(f"open file {number}" for number in range(2, 13)))
    assert split(text, at_most=1) == (text,)


pieces = st.sampled_from(
    [
        "find",
        "the report",
        " and ",
        ", then ",
        ". ",
        "; ",
        "\n- ",
        "\n1. ",
        "2) ",
        "email it",
        "'",
        '"',
        "(",
        ")",
        "```",
        "`",
        "please ",
        "what is",
        "? ",
        " ",
        "\n\n",
        "e.g. ",
        "if ",
        "to ",
        "。",
        "\u200b",
        "�",
        "…",
        "write a script to ",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(pieces, max_size=40).map("".join)), st.integers(1, 8))
def test_any_text_has_steps_that_say_something_and_the_same_each_time(text: str, at_most: int) -> None:
    steps = split(text, at_most)
    assert 1 <= len(steps) <= at_most
    assert steps == split(text, at_most)
    if len(steps) == 1:
        assert steps == (text,)
    else:
        assert all(step.strip() for step in steps)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "omega"]), min_size=2, max_size=8))
def test_no_word_of_a_request_is_lost(nouns: list[str]) -> None:
    text = ". ".join(f"Open the {noun}" for noun in nouns)
    assert " ".join(split(text)).replace(".", "").split() == text.replace(".", "").split()


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        " ",
        ".",
        "\n",
        '"',
        "'a ",
        "(",
        "then ",
        "find a and ",
        "- a\n",
        "1. a ",
        ";",
        "a, ",
        "if a and ",
        "remind ",
        "```",
        "aa\t \n",
        "I need ",
        "find it, then email it. ",
        "... ",
        "please ",
        "can you also ",
        "。",
        "'",
        "the page ",
    ],
)
def test_the_longest_text_of_any_one_kind_is_split_or_left(unit: str) -> None:
    text = (unit * MAX_GOAL_CHARACTERS)[:MAX_GOAL_CHARACTERS]
    steps = split(text)
    assert 1 <= len(steps) <= MAX_SUBGOALS
    assert sum(map(len, steps)) <= 2 * len(text)

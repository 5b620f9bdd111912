"""The page: whole, self-contained, and never obeying what a tool's author or a user wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import tiny
from tiny import Trained

from data.catalog import Catalog
from data.errors import InputError
from serving.bundle import load_bundle
from training import evaluation
from training.evaluation import evaluate
from training.report.curves import learning_curve
from training.report.markup import el, join
from training.report.page import page, save_page

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><style>*{display:none}</style></main>"


class Read(HTMLParser):
    """The tags and attributes of a document, and its text."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.said: list[str] = []
        self.open: list[str] = []
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said.append(data)


@pytest.fixture(scope="module", autouse=True)
def no_base() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "base_bundle", lambda: None)
        yield


@pytest.fixture(scope="module")
def report(trained: Trained) -> dict[str, Any]:
    found = evaluate(trained.bundle, trained.catalog, tiny.queries())
    found["learning_curve"] = learning_curve(load_bundle(trained.bundle), trained.catalog, tiny.queries())
    pair = {"gold": "mail.send_message", "instead": "notes.append_note", "count": 2, "of": 3, "similarity": 0.8}
    found["confusions"] = [
        {**pair, "back": back, "advice": advice, "examples": ["send a note"]}
        for back, advice in ((1, "equals"), (0, "tell_apart"), (0, "say_more"))
    ]
    return found


def test_a_report_is_a_whole_document_with_every_part(report: dict[str, Any]) -> None:
    read = Read(page(report, "a title", "a note"))
    assert read.open == []
    said = " ".join(read.said)
    for part in (
        "a title", "a note", "Ranking quality", "Where requests are lost", "The recall chain", "where the fix lives",
        "Confused with one another", "By server", "How long a menu has to be", "Would more logs help?",
        "Is the stated relevance true?", "Saying no", "Time of a decision", report["bundle_version"],
    ):  # fmt: skip
        assert part in said, part
    anchors = {value for name, value in read.attributes if name == "id"}
    links = {value for name, value in read.attributes if name == "href"}
    assert links <= {f"#{anchor}" for anchor in anchors}


def test_the_page_asks_for_nothing_else_and_runs_nothing(report: dict[str, Any]) -> None:
    document = page(report)
    read = Read(document)
    assert not {"script", "link", "img", "iframe", "object", "embed", "form"} & set(read.tags)
    assert not [name for name, _ in read.attributes if name.startswith("on") or name in ("src", "srcset", "action")]
    assert "url(" not in document
    assert "@import" not in document
    outside = [value for name, value in read.attributes if "://" in value and name != "xmlns"]
    assert outside == []
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in read.attributes


def test_the_page_follows_the_reader_in_light_and_dark_and_on_a_phone(report: dict[str, Any]) -> None:
    document = page(report)
    assert "prefers-color-scheme: dark" in document
    assert "width=device-width" in document
    assert "max-width: 40rem" in document


def test_the_page_is_the_same_from_the_report_as_it_is_kept(report: dict[str, Any]) -> None:
    assert page(json.loads(json.dumps(report))) == page(report)


def test_hostile_names_and_requests_are_shown_and_do_nothing(trained: Trained) -> None:
    tools = {card.tool_id: f"{card.tool_id}{HOSTILE}" for card in trained.catalog}
    catalog = Catalog(
        card.model_copy(
            update={"tool_id": tools[card.tool_id], "domain": HOSTILE + card.domain, "description": HOSTILE}
        )
        for card in trained.catalog
    )
    queries = [
        query.model_copy(update={"text": f"{HOSTILE} {query.text}", "gold": tuple(tools[tool] for tool in query.gold)})
        for query in tiny.queries()
    ]
    report = evaluate(trained.bundle, catalog, queries, allow_foreign_catalog=True)
    report["counterfactual"] = {"estimates": {}, "believe": False, "because": [HOSTILE], "left_out": {}}
    assert any(row["count"] for row in report["failures"].values())
    document = page(report, HOSTILE, HOSTILE)
    read = Read(document)
    assert read.open == []
    assert not {"script", "img"} & set(read.tags)
    assert read.tags.count("style") == 1
    assert read.tags.count("main") == 1
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    assert HOSTILE in " ".join(read.said), "it is shown"


def test_invisible_and_broken_characters_are_written_out() -> None:
    assert el("code", "a\u202eb\u200bc") == "<code>a\\u{202E}b\\u{200B}c</code>"
    assert el("p", "\ud800").encode("utf-8") == b"<p>\\ud800</p>"


def test_plain_strings_are_escaped_wherever_they_stand() -> None:
    inner = el("b", "<i>")
    assert join("<", inner, None) == "&lt;<b>&lt;i&gt;</b>"
    assert el("a", "x", href='"><script>') == '<a href="&quot;&gt;&lt;script&gt;">x</a>'
    assert el("i", class_="a", data_x=1.50) == '<i class="a" data-x="1.5"></i>'


def test_parts_that_a_report_does_not_hold_are_left_out(trained: Trained) -> None:
    untrained = evaluate(None, trained.catalog, tiny.queries())
    said = " ".join(Read(page(untrained)).said)
    assert "Would more logs help?" not in said
    assert "Is the stated relevance true?" not in said
    assert "Ranking quality" in said


def test_the_page_is_written_whole_or_not_at_all(report: dict[str, Any], tmp_path: Path) -> None:
    place = save_page(report, tmp_path / "deep" / "report.html", "t")
    assert place.read_text(encoding="utf-8") == page(report, "t")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot be written"):
        save_page(report, tmp_path / "file" / "report.html")

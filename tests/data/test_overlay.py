"""Overlays: what owners may add, what they may not widen, and all that is wrong said at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from data.cards import Requires, Risk, ToolCard, Trust
from data.catalog import Catalog
from data.errors import InputError
from data.overlay import Entry, Overlay, read_overlay


def overlay(folder: Path, text: str) -> Overlay:
    path = folder / "owners.yaml"
    path.write_text(text)
    return read_overlay(path)


def card(**changes: Any) -> ToolCard:
    return ToolCard(**{"tool_id": "post.send", "name": "send", "domain": "post", "aliases": ("mail",), **changes})


def applied(folder: Path, text: str, *cards: ToolCard) -> Catalog:
    return overlay(folder, text).apply(Catalog(cards or [card()]))[0]


def test_texts_replace_and_lists_are_added(tmp_path: Path) -> None:
    (own,) = applied(tmp_path, "post.send: {summary: Write to someone, aliases: [post, mail], cost_usd: 0.5}")
    assert (own.summary, own.aliases, own.cost_usd) == ("Write to someone", ("mail", "post"), 0.5)


def test_demands_grow_and_never_shrink(tmp_path: Path) -> None:
    guarded = card(requires=Requires(scopes=("a",)), flags=("f",))
    (own,) = applied(tmp_path, "post.send:\n  requires: {scopes: [b], connections: [post]}\n  flags: [g]", guarded)
    assert own.requires == Requires(scopes=("a", "b"), connections=("post",))
    assert own.flags == ("f", "g")


def test_a_pattern_is_for_every_tool_below_it_and_the_tools_own_entry_comes_last(tmp_path: Path) -> None:
    text = "post.send: {owner: anna}\npost.*: {owner: office, requires: {connections: [post]}}\n"
    others = [card(), card(tool_id="post.read"), card(tool_id="postal.read")]
    catalog, unused = overlay(tmp_path, text).apply(Catalog(others))
    assert [own.owner for own in catalog] == ["anna", "office", ""]
    assert [own.requires.connections for own in catalog] == [("post",), ("post",), ()]
    assert unused == ()


def test_keys_that_fit_no_tool_are_reported(tmp_path: Path) -> None:
    _, unused = overlay(tmp_path, "post.gone: {owner: a}\nchat.*: {owner: b}\n").apply(Catalog([card()]))
    assert unused == ("post.gone", "chat.*")


@pytest.mark.parametrize(
    ("trust", "old", "new", "allowed"),
    [
        (Trust.THIRD_PARTY, Risk.DESTRUCTIVE, Risk.READ_ONLY, False),
        (Trust.THIRD_PARTY, Risk.WRITE, Risk.DESTRUCTIVE, True),
        (Trust.TRUSTED, Risk.DESTRUCTIVE, Risk.READ_ONLY, True),
        (Trust.TRUSTED, Risk.READ_ONLY, Risk.WRITE, True),
    ],
)
def test_a_risk_may_be_raised_and_lowered_only_for_a_trusted_source(
    tmp_path: Path, trust: Trust, old: Risk, new: Risk, allowed: bool
) -> None:
    text, before = f"post.send: {{risk: {new.word}}}", card(risk=old, trust=trust)
    if allowed:
        assert applied(tmp_path, text, before)["post.send"].risk is new
    else:
        with pytest.raises(InputError, match=r"line 1: post\.send\.risk: read_only is below destructive"):
            applied(tmp_path, text, before)


@pytest.mark.parametrize("field", ["tenants", "envs", "regions"])
def test_limits_may_be_narrowed_and_not_widened(tmp_path: Path, field: str) -> None:
    limited = card(**{field: ("a", "b")})
    (own,) = applied(tmp_path, f"post.send: {{{field}: [a]}}", limited)
    assert getattr(own, field) == ("a",)
    (own,) = applied(tmp_path, f"post.send: {{{field}: [a]}}", card())
    assert getattr(own, field) == ("a",)
    for wider in ("[a, c]", "[]"):
        with pytest.raises(InputError, match="may narrow that, not widen it"):
            applied(tmp_path, f"post.send: {{{field}: {wider}}}", limited)


def test_everything_that_is_wrong_is_said_at_once_with_its_line(tmp_path: Path) -> None:
    text = """a.b:
  summary: 3
  description: new
  cost_usd: "1"
c.d: text
e.f:
  owner:
  risk: harmless
  requires: {scope: [x]}
"""
    with pytest.raises(InputError) as caught:
        overlay(tmp_path, text)
    said = str(caught.value)
    for words in (
        "7 problems",
        "line 2: a.b.summary",
        "line 3: a.b.description: is not a field that an overlay may add",
        "line 4: a.b.cost_usd",
        "line 5: c.d: expected fields",
        "line 7: e.f.owner: is empty",
        "line 8: e.f.risk: expected read_only, write or destructive",
        "line 9: e.f.requires.scope: is not a field",
    ):
        assert words in said


def test_every_tool_that_an_overlay_would_open_is_said_at_once(tmp_path: Path) -> None:
    cards = [card(tool_id=f"post.{n}", envs=("prod",)) for n in range(3)]
    with pytest.raises(InputError) as caught:
        applied(tmp_path, "post.*: {risk: read_only, envs: [dev]}", *cards)
    assert "6 problems" in str(caught.value)


@pytest.mark.parametrize("text", ["", "- a", "just text", "{}"])
def test_a_file_that_is_no_overlay_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="expected tool ids"):
        overlay(tmp_path, text)


def test_every_field_an_overlay_may_add_is_a_field_of_a_card() -> None:
    fields = set(Entry.model_fields)
    assert fields < set(ToolCard.model_fields)
    assert not fields & {"tool_id", "name", "domain", "description", "input_schema", "trust", "first_seen"}

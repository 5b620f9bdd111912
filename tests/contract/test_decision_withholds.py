"""Contract 1: a tool that a hard filter drops is nowhere that the caller can see, and cannot be felt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import Trained

from data.cards import Requires, ToolCard
from data.catalog import Catalog
from data.context import Caller, Recent, Subgoal
from serving.bundle import Bundle, load_bundle
from serving.features import FEATURES
from serving.memory import LOST, WON, Usage
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.slice import Slice

HOLDS_ALL = Caller(principal="ann", tenant="acme", env="prod", region="eu", flags=("beta",), scopes=("accounts", "s"))
EXPLORING = SelectorSettings(explore_rate=0.5)
SAME_DOMAIN = FEATURES.index("same_domain")

WITHHELD_BY: dict[str, dict[str, Any]] = {
    "tenant": {"tenants": ("rival",)},
    "scopes": {"requires": Requires(scopes=("never granted",))},
    "connections": {"requires": Requires(connections=("never connected",))},
    "env": {"envs": ("staging",)},
    "region": {"regions": ("us",)},
    "flags": {"flags": ("alpha",)},
    "cost_ceiling": {"cost_usd": 10.0},
}
"""Rule -> what a card says so that `CALLER` does not get it."""
CALLER = HOLDS_ALL.model_copy(update={"cost_ceiling_usd": 1.0})


def catalog_with(changes: dict[str, dict[str, Any]]) -> Catalog:
    return Catalog(card.model_copy(update=changes.get(card.tool_id, {})) for card in tiny.catalog())


def assert_nowhere(found: Slice, tool_ids: set[str]) -> None:
    public = found.public().model_dump_json()
    for tool_id in tool_ids:
        assert tool_id not in public
    assert not tool_ids & {name for record in found.record for name in record.scores}, "masked tools are never scored"


def assert_felt_alike(one: Slice, other: Slice) -> None:
    """The caller cannot tell the two decisions apart: all but versions and ids is equal, figures up to the last digits,
    since sums over arrays of other lengths round differently."""
    said, figures = zip(*map(_told, (one, other)), strict=True)
    assert said[0] == said[1]
    assert figures[0] == pytest.approx(figures[1], abs=1e-5)


def _told(found: Slice) -> tuple[dict[str, Any], list[float]]:
    public = found.public().model_dump(exclude={"slice_id", "bundle_version", "catalog_version", "caller_key"})
    figures = [public["abstention"].pop("fit"), *(entry.pop("relevance") for entry in public["menu"])]
    return public, [-1.0 if figure is None else figure for figure in figures]


@pytest.fixture(scope="module")
def bundle(trained: Trained) -> Bundle:
    return load_bundle(trained.bundle)


@pytest.mark.parametrize("rule", [*WITHHELD_BY, "workflow", "health"])
@pytest.mark.parametrize("with_model", [True, False])
def test_a_masked_tool_is_nowhere_in_the_public_slice_whatever_the_rule(
    bundle: Bundle, rule: str, with_model: bool
) -> None:
    for tool_id in tiny.catalog().ids:
        selector = Selector(
            bundle if with_model else None,
            catalog_with({tool_id: WITHHELD_BY.get(rule, {})}),
            settings=EXPLORING,
        )
        caller = CALLER
        if rule == "workflow":
            caller = CALLER.model_copy(update={"allowed_tools": tuple(t for t in tiny.catalog().ids if t != tool_id)})
        if rule == "health":
            selector.set_unavailable(frozenset([tool_id]))
        goal = f"{tiny.goals(tool_id)[0]} with {tool_id.partition('.')[2].replace('_', ' ')}"
        found = selector.select(goal, caller, request_id="r")
        assert_nowhere(found, {tool_id})
        assert found.record[0].dropped == {tool_id: rule}


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.sampled_from(tiny.catalog().ids), st.sampled_from(list(WITHHELD_BY)), max_size=11),
    st.sampled_from([*tiny.catalog().ids, None]),
    st.sampled_from([None, True, False]),
    st.booleans(),
    st.integers(0, 20),
)
def test_withheld_tools_are_nowhere_even_when_they_were_used_or_asked_for_by_name(
    bundle: Bundle, rules: dict[str, str], last: str | None, mutation: bool | None, with_model: bool, number: int
) -> None:
    selector = Selector(
        bundle if with_model else None,
        catalog_with({tool_id: WITHHELD_BY[rule] for tool_id, rule in rules.items()}),
        settings=EXPLORING,
    )
    used = (last,) if last else ()
    caller = CALLER.model_copy(update={"used_tools": used, "recent": Recent(tools=used)})
    goal = Subgoal(goal=last.partition(".")[2] if last and last not in rules else "send the email", mutation=mutation)
    found = selector.select(goal, caller, request_id=f"r{number}")
    assert_nowhere(found, set(rules))


def withhold(tool_id: str) -> Catalog:
    return catalog_with({tool_id: WITHHELD_BY["scopes"]})


LINKS = ("query", "tool", "weight", "kind", "tenant")


def with_usage(bundle: Bundle, usage: Usage) -> Bundle:
    other = Bundle(bundle.path, bundle.manifest)
    other.__dict__["usage"] = usage
    return other


def forgotten(bundle: Bundle, tool_id: str) -> Bundle:
    """The same bundle as if this tool had never been called."""
    usage = bundle.usage
    keep = usage.tool != usage.tools.index(tool_id)
    return with_usage(bundle, replace(usage, **{name: getattr(usage, name)[keep] for name in LINKS}))


def with_history(bundle: Bundle) -> Bundle:
    """The same bundle as if each tool had been called for what it served as well, a third of the calls in vain."""
    usage = bundle.usage
    called = np.flatnonzero(usage.tool >= 0)
    more = {name: getattr(usage, name)[called] for name in LINKS}
    more["kind"] = np.where(np.arange(len(called)) % 3, WON, LOST).astype(np.int8)
    return with_usage(
        bundle, replace(usage, **{name: np.concatenate([getattr(usage, name), more[name]]) for name in LINKS})
    )


@pytest.mark.parametrize("tool_id", [tool for tool in tiny.catalog().ids if tool != tiny.NEVER_USED])
def test_whether_a_withheld_tool_has_a_past_changes_nothing_for_the_caller(bundle: Bundle, tool_id: str) -> None:
    catalog = withhold(tool_id)
    for past in (bundle, with_history(bundle)):
        without = forgotten(past, tool_id)
        for goal in (*tiny.goals(tool_id)[:3], "search the inbox", *tiny.no_tool_goals()[:2]):
            one, other = (Selector(b, catalog).select(goal, CALLER, request_id="r") for b in (past, without))
            assert_felt_alike(one, other)


def test_a_past_of_withheld_tools_alone_changes_nothing_without_a_head_either(bundle: Bundle) -> None:
    usage = bundle.usage
    only = usage.tool == usage.tools.index(tiny.GUARDED)
    alone = Bundle(bundle.path, bundle.manifest.model_copy(update={"files": without_heads(bundle)}))
    alone.__dict__["usage"] = replace(usage, **{name: getattr(usage, name)[only] for name in LINKS})
    nobody = Bundle(alone.path, alone.manifest)
    nobody.__dict__["usage"] = replace(usage, **{name: getattr(usage, name)[:0] for name in LINKS})
    for goal in ("check the account", "send the email", "list the appointments before noon"):
        one, other = (
            Selector(b, tiny.catalog(), settings=SelectorSettings(allow_foreign_catalog=True)).select(
                goal, Caller(), request_id="r"
            )
            for b in (alone, nobody)
        )
        assert_felt_alike(one, other)


def without_heads(bundle: Bundle) -> dict[str, str]:
    return {
        name: digest for name, digest in bundle.manifest.files.items() if not name.endswith(("ance.onnx", "ntion.onnx"))
    }


def test_the_rules_of_a_withheld_tool_change_nothing_for_the_caller(bundle: Bundle) -> None:
    """Another tenant's tool is apart: it does not even count among the tools by which words are rare or common, and so
    is as good as no tool (see test_tenants_apart)."""
    for goal in ("check the account", "pay the payment", "what is my balance"):
        seen = []
        for rule, fields in WITHHELD_BY.items():
            if rule == "tenant":
                continue
            card = {**fields, "core": rule == "env", "p50_ms": float(len(rule))}
            selector = Selector(bundle, catalog_with({tiny.GUARDED: card}), settings=EXPLORING)
            seen.append(selector.select(goal, CALLER, request_id="r"))
        for other in seen[1:]:
            assert_felt_alike(seen[0], other)


@pytest.mark.parametrize("goal", ["send the email", "check the account", "what are the appointments"])
def test_naming_a_withheld_tool_as_the_last_one_used_gives_no_hint_that_it_exists(
    bundle: Bundle, goal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = Catalog(
        [
            *withhold(tiny.GUARDED),
            ToolCard(tool_id="mail.secret", name="zzz", domain="mail", requires=Requires(scopes=("never granted",))),
        ]
    )
    answers = []
    for last in ("mail.secret", "mail.no_such_tool"):
        caller = CALLER.model_copy(update={"used_tools": (last,), "recent": Recent(tools=(last,))})
        selector = Selector(bundle, catalog)
        # a head to which nothing matters but the server used last
        monkeypatch.setattr(selector.models.head, "probabilities", lambda rows: 0.2 + 0.6 * rows[:, SAME_DOMAIN])
        answers.append(selector.select(goal, caller, request_id="r"))
    assert_felt_alike(*answers)


def test_the_request_filter_keeps_writing_tools_from_a_reading_request(bundle: Bundle) -> None:
    writes = {card.tool_id for card in tiny.catalog() if card.risk > 0}
    for number in range(30):
        found = Selector(bundle, tiny.catalog(), settings=EXPLORING).select(
            Subgoal(goal="delete the folder", mutation=False), CALLER, request_id=f"r{number}"
        )
        assert not writes & {entry.tool_id for entry in found.menu}
        assert not writes & set(found.ranking)


def test_a_menu_of_nothing_is_an_answer(bundle: Bundle) -> None:
    caller = CALLER.model_copy(update={"allowed_tools": ()})
    for with_model in (bundle, None):
        found = Selector(with_model, tiny.catalog()).select("send the email", caller, request_id="r")
        assert (found.menu, found.ranking) == ((), ())
        assert found.degradations == () or with_model is None
        assert np.isfinite(found.abstention.fit or 0.0)

"""The last stage: what plays a new tool, and that the head which learns from it does not bury one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from data.cards import ToolCard
from data.catalog import Catalog
from serving.features import Signals, features
from training.decisions import Decision, Side, same_names
from training.head import Classifier, Request, fit_relevance
from training.heads import Views, newcomers
from training.recipe import Recipe
from training.workshop import Workshop

TOOLS = tuple(f"files.tool{number}" for number in range(10))


def shop(sides: Sequence[Side], new_share: float = 0.3) -> Workshop:
    catalog = Catalog(ToolCard(tool_id=tool, name=tool.partition(".")[2], domain="files") for tool in TOOLS)
    decisions = [
        Decision(f"goal {i}", i, "", None, ((TOOLS[i], 1.0),), (), None, side, True) for i, side in enumerate(sides)
    ]
    recipe = Recipe.model_validate({"head": {"new_share": new_share}})
    return Workshop(catalog, recipe, Path("unused"), Path("unused"), decisions, same_names(catalog))


def test_the_tools_that_no_fine_tuning_has_seen_play_the_new_ones() -> None:
    assert newcomers(shop(["train", "cold", "valid", "cold"])) == {TOOLS[1], TOOLS[3]}


def test_where_no_tool_was_held_out_a_share_drawn_by_the_seed_plays_them() -> None:
    drawn = newcomers(shop(["train"] * 10))
    assert len(drawn) == 3
    assert drawn == newcomers(shop(["train"] * 10))
    assert newcomers(shop(["train"] * 10, new_share=0.0)) == frozenset()


def request(number: int, *, logged: bool) -> Request:
    """Six candidates; the right one has the best card. Unlogged, it has no past, and a rival has all the votes."""
    rng = np.random.default_rng(number)
    right = np.arange(6) == number % 6
    used = np.arange(6) == (number if logged else number + 1) % 6
    cosine = (rng.random(6) * 0.3 + 0.2 * right).astype(np.float32)
    count = np.where(right & (not logged), 0, 5).astype(np.float32)
    past = (rng.random(6) * 0.2 + 0.7 * used).astype(np.float32) * (count > 0)
    nothing = np.zeros(6, np.float32)
    rest = dict.fromkeys(("bm25", "name", "exact", "interaction", "cross", "success_rate", "same_domain"), nothing)
    return Request(
        signals=Signals(
            cosine=cosine,
            centroid=past,
            shrunk=np.where(count > 0, past, cosine).astype(np.float32),
            vote=(used * 1.0).astype(np.float32),
            nearest=past,
            count=count,
            reach=0.9,
            **rest,
        ),
        right=right,
        unsure=np.zeros(6, np.bool_),
        weight=np.ones(6, np.float32),
        group=number,
        nothing=0.0,
        gold=1,
    )


def fit(some: Sequence[Request]) -> Classifier:
    return fit_relevance(some, regularisation=1.0, calibrate=False)


NUMBERS = range(60)
VIEWS = Views(
    logged=[request(n, logged=True) for n in NUMBERS],
    unlogged=[request(n, logged=n % 3 != 0) for n in NUMBERS],
    short=[request(n, logged=n % 3 != 0) for n in NUMBERS],
    new=np.array([n % 3 == 0 for n in NUMBERS]),
)


def test_a_head_that_has_seen_first_requests_ranks_a_new_tool_above_a_rival_with_all_the_votes() -> None:
    naive, taught = fit(VIEWS.logged), fit(VIEWS.together)
    first = [request(n, logged=False) for n in range(1000, 1060)]
    assert np.mean([rank_of_right(naive, r) for r in first]) > 1.0
    assert np.mean([rank_of_right(taught, r) for r in first]) < 0.5


def rank_of_right(head: Classifier, one: Request) -> int:
    scores = head.predict_proba(features(one.signals))[:, 1]
    return int((scores > scores[one.right]).sum())


def test_each_request_counts_once_and_a_new_tools_as_its_first() -> None:
    lost = [replace(r, right=np.zeros(6, np.bool_)) for r in VIEWS.unlogged]
    found = replace(VIEWS, unlogged=lost).quality(fit)
    assert len(found) == len(NUMBERS)
    assert not found[VIEWS.new].any()
    assert found[~VIEWS.new].mean() > 0.9


def test_a_silenced_signal_is_silent_in_all_views() -> None:
    silenced = VIEWS.without("vote")
    assert not any(r.signals.vote.any() for r in (*silenced.logged, *silenced.unlogged, *silenced.short))


def test_the_head_learns_from_all_views_and_from_the_first_day() -> None:
    together, count = VIEWS.together, len(NUMBERS)
    assert together[:count] == VIEWS.logged
    assert together[count : 2 * count] == VIEWS.unlogged
    assert together[2 * count : 3 * count] == VIEWS.short
    assert len(together) == 4 * count
    assert not any(r.signals.count.any() for r in together[3 * count :])

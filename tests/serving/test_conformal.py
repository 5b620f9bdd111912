"""Menus with a guarantee: the risk stays at alpha, the menu is as short as that allows, and what voids it is said."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st
from tiny import Trained

from data.errors import BundleError
from serving.bundle import load_bundle, seal
from serving.conformal import MENU_RISK, Bars, Curve, MenuRisk, bars, curve, needed, promises, read_menu_risk
from serving.menu import MAX_TOOLS
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.slice import Slice

KNOWN = st.lists(
    st.lists(st.sampled_from([-1.0, 0.0, 0.125, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=3), min_size=1, max_size=60
)


def risk_at(threshold: float, answered: list[list[float]]) -> float:
    return float(np.mean([np.mean([value < threshold for value in of]) for of in answered]))


@given(KNOWN, st.sampled_from([0.02, 0.05, 0.1, 0.2, 0.5]))
def test_the_threshold_is_the_highest_that_the_formula_allows(answered: list[list[float]], alpha: float) -> None:
    n = len(answered)
    allowed = [
        level
        for level in sorted({value for of in answered for value in of if value >= 0.0})
        if n / (n + 1) * risk_at(level, answered) + 1 / (n + 1) <= alpha + 1e-9
    ]
    found = curve(answered).threshold(alpha)
    assert found == (allowed[-1] if allowed else None)


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_over_many_draws_the_next_request_misses_its_tools_no_more_often_than_alpha(alpha: float) -> None:
    rng = np.random.default_rng(0)
    missed = []
    for _ in range(800):
        *known, unseen = [rng.beta(2, 1, size=rng.integers(1, 4)).tolist() for _ in range(60)]
        threshold = curve(known).threshold(alpha)
        assert threshold is not None
        missed.append(risk_at(threshold, [unseen]))
    error = np.std(missed) / np.sqrt(len(missed))
    assert np.mean(missed) <= alpha + 3 * error
    assert np.mean(missed) >= alpha - 0.03, "and not much more careful than it has to be"


def test_what_no_threshold_reaches_makes_small_alphas_impossible() -> None:
    found = curve([[-1.0]] * 10 + [[0.5]] * 89)
    assert found.least == pytest.approx(0.11)
    assert found.threshold(0.1) is None
    assert found.threshold(0.12) == 0.5


def test_few_requests_promise_little() -> None:
    assert curve([[0.9]] * 8).threshold(0.1) is None
    assert curve([[0.9]] * 9).threshold(0.1) == 0.9
    assert Curve().threshold(0.5) is None


def test_a_request_without_a_right_tool_of_the_kind_says_nothing_of_it() -> None:
    assert curve([[], [0.5], []]) == curve([[0.5]])


def test_the_menu_needs_what_reaches_the_bar_of_its_kind_and_always_the_first() -> None:
    relevant, is_new = np.array([0.5, 0.4, 0.4, 0.2]), np.array([False, False, True, True])
    assert promises(relevant) == pytest.approx([0.5, 0.2, 0.12, 0.036])
    assert needed(relevant, is_new, Bars(0.1, warm=0.3, cold=0.1)).tolist() == [True, False, True, False]
    assert needed(relevant, is_new, Bars(0.1, warm=0.95, cold=0.95)).tolist() == [True, False, False, False]
    assert needed(relevant, is_new, Bars(0.1, warm=0.3, cold=None)).tolist() == [True, False, True, True]


def test_a_sure_first_tool_leaves_nothing_for_the_second_to_promise() -> None:
    assert promises(np.array([1.0, 0.9])).tolist() == [1.0, 0.0]
    assert promises(np.zeros(0)).tolist() == []


def test_what_ranks_below_the_longest_menu_is_never_needed() -> None:
    found = needed(np.full(30, 0.5), np.zeros(30, np.bool_), Bars(0.1, warm=None, cold=0.1))
    assert found.sum() == MAX_TOOLS


def test_a_file_of_another_form_is_refused(tmp_path: Path) -> None:
    (tmp_path / MENU_RISK).write_text('{"format": 2}')
    with pytest.raises(BundleError, match=r"menu_risk\.json: cannot be read .* train the bundle again"):
        read_menu_risk(tmp_path / MENU_RISK)


# --- as it serves -----------------------------------------------------------------------------------------------------

GOAL = tiny.goals("mail.send_message")[0]


@pytest.fixture(scope="module")
def bundle(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trained bundle with a curve by which to promise 0.5 is enough at alpha 0.2, and nothing is at 0.005."""
    folder = tmp_path_factory.mktemp("guarantee") / "bundle"
    shutil.copytree(trained.bundle, folder)
    of_both = curve([[0.5]] * 99)
    (folder / MENU_RISK).write_text(MenuRisk(warm=of_both, cold=of_both).model_dump_json())
    seal(folder, load_bundle(trained.bundle).manifest)
    return folder


def select(trained: Trained, bundle: Path | None, alpha: float | None, **how: int) -> Slice:
    settings = SelectorSettings(explore_rate=0.0, menu_alpha=alpha)
    return Selector.load(bundle, trained.catalog, settings=settings).select(GOAL, request_id="r", **how)


def said(found: Slice) -> list[str]:
    return [d.what for d in found.degradations if "guarantee" in d.what or "misses as little" in d.what]


def test_a_guaranteed_menu_holds_what_is_relevant_enough_and_drops_the_rest(trained: Trained, bundle: Path) -> None:
    long, short = select(trained, bundle, None), select(trained, bundle, 0.2)
    assert short.ranking == long.ranking
    relevant = next(r.scores for r in short.record if r.stage == "relevance")
    promised = dict(zip(relevant, promises(np.array(list(relevant.values()))).tolist(), strict=True))
    on_menu = {entry.tool_id for entry in short.menu if entry.reason != "core"}
    assert on_menu == ({tool for tool, value in promised.items() if value >= 0.5} | {short.ranking[0]}) - {tiny.CORE}
    assert len(short.menu) < len(long.menu)
    dropped = next(r.dropped for r in short.record if r.stage == "menu")
    assert set(dropped.values()) == {"not_needed"}
    assert not said(short)


def test_without_an_alpha_nothing_changes(trained: Trained, bundle: Path) -> None:
    found = select(trained, bundle, None)
    assert not said(found)
    assert found.menu == select(trained, trained.bundle, None).menu


def test_an_alpha_that_cannot_be_had_shows_everything_and_says_so(trained: Trained, bundle: Path) -> None:
    found = select(trained, bundle, 0.005)
    assert found.menu == select(trained, bundle, None).menu
    assert any("misses as little as 0.005" in what for what in said(found))


def test_limits_that_cut_into_the_guarantee_are_said(trained: Trained, bundle: Path) -> None:
    (what,) = said(select(trained, bundle, 0.2, token_budget=0))
    assert "do not fit the menu" in what


def test_a_bundle_that_knows_no_risk_and_no_bundle_say_so(trained: Trained, bundle: Path, tmp_path: Path) -> None:
    older = tmp_path / "older"
    shutil.copytree(bundle, older)
    (older / MENU_RISK).unlink()
    seal(older, load_bundle(bundle).manifest)
    for folder in (older, None):
        assert said(select(trained, folder, 0.2)) == ["the menu has no guarantee: the bundle does not know its risk"]


def test_bars_are_those_of_their_kinds() -> None:
    risk = MenuRisk(warm=curve([[0.5]] * 99), cold=curve([[0.25]] * 99))
    assert bars(risk, 0.1) == Bars(0.1, 0.5, 0.25)

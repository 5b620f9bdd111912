"""Abstention: learned from requests that nothing fits, logged or made, and held to the precision that was chosen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.features import Signals
from training.abstention import Fit, Scored, fit_abstention, precise_threshold
from training.head import FIT_WIDTH, Request, export_head
from training.recipe import HeadPart

NOTHING = np.zeros(6, np.float32)


def scored(number: int, *, fits: bool, spread: float = 0.3) -> Scored:
    """A request whose best candidate is relevant where a tool fits, and hardly where none does; some are in between."""
    rng = np.random.default_rng(number)
    relevant = rng.random(6) * 0.2
    relevant[0] = np.clip((0.7 if fits else 0.3) + spread * rng.normal(), 0.01, 0.99)
    signals = Signals(**dict.fromkeys([f for f in Signals.__dataclass_fields__ if f != "reach"], NOTHING), reach=0.5)
    flags = np.zeros(6, np.bool_)
    return Request(signals, flags, flags, np.ones(6, np.float32), number, 0.0, int(fits)), relevant


ANSWERED = [scored(n, fits=True) for n in range(200)]
LOGGED = [scored(n, fits=False) for n in range(1000, 1150)]
MADE = [scored(n, fits=False) for n in range(200)]


def fit(nothing: list[Scored], removed: list[Scored], weight: float = 1.0, **part: float) -> Fit:
    found = fit_abstention(ANSWERED, nothing, removed, answered_weight=weight, part=HeadPart.model_validate(part))
    assert found is not None
    return found


def test_the_chosen_precision_is_had_and_a_higher_one_costs_recall() -> None:
    loose, strict = (fit(LOGGED, [], precision=p, turned_away=0.9, warned=0.9) for p in (0.7, 0.95))
    assert loose.precision is not None
    assert strict.precision is not None
    assert loose.recall is not None
    assert strict.recall is not None
    assert 0.7 <= loose.precision < 0.95 <= strict.precision
    assert strict.recall < loose.recall
    assert strict.missing_below < loose.missing_below <= loose.widen_below


def test_answerable_requests_are_not_turned_away_beyond_their_share_whatever_the_precision_allows() -> None:
    free, bounded = (fit(LOGGED, [], precision=0.5, turned_away=share) for share in (0.4, 0.05))
    assert bounded.missing_below < free.missing_below


def test_the_rarer_it_is_that_nothing_fits_the_harder_it_is_to_be_sure() -> None:
    common, rare = (fit(LOGGED, [], weight=w, precision=0.7, turned_away=0.9, warned=0.9) for w in (1.0, 5.0))
    assert common.recall is not None
    assert rare.recall is not None
    assert rare.recall < common.recall


def test_without_logged_requests_that_nothing_fitted_made_ones_teach_and_the_recipe_says_how_common_they_are() -> None:
    assert fit_abstention(ANSWERED, LOGGED[:19], [], answered_weight=1.0, part=HeadPart()) is None
    rare, common = (fit([], MADE, nothing_share=s, precision=0.7, turned_away=0.9, warned=0.9) for s in (0.05, 0.5))
    assert rare.missing_below < common.missing_below
    assert common.auroc is None
    assert common.auroc_removed is not None
    assert common.auroc_removed > 0.7


def test_a_made_request_is_judged_by_a_head_that_saw_neither_it_nor_what_it_was_made_of() -> None:
    only = [scored(n, fits=False) for n in range(20)]  # the groups of the first answered ones
    found = fit_abstention(ANSWERED[:20], [], only, answered_weight=1.0, part=HeadPart())
    assert found is not None
    assert "recall" not in found.figures
    assert set(found.figures) <= {"precision", "recall_removed", "auroc_removed"}


def test_the_exported_head_is_the_fitted_one(tmp_path: Path) -> None:
    assert export_head(fit(LOGGED, MADE).model, tmp_path / "abstention.onnx", FIT_WIDTH) < 1e-5


values = st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.4, 0.5]), min_size=0, max_size=12).map(np.array)


@given(values, values, st.sampled_from([0.3, 0.5, 0.8]), st.sampled_from([0.5, 1.0, 3.0]))
def test_the_threshold_is_the_highest_of_that_precision(
    unfit: np.ndarray, fit: np.ndarray, precision: float, weight: float
) -> None:
    def precise(threshold: float) -> bool:
        told, wrongly = weight * (unfit < threshold).sum(), (fit < threshold).sum()
        return bool(told + wrongly > 0 and told >= precision * (told + wrongly) - 1e-9)

    levels = [0.15, 0.25, 0.35, 0.45, 0.55]
    found = precise_threshold(unfit, fit, precision, weight)
    best = max((level for level in levels if precise(level)), default=None)
    if best is None:
        assert found == 0.0
    else:
        assert (unfit < found).sum() == (unfit < best).sum()
        assert (fit < found).sum() == (fit < best).sum()


@pytest.mark.parametrize("name", ["precision", "removed", "nothing_share"])
def test_a_share_is_no_more_than_all(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        HeadPart.model_validate({name: 1.5})

"""The heads: what is exported is what was fitted, calibrated, and blind to what it must not see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from serving.features import FEATURES, Signals, features
from serving.relevance import Head
from training.head import (
    RELEVANCE_WIDTH,
    Classifier,
    Request,
    export_head,
    first_day,
    fit_relevance,
    out_of_fold,
    probabilities,
    without,
)
from training.metrics import expected_calibration_error


def request(number: int, *, answered: bool = True, k: int = 6) -> Request:
    """The right candidate has a higher cosine than the others, and sometimes it does not."""
    rng = np.random.default_rng(number)
    arrays = {f.name: rng.random(k).astype(np.float32) for f in fields(Signals) if f.name != "reach"}
    right = np.zeros(k, np.bool_)
    if answered:
        right[number % k] = True
        arrays["cosine"][number % k] += 0.6
    return Request(
        signals=Signals(**arrays, reach=0.4),
        right=right,
        unsure=np.zeros(k, np.bool_),
        weight=np.ones(k, np.float32),
        group=number,
        nothing=float(not answered) * 0.7 + 0.1,
        gold=1,
    )


REQUESTS = [request(number) for number in range(120)]


def fit(some: Sequence[Request]) -> Classifier:
    return fit_relevance([*some, *first_day(some)], regularisation=1.0)


def test_the_served_head_is_the_fitted_one(tmp_path: Path) -> None:
    head = fit(REQUESTS)
    assert export_head(head, tmp_path / "relevance.onnx", RELEVANCE_WIDTH) < 1e-5
    rows = features(REQUESTS[0].signals)
    served = Head(tmp_path / "relevance.onnx").probabilities(rows)
    np.testing.assert_allclose(served, probabilities(head, rows), atol=1e-5)


def test_a_head_that_is_exported_wrongly_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = fit(REQUESTS)
    monkeypatch.setattr(head, "predict_proba", lambda rows: np.full((len(rows), 2), 0.5))
    with pytest.raises(RuntimeError, match=r"relevance\.onnx: the exported head differs"):
        export_head(head, tmp_path / "relevance.onnx", RELEVANCE_WIDTH)


def test_probabilities_are_calibrated_on_requests_that_were_not_fitted() -> None:
    head, held_out = fit(REQUESTS), [request(number) for number in range(500, 900)]
    said = np.concatenate([probabilities(head, features(r.signals)) for r in held_out])
    error = expected_calibration_error(said, np.concatenate([r.right for r in held_out]))
    assert error is not None
    assert error < 0.04  # these requests are no logistic regression's: with a thousand to learn from it is 0.028


def test_calibration_keeps_the_order_of_the_plain_model() -> None:
    plain = fit_relevance([*REQUESTS, *first_day(REQUESTS)], regularisation=1.0, calibrate=False)
    rows = features(request(999, k=40).signals)
    np.testing.assert_array_equal(
        np.argsort(probabilities(plain, rows)), np.argsort(probabilities(fit(REQUESTS), rows))
    )


def test_what_weighs_nothing_teaches_nothing_and_what_weighs_less_teaches_less() -> None:
    rows = features(REQUESTS[0].signals)
    odd = [r.group % 2 == 1 for r in REQUESTS]
    lies = [replace(r, right=~r.right) if is_odd else r for r, is_odd in zip(REQUESTS, odd, strict=True)]

    def said(weight: float) -> float:
        weighed = [replace(r, weight=r.weight * weight) if o else r for r, o in zip(lies, odd, strict=True)]
        return float(probabilities(fit_relevance(weighed, regularisation=1.0, calibrate=False), rows).mean())

    honest = [r for r, is_odd in zip(REQUESTS, odd, strict=True) if not is_odd]
    alone = float(probabilities(fit_relevance(honest, regularisation=1.0, calibrate=False), rows).mean())
    assert said(0.0) == pytest.approx(alone, abs=0.02)
    assert said(0.0) < said(0.2) < said(1.0)


def test_on_the_first_day_nothing_has_a_past() -> None:
    (request_,) = first_day(REQUESTS[:1])
    seen = request_.signals
    assert not any(a.any() for a in (seen.centroid, seen.vote, seen.nearest, seen.count))
    assert (seen.success_rate == 1.0).all()
    assert seen.reach == 0.0
    np.testing.assert_array_equal(seen.shrunk, seen.cosine)
    np.testing.assert_array_equal(seen.bm25, REQUESTS[0].signals.bm25)


def test_unsure_candidates_teach_nothing() -> None:
    marked = [replace(r, unsure=np.arange(6) == (r.group + 1) % 6) for r in REQUESTS]
    flipped = [replace(r, right=r.right ^ r.unsure) for r in marked]
    rows = features(REQUESTS[0].signals)
    np.testing.assert_array_equal(
        probabilities(fit_relevance(marked, regularisation=1.0), rows),
        probabilities(fit_relevance(flipped, regularisation=1.0), rows),
    )


def test_out_of_fold_a_request_is_never_judged_by_a_head_that_saw_its_group() -> None:
    twins = [replace(request(number), group=number // 2) for number in range(40)]
    judged: list[set[int]] = []

    def watching(some: Sequence[Request]) -> Classifier:
        judged.append({r.group for r in some})
        return fit(some)

    found = out_of_fold(twins, watching)
    assert [len(row) for row in found] == [6] * 40
    assert set.intersection(*judged) == set(), "every group is left out once"
    assert all(len(groups) < 20 for groups in judged)


def test_one_group_alone_is_judged_by_its_own_head() -> None:
    same = [replace(request(number), group=0) for number in range(30)]
    assert all(len(row) == 6 for row in out_of_fold(same, fit))


def test_silenced_signals_are_zero_and_the_others_as_they_were() -> None:
    silenced = without(REQUESTS[:2], "interaction", "cross")
    assert not silenced[0].signals.interaction.any()
    assert not silenced[0].signals.cross.any()
    np.testing.assert_array_equal(silenced[0].signals.cosine, REQUESTS[0].signals.cosine)


def test_a_plain_logistic_regression_is_exported_too(tmp_path: Path) -> None:
    few = REQUESTS[:4]
    model = fit(few)
    assert isinstance(model[-1], LogisticRegression)
    assert export_head(model, tmp_path / "head.onnx", len(FEATURES)) < 1e-5

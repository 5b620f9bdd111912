"""The heads: calibrated logistic regressions over the features of serving, fitted on requests no encoder has seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from serving.features import FEATURES, Signals, features
from serving.relevance import FIT_FEATURES

FOLDS = 5
"""Parts that requests are dealt into, by group, to judge each by a head that has not seen it."""
EXPORT_BOUND = 1e-4
"""Largest difference to scikit-learn, in probability, that an exported head may show."""


@dataclass(frozen=True)
class Request:
    """What a head learns from: the candidates' signals, which are right (k,), which say nothing (k,), and the group.

    `right` all False = no tool fits. `weight` (k,): how much each candidate's label counts, that of its mining rule.
    `nothing`: share of the neighbours' votes for "nothing fitted". `lost`: for each right tool that is not among the
    candidates, whether it has no past.
    """

    signals: Signals
    right: NDArray[np.bool_]
    unsure: NDArray[np.bool_]
    weight: NDArray[np.float32]
    group: int
    nothing: float
    gold: int
    lost: tuple[bool, ...] = ()

    @property
    def tells(self) -> bool:
        """Whether a right tool and a wrong one are among the candidates."""
        sure = ~self.unsure
        return bool((self.right & sure).any() and (~self.right & sure).any())


Classifier = Any


def fit_relevance(requests: Sequence[Request], *, regularisation: float, calibrate: bool = True) -> Classifier:
    """Fit P(right | features) on requests with a right tool; sigmoid calibration on folds grouped by request."""
    sure = [~request.unsure for request in requests]
    x = np.concatenate([features(request.signals)[keep] for request, keep in zip(requests, sure, strict=True)])
    y = np.concatenate([request.right[keep] for request, keep in zip(requests, sure, strict=True)])
    weight = np.concatenate([request.weight[keep] for request, keep in zip(requests, sure, strict=True)])
    g = np.concatenate([np.full(int(keep.sum()), r.group) for r, keep in zip(requests, sure, strict=True)])
    folds = min(FOLDS, len(np.unique(g)))
    if not calibrate or folds < 2 or y.sum() < 10:
        return fit_weighted(x, y, weight, regularisation)
    splits = list(GroupKFold(folds).split(x, y, g))
    if any(len(np.unique(y[train])) < 2 or len(np.unique(y[test])) < 2 for train, test in splits):
        return fit_weighted(x, y, weight, regularisation)
    calibrated = CalibratedClassifierCV(_logistic(regularisation), method="sigmoid", cv=splits, ensemble=False)
    return _folded(calibrated.fit(x, y, logisticregression__sample_weight=weight))


def first_day(requests: Sequence[Request]) -> list[Request]:
    """The requests as they would have been before anything was logged."""
    return [replace(request, signals=request.signals.without_past()) for request in requests]


def out_of_fold(
    requests: Sequence[Request], fit: Callable[[Sequence[Request]], Classifier]
) -> list[NDArray[np.float64]]:
    """Relevance of each request's candidates by a head that was fitted without that request's group."""
    groups = np.array([request.group for request in requests])
    found: list[NDArray[np.float64]] = [np.zeros(0)] * len(requests)
    folds = min(FOLDS, len(np.unique(groups)))
    if folds < 2:
        head = fit(requests)
        return [probabilities(head, features(request.signals)) for request in requests]
    for train, test in GroupKFold(folds).split(groups, groups=groups):
        head = fit([requests[i] for i in train])
        for i in test:
            found[i] = probabilities(head, features(requests[i].signals))
    return found


def probabilities(model: Classifier, rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """P(positive) (k,)."""
    return np.asarray(model.predict_proba(rows)[:, 1], np.float64) if len(rows) else np.zeros(0)


def without(requests: Sequence[Request], *names: str) -> list[Request]:
    """The same requests with some signals silenced, to see what they are worth."""
    silenced = []
    for request in requests:
        nothing: dict[str, Any] = dict.fromkeys(names, np.zeros_like(request.signals.cosine))
        silenced.append(replace(request, signals=replace(request.signals, **nothing)))
    return silenced


def export_head(model: Classifier, path: Path, width: int) -> float:
    """Write a head as ONNX; returns the largest difference to scikit-learn over random rows.

    Raises RuntimeError where that is more than rounding: probabilities that are served are those that were fitted.
    """
    import onnxruntime as ort
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType

    graph = to_onnx(
        model, initial_types=[("features", FloatTensorType([None, width]))], options={"zipmap": False}, target_opset=17
    )
    path.write_bytes(graph.SerializeToString())
    rows = np.random.default_rng(0).normal(size=(256, width)).astype(np.float32)
    served = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, {"features": rows})[-1]
    difference = float(np.abs(np.asarray(served)[:, 1] - probabilities(model, rows)).max())
    if not difference <= EXPORT_BOUND:
        raise RuntimeError(f"{path.name}: the exported head differs from scikit-learn by {difference:.2g}")
    return difference


RELEVANCE_WIDTH = len(FEATURES)
FIT_WIDTH = len(FIT_FEATURES)


def _logistic(regularisation: float) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=regularisation, max_iter=2000))


def _folded(calibrated: CalibratedClassifierCV) -> Any:
    """The calibrated model as one logistic regression: sigmoid(-(a * score + b)) of a linear score is linear inside.

    skl2onnx would export the calibration of a pipeline on its probabilities, where scikit-learn fits it on the score.
    """
    of_all = calibrated.calibrated_classifiers_[0]
    model, platt = of_all.estimator, of_all.calibrators[0]
    logistic = model[-1]
    logistic.coef_ = -platt.a_ * logistic.coef_
    logistic.intercept_ = -(platt.a_ * logistic.intercept_ + platt.b_)
    return model


def fit_weighted(
    x: NDArray[np.float32], y: NDArray[np.bool_], weight: NDArray[np.floating], regularisation: float = 1.0
) -> Classifier:
    """A standardised logistic regression on rows x (n, f) with labels y and weights (n,)."""
    return _logistic(regularisation).fit(x, y, logisticregression__sample_weight=weight)

"""Abstention: whether any tool fits, learned from requests that nothing fitted, logged ones and made ones.

A log has few requests that nothing fitted, and they are of few kinds. A request whose right tools are taken out of the
catalog is another that nothing fits, and like those that people ask. The thresholds are for a chosen precision: of the
requests that are told that nothing fits, the share for which that is so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold

from serving.relevance import fit_features
from training.head import FOLDS, Classifier, Request, fit_weighted, probabilities
from training.metrics import auroc
from training.recipe import HeadPart

LEAST_REQUESTS = 20
"""Fewer requests that nothing fitted say too little of how common such requests are, or of what they are like."""

Scored = tuple[Request, NDArray[np.float64]]
"""A request with the relevance (k,) of its candidates."""


@dataclass(frozen=True)
class Fit:
    """The abstention head, its thresholds, and what they do out of fold.

    `precision` of telling that nothing fits, None where nobody is told; `recall` and `auroc` by what nothing fitted:
    logged requests, and those whose tools were taken away (None: there is none of these).
    """

    model: Classifier
    missing_below: float
    widen_below: float
    precision: float | None
    recall: float | None
    recall_removed: float | None
    auroc: float | None
    auroc_removed: float | None

    @property
    def figures(self) -> dict[str, float]:
        """Those of the figures that there are, by name."""
        names = ("precision", "recall", "recall_removed", "auroc", "auroc_removed")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def fit_abstention(
    answered: Sequence[Scored],
    nothing: Sequence[Scored],
    removed: Sequence[Scored],
    *,
    answered_weight: float,
    part: HeadPart,
) -> Fit | None:
    """Fit P(some tool fits) and choose the thresholds, out of fold; None where there is too little to learn from.

    `answered_weight` makes up for answered requests that other models have used up. How common it is that nothing fits
    comes from the log, or from the recipe where the log has fewer than `LEAST_REQUESTS` such requests.
    """
    few = len(nothing) < LEAST_REQUESTS
    if few and len(removed) < LEAST_REQUESTS:
        return None
    every = [*answered, *nothing, *removed]
    x = np.concatenate([fit_features(relevant, request.signals, request.nothing) for request, relevant in every])
    kind = np.repeat(["answered", "nothing", "removed"], [len(answered), len(nothing), len(removed)])
    groups = np.array([request.group for request, _ in every])
    weight = np.ones(len(every))
    weight[kind == "answered"] = answered_weight
    mass = answered_weight * len(answered)
    weight[kind == "removed"] = part.removed * mass / max(len(removed), 1)
    fits = kind == "answered"
    held = np.zeros(len(every))
    for train, test in GroupKFold(min(FOLDS, len(np.unique(groups)))).split(x, fits, groups):
        held[test] = probabilities(fit_weighted(x[train], fits[train], weight[train]), x[test])

    known = "removed" if few else "nothing"
    common = part.nothing_share / (1 - part.nothing_share) * mass / max(len(removed), 1) if few else 1.0
    unfit = held[kind == known]

    def below(precision: float, at_most: float) -> float:
        return min(
            precise_threshold(unfit, held[fits], precision, common / answered_weight),
            float(np.quantile(held[fits], at_most)),
        )

    missing = below(part.precision, part.turned_away)
    told, wrongly = common * float((unfit < missing).sum()), answered_weight * float((held[fits] < missing).sum())
    return Fit(
        model=fit_weighted(x, fits, weight),
        missing_below=missing,
        widen_below=max(missing, below(part.warning_precision, max(part.warned, part.turned_away))),
        precision=told / (told + wrongly) if told + wrongly else None,
        recall=_share_below(held[kind == "nothing"], missing),
        recall_removed=_share_below(held[kind == "removed"], missing),
        auroc=_auroc(held[kind == "nothing"], held[fits]),
        auroc_removed=_auroc(held[kind == "removed"], held[fits]),
    )


def precise_threshold(
    unfit: NDArray[np.float64], fit: NDArray[np.float64], precision: float, unfit_weight: float = 1.0
) -> float:
    """The highest threshold below which at least the share `precision` is of `unfit` (n,), each weighing `unfit_weight`
    times one of `fit` (m,); 0.0 where there is none."""
    every = np.concatenate([unfit, fit])
    order = np.argsort(every, kind="stable")
    masses = np.concatenate([np.full(len(unfit), unfit_weight), np.zeros(len(fit))])[order]
    others = np.concatenate([np.zeros(len(unfit)), np.ones(len(fit))])[order]
    right, both = np.cumsum(masses), np.cumsum(masses + others)
    level = every[order]
    whole = np.append(level[1:] > level[:-1], True)  # equal values fall on one side
    good = np.flatnonzero((right >= precision * both - 1e-12) & whole)
    if not len(good):
        return 0.0
    last = int(good[-1])
    return float(level[last + 1]) if last + 1 < len(level) else float(np.nextafter(level[last], np.inf))


def _share_below(values: NDArray[np.float64], threshold: float) -> float | None:
    return float((values < threshold).mean()) if len(values) else None


def _auroc(unfit: NDArray[np.float64], fit: NDArray[np.float64]) -> float | None:
    return auroc(np.concatenate([-unfit, -fit]), np.repeat([1, 0], [len(unfit), len(fit)])) if len(unfit) else None

"""Counterfactual estimates: how often a new selector's menus would have led to a success, from logged decisions alone.

The model: an agent that is shown a tool calls it, and succeeds, as often as it does whatever else is shown. Then a
decision's expected success is the sum over tools of chance(shown) * P(called and succeeds | shown), and what was earned
by the tools that were shown, each weighted by chance(shown by the new selector) / chance(shown by the logging one), is
an unbiased estimate of it (the additive form of slate estimators: Swaminathan et al. 2017, with the doubly robust
correction of Dudik et al. 2011). A tool that the log never could show has no weight that makes up for it: `overlap`
says when that matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import InputError

CLIP = 20.0
"""Largest weight of the clipped estimate: a tool tried once in a hundred requests counts as one in twenty."""
FEW_DECISIONS = 50
EFFECTIVE_SHARE = 0.1
HEAVY_SHARE = 0.1
CLIPPED_SHARE = 0.05
UNMATCHED_SHARE = 0.5
UNCOVERED_SHARE = 0.2
NOVEL_SHARE = 0.05
FEW_WITNESSES = 15
BY_CHANCE = 0.5
"""A tool that was shown with a smaller chance than this owes its place to exploration."""

UNSHOWN, NOTHING = -1, -2
"""In the place of an item: the tool was not shown then; there is no such tool."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LoggedDecisions:
    """n decisions and the m tools that they showed.

    By decision: `group` (n,) int, decisions of one trace share it; `called` (n,) int, the item that was called;
    `reward` (n,) 0 or 1, whether the call succeeded; `direct` (n,) the predicted success under the new selector,
    `first` (n,) int, the item of its first tool, or UNSHOWN, or NOTHING where it shows none by rank.
    By item: `decision` (m,) int, its decision; `logged` (m,) in (0, 1] and `target` (m,) in [0, 1], the chances that
    the logging and the new selector show it; `predicted` (m,) P(called and succeeds | shown).

    Raises InputError for no decision, a chance outside its bounds, NaN, and arrays that do not belong together.
    """

    group: Ints
    called: Ints
    reward: Floats
    direct: Floats
    first: Ints
    decision: Ints
    logged: Floats
    target: Floats
    predicted: Floats

    def __post_init__(self) -> None:
        n, m = len(self.reward), len(self.decision)
        if n == 0:
            raise InputError("there is no decision to estimate from", field="decisions")
        by_decision, by_item = (self.group, self.called, self.direct, self.first), (self.logged, self.target)
        if any(len(a) != n for a in by_decision) or any(len(a) != m for a in (*by_item, self.predicted)):
            raise InputError("the arrays of decisions and of items do not belong together", field="decisions")
        if not ((self.logged > 0) & (self.logged <= 1)).all():
            raise InputError("a logged propensity is not in (0, 1]", field="propensity", hint="log the exact chances")
        if not ((self.target >= 0) & (self.target <= 1)).all():
            raise InputError("a chance to be shown is not in [0, 1]", field="target")
        if not all(np.isfinite(a).all() for a in (self.reward, self.direct, self.predicted)):
            raise InputError("a reward or a prediction is not a finite number", field="reward")
        if (self.decision[self.called] != np.arange(n)).any():
            raise InputError("a called tool belongs to another decision", field="called")

    @property
    def weight(self) -> Floats:
        """(m,): how much more often the new selector shows each item than the logging one did."""
        return self.target / self.logged

    @property
    def called_weight(self) -> Floats:
        """(n,): the weight of each decision's called tool."""
        weights: Floats = self.weight[self.called]
        return weights


@dataclass(frozen=True, eq=False)
class Terms:
    """An estimate as the ratio of two sums over decisions, both (n,): a mean has ones below."""

    above: Floats
    below: Floats

    @property
    def value(self) -> float | None:
        """None where nothing is below: no logged call was of a tool that the new selector shows."""
        total = float(self.below.sum())
        return float(self.above.sum()) / total if total > 0.0 else None


def logged_success(log: LoggedDecisions) -> Terms:
    """What the log itself earned."""
    return Terms(log.reward, np.ones(len(log.reward)))


def inverse_propensity(log: LoggedDecisions, clip: float = np.inf) -> Terms:
    """Successes, weighted. Unbiased without `clip`; with it, less spread and a bias towards too little."""
    return Terms(np.minimum(log.called_weight, clip) * log.reward, np.ones(len(log.reward)))


def self_normalised(log: LoggedDecisions) -> Terms:
    """Success per weighted call (Swaminathan & Joachims 2015): within [0, 1], and the scale of the weights cancels."""
    return Terms(log.called_weight * log.reward, log.called_weight)


def doubly_robust(log: LoggedDecisions) -> Terms:
    """The prediction, corrected by what the log says it got wrong: right if either propensities or prediction are."""
    earned = np.zeros(len(log.decision))
    earned[log.called] = log.reward
    correction = np.bincount(log.decision, log.weight * (earned - log.predicted), minlength=len(log.reward))
    return Terms(log.direct + correction, np.ones(len(log.reward)))


ESTIMATORS = {
    "inverse_propensity": inverse_propensity,
    "clipped": lambda log: inverse_propensity(log, CLIP),
    "self_normalised": self_normalised,
    "doubly_robust": doubly_robust,
}


def asymptotic_interval(terms: Terms, group: Ints, level: float = 0.95) -> tuple[float, float] | None:
    """Interval by linearisation, decisions of one group summed first; None with fewer than two groups or no value."""
    value = terms.value
    sums, count = _by_group(terms.above - (value or 0.0) * terms.below, group)
    if value is None or count < 2:
        return None
    error = np.sqrt((sums**2).sum() * count / (count - 1)) / float(terms.below.sum())
    reach = float(NormalDist().inv_cdf((1 + level) / 2) * error)
    return value - reach, value + reach


def bootstrap_interval(
    terms: Terms, group: Ints, seed: int, samples: int = 1000, level: float = 0.95
) -> tuple[float, float] | None:
    """Percentile interval over groups drawn with replacement; None with fewer than two groups or no value."""
    above, count = _by_group(terms.above, group)
    below, _ = _by_group(terms.below, group)
    if terms.value is None or count < 2:
        return None
    random = np.random.default_rng(seed)
    drawn = []
    for _ in range(samples):
        rows = random.integers(0, count, count)
        under = below[rows].sum()
        if under > 0.0:
            drawn.append(above[rows].sum() / under)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def gain(terms: Terms, log: LoggedDecisions) -> Terms:
    """The estimate minus what the log earned, as terms whose `asymptotic_interval` is that of the paired difference."""
    value = terms.value or 0.0
    scale = len(log.reward) / max(float(terms.below.sum()), 1e-12)
    influence = scale * (terms.above - value * terms.below) + value
    return Terms(influence - log.reward, np.ones(len(log.reward)))


def overlap(log: LoggedDecisions, clip: float = CLIP) -> dict[str, float]:
    """What an estimate rests on: counts, and shares in [0, 1].

    `effective`: decisions that would carry as much with equal weights (Kish). `heaviest`: the share of all weighted
    successes that one decision brings. `unmatched`: decisions whose called tool the new selector does not show.
    `novel`: decisions whose first tool was not shown then. `covered`: how far the decisions that did show it make up
    for those, by weight: 1 in expectation where the log could have shown every first tool, whatever its chance, and
    less by the share of those that it never could. `witnesses`: decisions that did show it, and by chance.
    """
    weights, earned = log.called_weight, log.called_weight * log.reward
    total = float(weights.sum())
    chance = np.bincount(log.decision, log.logged < 1.0, minlength=len(weights)) > 0
    there = log.first >= 0
    made_up = np.where(there, log.weight[np.where(there, log.first, 0)], (log.first == NOTHING).astype(np.float64))
    return {
        "decisions": len(weights),
        "traces": len(np.unique(log.group)),
        "effective": total**2 / float((weights**2).sum()) if total > 0.0 else 0.0,
        "largest_weight": float(weights.max()),
        "heaviest": float(earned.max() / earned.sum()) if earned.any() else 1.0,
        "clipped": float((weights > clip).mean()),
        "unmatched": float((weights == 0.0).mean()),
        "novel": float((log.first == UNSHOWN).mean()),
        "covered": float(made_up.mean()),
        "witnesses": int((there & (log.logged[np.where(there, log.first, 0)] < BY_CHANCE)).sum()),
        "randomised": float(chance.mean()),
    }


def doubts(found: dict[str, float], reward: Floats) -> list[str]:
    """Why not to believe the estimates, in plain words; empty: nothing speaks against them."""
    n = int(found["decisions"])
    said = [
        (n < FEW_DECISIONS, f"there are only {n} decisions"),
        (
            found["effective"] < max(FEW_DECISIONS / 2, EFFECTIVE_SHARE * n) and n >= FEW_DECISIONS,
            f"the weights leave {found['effective']:.0f} effective decisions of {n}",
        ),
        (found["heaviest"] > HEAVY_SHARE, f"one decision brings {found['heaviest']:.0%} of the weighted successes"),
        (found["clipped"] > CLIPPED_SHARE, f"{found['clipped']:.0%} of the weights are over {CLIP:g}"),
        (
            found["unmatched"] > UNMATCHED_SHARE,
            f"in {found['unmatched']:.0%} of the decisions the new model does not show the tool that was called",
        ),
        (
            abs(found["covered"] - 1.0) > UNCOVERED_SHARE,
            f"in {found['novel']:.0%} of the decisions the new model's first tool was not shown then, and the others, "
            f"weighted, stand for {found['covered']:.0%} of what they should",
        ),
        (
            found["novel"] > NOVEL_SHARE and found["witnesses"] < FEW_WITNESSES,
            f"in {found['novel']:.0%} of the decisions the new model's first tool was not shown then, and "
            f"{found['witnesses']:.0f} that showed it by chance are too few to stand for them",
        ),
        (
            found["randomised"] == 0.0,
            "every logged propensity is 1: nothing was explored, or the chances were not logged",
        ),
        (len(np.unique(reward)) == 1, f"every logged call {'succeeded' if reward[0] else 'failed'}"),
    ]
    return [sentence for holds, sentence in said if holds]


def counterfactual_report(log: LoggedDecisions, seed: int = 0) -> dict[str, Any]:
    """Every estimate with its interval and its gain on the log, the overlap, and whether to believe them."""
    estimates = {}
    for name, estimator in ESTIMATORS.items():
        terms = estimator(log)
        more = gain(terms, log)
        estimates[name] = {
            "value": terms.value,
            "interval": _pair(asymptotic_interval(terms, log.group)),
            "bootstrap_interval": _pair(bootstrap_interval(terms, log.group, seed)),
            "gain": more.value if terms.value is not None else None,
            "gain_interval": _pair(asymptotic_interval(more, log.group)) if terms.value is not None else None,
        }
    found = overlap(log)
    because = doubts(found, log.reward)
    own = logged_success(log)
    return {
        "logged": {"value": own.value, "interval": _pair(asymptotic_interval(own, log.group))},
        "estimates": estimates,
        "overlap": found,
        "believe": not because,
        "because": because,
    }


def _by_group(values: Floats, group: Ints) -> tuple[Floats, int]:
    names, place = np.unique(group, return_inverse=True)
    return np.bincount(place, values).astype(np.float64), len(names)


def _pair(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else list(interval)

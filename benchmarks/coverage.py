"""Coverage: how often the 95% interval of each counterfactual estimate holds the truth, where the truth is known.

    python -m benchmarks.coverage [--runs 200] [--decisions 1000] [--seed 7]

Every request has eight tools that might serve it, one of which always stands on the menu (a core tool, which never
succeeds) and three by rank. The logging selector ranks by one noisy score, the new one by a better one; the last slot
of the log's menus goes to one of the other four at the rate of the world. The truth is the new selector's own success,
exact for each request and averaged over as many requests as all runs have.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from training.counterfactual import (
    ESTIMATORS,
    UNSHOWN,
    LoggedDecisions,
    Terms,
    asymptotic_interval,
    bootstrap_interval,
    doubts,
    overlap,
)

TOOLS, SHOWN, OWN_RATE = 8, 4, 0.02
"""Tools a request, the first a core tool; tools on a menu; the rate at which the new selector explores."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """A world. `rate`: of the log's exploration; `competing`: the agent chooses among what is shown, so the tools'
    shares depend on each other, which the estimates take not to be so; `knows`: how right the prediction is, 0 to 1.
    """

    name: str
    rate: float
    competing: bool = False
    knows: float = 0.5


CASES = (
    Case("the assumption holds, 30% explored", 0.3),
    Case("the same, prediction worthless", 0.3, knows=0.0),
    Case("the same, prediction right", 0.3, knows=1.0),
    Case("the assumption holds, 2% explored", 0.02),
    Case("tools compete on the menu, 30% explored", 0.3, competing=True),
    Case("tools compete on the menu, 2% explored", 0.02, competing=True),
)


@dataclass(frozen=True, eq=False)
class Requests:
    """n requests: P(called | shown) or the odds of it, P(success | called), and both selectors' orders (n, TOOLS-1)."""

    called: Floats
    success: Floats
    then: Ints
    now: Ints


def some_requests(random: np.random.Generator, n: int) -> Requests:
    """Quality differs by request and tool; a tool that would succeed is also more likely to be called."""
    success = random.beta(1.0, 1.5, (n, TOOLS))
    success[:, 0] = 0.0
    appeal = np.clip(success + random.normal(0, 0.2, (n, TOOLS)), 0.02, None)
    appeal[:, 0] = 0.05

    def order(noise: float) -> Ints:
        return 1 + (-(success + random.normal(0, noise, success.shape)))[:, 1:].argsort(axis=1)

    return Requests(appeal / appeal.sum(axis=1, keepdims=True), success, order(0.5), order(0.25))


def chances(order: Ints, rate: float) -> Floats:
    """(n, TOOLS): the chance that each tool is shown."""
    rows = np.arange(len(order))[:, None]
    chance = np.zeros((len(order), TOOLS))
    chance[:, 0] = 1.0
    chance[rows, order[:, : SHOWN - 2]] = 1.0
    chance[rows, order[:, SHOWN - 2 : SHOWN - 1]] = 1.0 - rate
    chance[rows, order[:, SHOWN - 1 :]] = rate / (TOOLS - SHOWN)
    return chance


def shares(asked: Requests, shown: NDArray[np.bool_], competing: bool) -> Floats:
    """(n, TOOLS): P(called) of each tool with a menu; the core tool takes what nobody else does."""
    share: Floats = asked.called * shown
    if competing:
        share /= share.sum(axis=1, keepdims=True)
        return share
    share[:, 0] = 1.0 - share[:, 1:].sum(axis=1)
    return share


def truth(asked: Requests, competing: bool) -> float:
    """The new selector's expected success, over its own draw as well."""
    total = np.zeros(len(asked.now))
    base = asked.now[:, : SHOWN - 2]
    for last in range(SHOWN - 2, TOOLS - 1):
        weight = 1.0 - OWN_RATE if last == SHOWN - 2 else OWN_RATE / (TOOLS - SHOWN)
        shown = _menu(np.c_[base, asked.now[:, last]])
        total += weight * (shares(asked, shown, competing) * asked.success).sum(axis=1)
    return float(total.mean())


def logged(random: np.random.Generator, asked: Requests, case: Case) -> LoggedDecisions:
    """What the logging selector's log would hold of these requests."""
    n = len(asked.then)
    rows = np.arange(n)
    last = np.where(random.random(n) < case.rate, random.integers(SHOWN - 1, TOOLS - 1, n), SHOWN - 2)
    shown = _menu(np.c_[asked.then[:, : SHOWN - 2], asked.then[rows, last]])
    share = shares(asked, shown, case.competing)
    tool = (share.cumsum(axis=1) < random.random((n, 1))).sum(axis=1).clip(max=TOOLS - 1)
    right = asked.called * asked.success
    predicted = case.knows * right + (1.0 - case.knows) * 0.1 * (np.arange(TOOLS) > 0)
    target = chances(asked.now, OWN_RATE)
    decision, of = np.nonzero(shown)
    place = shown.ravel().cumsum().reshape(shown.shape) - 1
    return LoggedDecisions(
        group=rows,
        called=np.flatnonzero(of == tool[decision]),
        reward=(random.random(n) < asked.success[rows, tool]).astype(np.float64),
        direct=(target * predicted).sum(axis=1),
        first=np.where(shown[rows, asked.now[:, 0]], place[rows, asked.now[:, 0]], UNSHOWN),
        decision=decision,
        logged=chances(asked.then, case.rate)[decision, of],
        target=target[decision, of],
        predicted=predicted[decision, of],
    )


def _menu(ranked: Ints) -> NDArray[np.bool_]:
    shown = np.zeros((len(ranked), TOOLS), np.bool_)
    shown[:, 0] = True
    np.put_along_axis(shown, ranked, True, axis=1)
    return shown


def measure(case: Case, runs: int, decisions: int, seed: int) -> list[str]:
    """Lines of a Markdown table for one world."""
    random = np.random.default_rng(seed)
    asked = some_requests(random, runs * decisions)
    true = truth(asked, case.competing)
    rows: dict[str, list[tuple[float, float, bool, bool]]] = {name: [] for name in ESTIMATORS}
    trusted: dict[str, list[bool]] = {name: [] for name in ESTIMATORS}
    doubted, earned = 0, 0.0
    for number in range(runs):
        part = slice(number * decisions, (number + 1) * decisions)
        log = logged(random, Requests(*(a[part] for a in vars(asked).values())), case)
        believed = not doubts(overlap(log), log.reward)
        doubted += not believed
        earned += float(log.reward.mean()) / runs
        for name, estimator in ESTIMATORS.items():
            terms = estimator(log)
            near, drawn = asymptotic_interval(terms, log.group), bootstrap_interval(terms, log.group, number, 300)
            assert near is not None
            assert drawn is not None
            within = (near[0] <= true <= near[1], drawn[0] <= true <= drawn[1])
            rows[name].append((_value(terms), near[1] - near[0], *within))
            trusted[name] += [within[0]] * believed
    lines = []
    for name, found in rows.items():
        value, width, near, drawn = np.array(found, np.float64).mean(axis=0)
        lines.append(
            f"| {case.name} | {earned:.3f} | {true:.3f} | {name.replace('_', ' ')} | {value - true:+.3f} | {width:.3f} "
            f"| {near:.3f} | {drawn:.3f} | {doubted / runs:.2f} "
            f"| {f'{np.mean(trusted[name]):.3f}' if trusted[name] else '-'} |"
        )
    return lines


def _value(terms: Terms) -> float:
    value = terms.value
    assert value is not None
    return value


def main(argv: Sequence[str] | None = None) -> None:
    """Print one table over all worlds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--decisions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args(argv)
    print(
        "| world | log | truth | estimate | bias | width | coverage, asymptotic | coverage, bootstrap | doubted "
        "| coverage, believed |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    for case in CASES:
        print("\n".join(measure(case, given.runs, given.decisions, given.seed)), flush=True)


if __name__ == "__main__":
    main()

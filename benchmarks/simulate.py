"""Simulated use over time: whether better new tools take over, how soon, and what trying them costs.

    python -m benchmarks.simulate [--seeds 5] [--requests 40000] [--menu 4 12]

A catalog of tools that each serve a few kinds of subgoal, better or worse. Menus go through the product's own
`serving.explore` and `serving.tiebreak`; the relevance head is stood in for by what it learns from: similarity of the
card as a prior, and the successes and failures that were seen, fitted anew every 500 requests. The agent calls one tool
of the menu by what it takes its quality to be, with a bias to what stands first and to what is much used, and noise.
While this goes on, new tools arrive: as many better than the best so far as worse, and as many that never succeed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.cards import Risk
from serving.explore import draw, eligible_tools
from serving.tiebreak import tiebreak

KINDS, INCUMBENTS, SERVING, EACH = 60, 300, 8, 10
"""Kinds of subgoal, tools at the start, tools that serve a kind, newcomers that are better (worse, broken)."""
CANDIDATES, MARGIN, EPOCH = 40, 0.02, 500
PRIOR_STRENGTH, CLIP = 4.0, 10.0
QUALITY, POSITION, POPULARITY = 4.0, 0.1, 0.1
"""Weights of the agent's choice: of perceived quality, a place further down, the logarithm of past calls."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class World:
    """`success`, `similarity`, `perceived` (KINDS, n); `arrival` (n,) in requests; `serves` (n,) a newcomer's kind."""

    success: Floats
    similarity: Floats
    perceived: Floats
    arrival: Ints
    serves: Ints
    better: Bools
    risk: NDArray[np.int8]
    cost: Floats
    p50: Floats
    kinds: Ints


@dataclass(frozen=True)
class Way:
    """A way to explore: `rate` of requests, tools below `below` calls; `near`: candidates of the request alone."""

    name: str
    rate: float
    below: int
    near: bool


WAYS = (
    Way("none", 0.0, 0, False),
    Way("epsilon-greedy, 2%", 0.02, 10**9, True),
    Way("epsilon-greedy, 10%", 0.1, 10**9, True),
    Way("ours: 2%, below 3 calls", 0.02, 3, False),
    Way("ours: 10%, below 30 calls", 0.1, 30, False),
    Way("candidates only: 2%, below 3", 0.02, 3, True),
    Way("candidates only: 2%, below 30", 0.02, 30, True),
    Way("candidates only: 10%, below 30", 0.1, 30, True),
)


def make_world(seed: int, requests: int) -> World:
    """Incumbents whose success at what they serve is 0.3 to 0.8; newcomers between 1/8 and 1/2 of the time."""
    random = np.random.default_rng(seed)
    n = INCUMBENTS + 3 * EACH
    relevant = np.zeros((KINDS, n), np.bool_)
    for kind in range(KINDS):
        relevant[kind, random.choice(INCUMBENTS, SERVING, replace=False)] = True
    success = np.where(relevant, random.uniform(0.3, 0.8, (KINDS, n)), 0.02)
    serves = np.full(n, -1)
    serves[INCUMBENTS:] = random.permutation(KINDS)[: 3 * EACH]
    best = success.max(axis=1)
    for place, tool in enumerate(range(INCUMBENTS, n)):
        kind = serves[tool]
        relevant[kind, tool] = True
        success[kind, tool] = (min(0.97, best[kind] + 0.15), best[kind] - 0.2, 0.0)[place % 3]
    arrival = np.zeros(n, np.int64)
    arrival[INCUMBENTS:] = random.integers(requests // 8, requests // 2, 3 * EACH)
    popularity = 1.0 / np.arange(1, KINDS + 1)
    return World(
        success=success,
        similarity=np.where(relevant, 0.6, 0.2) + random.normal(0, 0.1, (KINDS, n)),
        perceived=np.where(relevant, 0.55, 0.02)
        + 0.5 * (success - 0.55) * relevant
        + random.normal(0, 0.1, (KINDS, n)),
        arrival=arrival,
        serves=serves,
        better=(np.arange(n) >= INCUMBENTS) & ((np.arange(n) - INCUMBENTS) % 3 == 0),
        risk=np.where(random.random(n) < np.where(serves >= 0, 0.0, 0.3), Risk.WRITE, Risk.READ_ONLY).astype(np.int8),
        cost=random.uniform(0, 0.01, n),
        p50=random.uniform(50, 500, n),
        kinds=random.permutation(KINDS)[random.choice(KINDS, requests, p=popularity / popularity.sum())],
    )


@dataclass(frozen=True)
class Course:
    """One run: shares of requests, and requests until each better newcomer was ranked first (NaN: it never was)."""

    best_late: float
    success_late: float
    lost: float
    failed: float
    explored: float
    takeover: tuple[float, ...]


def run(world: World, way: Way, menu_size: int, seed: int) -> Course:
    """Serve every request of a world. `best_late`, `success_late`: over the last quarter, when nothing new arrives.

    `lost`: expected successes that the shown menus lose on what they would have been without exploration, a request;
    `failed`: calls of a tool that was tried, and that failed, a request.
    """
    random = np.random.default_rng([seed, 1])
    requests, n = len(world.kinds), world.success.shape[1]
    calls, wins, seen = np.zeros((KINDS, n)), np.zeros((KINDS, n)), np.zeros(n)
    called_best, succeeded = np.zeros(requests, np.bool_), np.zeros(requests, np.bool_)
    lost, failed, explored = 0.0, 0, 0
    takeover = np.full(n, np.nan)
    for start in range(0, requests, EPOCH):
        kinds = world.kinds[start : start + EPOCH]
        here = world.arrival <= start
        orders = _orders(world, calls, wins, here)
        for tool in np.flatnonzero(world.better & here & np.isnan(takeover)):
            if orders[world.serves[tool]][0] == tool:
                takeover[tool] = start - world.arrival[tool]
        base = np.array([orders[kind][:menu_size] for kind in kinds])
        menus, chance = base.copy(), np.ones(base.shape)
        for row, kind in enumerate(kinds):
            _explore(way, f"{seed}-{start + row}", orders[kind], here, world.risk, seen, menus[row], chance[row])
        noise = random.gumbel(size=menus.shape)
        utility = _utility(world, kinds, menus, seen)
        picked = (utility + noise).argmax(axis=1)
        rows = np.arange(len(kinds))
        tool = menus[rows, picked]
        tried = (menus != base).any(axis=1)
        lost += float((_expected(world, kinds, base, seen) - _expected(world, kinds, menus, seen))[tried].sum())
        explored += int(tried.sum())
        won = random.random(len(kinds)) < world.success[kinds, tool]
        weight = np.minimum(1.0 / chance[rows, picked], CLIP)
        np.add.at(calls, (kinds, tool), weight)
        np.add.at(wins, (kinds, tool), weight * won)
        seen += np.bincount(tool, minlength=n)
        failed += int((~won & (tool != base[rows, picked])).sum())
        succeeded[start : start + EPOCH] = won
        called_best[start : start + EPOCH] = tool == np.where(here, world.success, -1.0)[kinds].argmax(axis=1)
    late = slice(3 * requests // 4, None)
    return Course(
        best_late=float(called_best[late].mean()),
        success_late=float(succeeded[late].mean()),
        lost=lost / requests,
        failed=failed / requests,
        explored=explored / requests,
        takeover=tuple(takeover[world.better].tolist()),
    )


def _orders(world: World, calls: Floats, wins: Floats, here: Bools) -> list[Ints]:
    """The candidates of each kind, best first: the stand-in of the head, then the product's tiebreak."""
    prior = 0.5 / (1.0 + np.exp(-(world.similarity - 0.45) / 0.08))
    relevance = (PRIOR_STRENGTH * prior + wins) / (PRIOR_STRENGTH + calls)
    relevance = np.where(here, relevance, -1.0)
    orders = []
    for row in relevance:
        rows = np.argsort(-row, kind="stable")[:CANDIDATES]
        orders.append(rows[tiebreak(row[rows], world.cost[rows], world.p50[rows], rows, MARGIN)])
    return orders


def _explore(
    way: Way,
    request_id: str,
    order: Ints,
    here: Bools,
    risk: NDArray[np.int8],
    seen: Floats,
    menu: Ints,
    chance: Floats,
) -> None:
    """Let the product's draw fill the last slot of `menu` (in place), with the chances of what is shown."""
    asked = here
    if way.near:
        asked = np.zeros(len(here), np.bool_)
        asked[order] = True
    eligible = eligible_tools(here, asked, risk, seen.astype(np.int64), threshold=way.below)
    eligible[menu] = False
    tried = np.flatnonzero(eligible)
    if way.rate == 0.0 or not len(tried):
        return
    choice = draw(request_id, way.rate, len(tried))
    chance[-1] = 1.0 - way.rate if choice is None else way.rate / len(tried)
    if choice is not None:
        menu[-1] = tried[choice]


def _utility(world: World, kinds: Ints, menus: Ints, seen: Floats) -> Floats:
    """What the agent makes of each tool of each menu, before noise; menus are read in registry order."""
    place = menus.argsort(axis=1).argsort(axis=1)
    perceived = world.perceived[kinds[:, None], menus]
    return QUALITY * perceived - POSITION * place + POPULARITY * np.log1p(seen[menus])


def _expected(world: World, kinds: Ints, menus: Ints, seen: Floats) -> Floats:
    """(requests,): the chance that the agent succeeds with a menu."""
    odds = np.exp(_utility(world, kinds, menus, seen))
    expected: Floats = (odds * world.success[kinds[:, None], menus]).sum(axis=1) / odds.sum(axis=1)
    return expected


COLUMNS = (
    "exploration",
    "best tool, late",
    "more than none",
    "success, late",
    "explored",
    "lost, per 1,000",
    "tried and failed, per 1,000",
    "better newcomers first",
    "median requests until then",
)


def table(courses: dict[str, list[Course]]) -> list[str]:
    """Lines of a Markdown table: means over seeds; the gain on the first course with its paired standard error."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    without = np.array([one.best_late for one in next(iter(courses.values()))])
    for name, runs in courses.items():
        times = np.array([time for one in runs for time in one.takeover])
        half = np.sort(np.where(np.isnan(times), np.inf, times))[len(times) // 2]
        more = np.array([one.best_late for one in runs]) - without
        error = float(np.std(more, ddof=1) / np.sqrt(len(runs))) if len(runs) > 1 else 0.0
        late, explored = np.mean([one.success_late for one in runs]), np.mean([one.explored for one in runs])
        cells = (
            name,
            f"{np.mean([one.best_late for one in runs]):.3f}",
            f"{more.mean():+.3f} ± {error:.3f}",
            f"{late:.3f}",
            f"{explored:.3f}",
            f"{1000 * np.mean([one.lost for one in runs]):+.2f}",
            f"{1000 * np.mean([one.failed for one in runs]):.2f}",
            f"{np.isfinite(times).sum()} of {len(times)}",
            "not within the run" if np.isinf(half) else f"{half:,.0f}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main(argv: Sequence[str] | None = None) -> None:
    """Print a table for each menu size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=40_000)
    parser.add_argument("--menu", type=int, nargs="+", default=[4, 12])
    given = parser.parse_args(argv)
    for size in given.menu:
        courses: dict[str, list[Course]] = {way.name: [] for way in WAYS}
        for seed in range(given.seeds):
            world = make_world(seed, given.requests)
            for way in WAYS:
                courses[way.name].append(run(world, way, size, seed))
        print(f"\nMenus of {size} tools, {given.requests:,} requests, {given.seeds} seeds\n")
        print("\n".join(table(courses)))


if __name__ == "__main__":
    main()

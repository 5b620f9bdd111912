"""Simulated use over time: whether better new tools take over, how soon, and what trying them costs.

    python -m benchmarks.simulate [--seeds 5] [--first-seed 0] [--requests 24000] [--menu 4 12] [--unshown 0.1]
        [--no-history]

A catalog of tools that each serve a few kinds of subgoal, better or worse. The agent calls one tool of the menu by what
it takes its quality to be, with a bias to what stands first and to what is much used, and noise; where that fails, it
calls another one. Menus go through the product's own relevance head, `serving.explore` and `serving.tiebreak`. What is
remembered is brought up to date every 500 requests, and the head fitted anew every 2,000. While this goes on, new tools
arrive: as many better than the best so far as worse, and as many that never succeed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.simulated_learner import Learner
from benchmarks.simulated_ways import WAYS, Way
from benchmarks.simulated_world import POPULARITY, Bools, Floats, Ints, World, call, expected, make_world
from data.mining.options import PROPENSITY_CLIP
from serving.explore import draw
from serving.tiebreak import tiebreak
from training.recipe import HeadPart

MARGIN, PARTS, OFTEN = 0.02, 8, 200
EPOCH, REFITTED = 500, 2000
"""Requests between two looks at the past, and between two fits of the head."""


@dataclass(frozen=True)
class Course:
    """One run. Shares of requests by eighth of the run: served by the best tool, and served at all, at the first call.

    `lost`: expected successes that the shown menus lose on what they would have been without exploration, a request;
    `failed`: calls of a tool that stood there by exploration, and that failed, a request. `takeover`: for each better
    newcomer the requests of its kind, from its arrival, until it was ranked first; `on_menu`: until it was among the
    regular tools of the menu. NaN: it never was. `after`: the requests of its kind in the whole run from then on.
    """

    best: Floats
    success: Floats
    lost: float
    failed: float
    explored: float
    takeover: Floats
    on_menu: Floats
    after: Floats


@dataclass
class _Tally:
    lost: float = 0.0
    failed: int = 0
    explored: int = 0
    best: list[Bools] = field(default_factory=list)
    won: list[Bools] = field(default_factory=list)


def run(
    world: World, way: Way, menu_size: int, seed: int, unshown_weight: float = 1.0, *, history: bool = True
) -> Course:
    """Serve every request of a world. `history` False: the head does not see rates of success."""
    random, requests, n = np.random.default_rng([seed, 1]), len(world.kinds), world.success.shape[1]
    learner, tally = Learner(world, seed, unshown_weight, history=history), _Tally()
    seen = np.zeros(n)
    first_at, menu_at = np.full(n, np.nan), np.full(n, np.nan)
    for start in range(0, requests, EPOCH):
        kinds, here = world.kinds[start : start + EPOCH], world.arrival <= start
        if start % REFITTED == 0:
            learner.fit()
        ranked = [_tied(world, rows, relevant) for rows, relevant in learner.ranked(here)]
        for tool in np.flatnonzero(world.better & here):
            order = ranked[world.serves[tool]][0]
            if np.isnan(first_at[tool]) and order[0] == tool:
                first_at[tool] = start
            if np.isnan(menu_at[tool]) and tool in order[:menu_size]:
                menu_at[tool] = start
        base = np.array([ranked[kind][0][:menu_size] for kind in kinds])
        menus, chance = base.copy(), np.ones(base.shape)
        slots = {
            int(kind): way.slot(world, *ranked[int(kind)], menu_size, learner.past, here, start)
            for kind in np.unique(kinds)
        }
        for row, kind in enumerate(kinds.tolist()):
            rate, tried, share = slots[kind]
            choice = draw(f"{seed}-{start + row}", rate, share)
            chance[row, -1] = 1.0 - rate if choice is None else rate * share[choice]
            if choice is not None:
                menus[row, -1] = tried[choice]
        was = (menus != base).any(axis=1)
        tally.lost += float((expected(world, kinds, base, seen) - expected(world, kinds, menus, seen))[was].sum())
        tally.explored += int(was.sum())
        calls = call(world, kinds, menus, chance, seen, random, PROPENSITY_CLIP)
        learner.past.add(calls)
        first, won = calls.tool[: len(kinds)], calls.won[: len(kinds)]
        tally.failed += int((was & ~won & (first == menus[:, -1])).sum())
        tally.best.append(first == np.where(here, world.success, -1.0)[kinds].argmax(axis=1))
        tally.won.append(won)
        seen += np.bincount(calls.tool, minlength=n)
    return Course(
        best=_parts(tally.best),
        success=_parts(tally.won),
        lost=tally.lost / requests,
        failed=tally.failed / requests,
        explored=tally.explored / requests,
        takeover=_of_its_kind(world, first_at),
        on_menu=_of_its_kind(world, menu_at),
        after=_of_its_kind(world, np.full(n, float(requests))),
    )


def _tied(world: World, rows: Ints, relevant: Floats) -> tuple[Ints, Floats]:
    order = tiebreak(relevant, world.cost[rows], world.p50[rows], rows, MARGIN)
    return rows[order], relevant[order]


def _parts(found: list[Bools]) -> Floats:
    return np.array([part.mean() for part in np.array_split(np.concatenate(found), PARTS)])


def _of_its_kind(world: World, moment: Floats) -> Floats:
    """Requests of each better newcomer's kind between its arrival and a moment (n,), NaN for none."""
    counts = []
    for tool in np.flatnonzero(world.better):
        until = moment[tool]
        between = world.kinds[world.arrival[tool] : int(until)] if np.isfinite(until) else None
        counts.append(np.nan if between is None else float((between == world.serves[tool]).sum()))
    return np.array(counts)


COLUMNS = (
    "exploration",
    "best tool, last quarter",
    "more than none",
    "success, last quarter",
    "explored",
    "lost, per 1,000",
    "tried and failed, per 1,000",
    "on the menu",
    "on the menu, often asked",
    "requests until then",
    "first, often asked",
    "requests until then",
)


def table(courses: dict[str, list[Course]]) -> list[str]:
    """Lines of a Markdown table: means over seeds; the gain on the first way with its paired standard error."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    without = np.array([one.best[-2:].mean() for one in next(iter(courses.values()))])
    for name, runs in courses.items():
        late = np.array([one.best[-2:].mean() for one in runs])
        more = late - without
        error = float(np.std(more, ddof=1) / np.sqrt(len(runs))) if len(runs) > 1 else 0.0
        cells = (
            name,
            f"{late.mean():.3f}",
            f"{more.mean():+.3f} ± {error:.3f}",
            f"{np.mean([one.success[-2:].mean() for one in runs]):.3f}",
            f"{np.mean([one.explored for one in runs]):.3f}",
            f"{1000 * np.mean([one.lost for one in runs]):+.2f}",
            f"{1000 * np.mean([one.failed for one in runs]):.2f}",
            _reached(np.concatenate([one.on_menu for one in runs]))[0],
            *_reached(np.concatenate([one.on_menu[one.after >= OFTEN] for one in runs])),
            *_reached(np.concatenate([one.takeover[one.after >= OFTEN] for one in runs])),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _reached(times: Floats) -> tuple[str, str]:
    """How many ever were, and the median over all of the requests until then; those that never were come last."""
    if not len(times):
        return "0 of 0", "-"
    half = np.sort(np.where(np.isnan(times), np.inf, times))[len(times) // 2]
    return f"{np.isfinite(times).sum()} of {len(times)}", "-" if np.isinf(half) else f"{half:,.0f}"


def curve(courses: dict[str, list[Course]]) -> list[str]:
    """Lines of a Markdown table: the share of requests that the best tool served, by eighth of the run."""
    lines = ["| exploration | " + " | ".join(f"{part + 1}/{PARTS}" for part in range(PARTS)) + " |"]
    lines.append("|---" * (PARTS + 1) + "|")
    for name, runs in courses.items():
        means = np.mean([one.best for one in runs], axis=0)
        lines.append(f"| {name} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |")
    return lines


def main(argv: Sequence[str] | None = None) -> None:
    """Print two tables for each menu size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--requests", type=int, default=24_000)
    parser.add_argument("--menu", type=int, nargs="+", default=[4, 12])
    parser.add_argument("--popularity", type=float, default=POPULARITY)
    parser.add_argument("--unshown", type=float, default=HeadPart().unshown_weight, help="the recipe's unshown_weight")
    parser.add_argument("--ways", nargs="+", choices=[way.name for way in WAYS], help="some of the ways to explore")
    parser.add_argument("--no-history", action="store_true", help="hide rates of success from the head")
    given = parser.parse_args(argv)
    ways = [way for way in WAYS if given.ways is None or way.name in given.ways]
    for size in given.menu:
        courses: dict[str, list[Course]] = {way.name: [] for way in ways}
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            world = make_world(seed, given.requests, given.popularity)
            for way in ways:
                courses[way.name].append(run(world, way, size, seed, given.unshown, history=not given.no_history))
        print(f"\nMenus of {size} tools, {given.requests:,} requests, {given.seeds} seeds\n")
        print("\n".join([*table(courses), "", *curve(courses)]), flush=True)


if __name__ == "__main__":
    main()

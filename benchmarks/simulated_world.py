"""A simulated world: tools that serve kinds of subgoal, an agent that chooses, newcomers that arrive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.cards import Risk

KINDS, INCUMBENTS, SERVING, EACH = 60, 300, 8, 10
"""Kinds of subgoal, tools at the start, tools that serve a kind, newcomers that are better (worse, broken)."""
QUALITY, POSITION, POPULARITY = 4.0, 0.1, 0.1
"""Weights of the agent's choice: of perceived quality, a place further down, the logarithm of past calls."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class World:
    """`success`, `similarity`, `perceived` (KINDS, n): what a tool is worth, what its card says, what the agent takes
    it for. `arrival` (n,) in requests; `serves` (n,) a newcomer's kind, -1 for incumbents; `kinds` (requests,)."""

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
    popularity: float = POPULARITY


def make_world(seed: int, requests: int, popularity: float = POPULARITY) -> World:
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
    asked = 1.0 / np.arange(1, KINDS + 1)
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
        kinds=random.permutation(KINDS)[random.choice(KINDS, requests, p=asked / asked.sum())],
        popularity=popularity,
    )


def utility(world: World, kinds: Ints, menus: Ints, seen: Floats) -> Floats:
    """What the agent makes of each tool of each menu, before noise; menus are read in registry order."""
    place = menus.argsort(axis=1).argsort(axis=1)
    perceived = world.perceived[kinds[:, None], menus]
    return QUALITY * perceived - POSITION * place + world.popularity * np.log1p(seen[menus])


def expected(world: World, kinds: Ints, menus: Ints, seen: Floats) -> Floats:
    """(requests,): the chance that the agent's first call succeeds with a menu."""
    odds = np.exp(utility(world, kinds, menus, seen))
    won: Floats = (odds * world.success[kinds[:, None], menus]).sum(axis=1) / odds.sum(axis=1)
    return won


@dataclass(frozen=True, eq=False)
class Calls:
    """What became of m calls, in order: `kind`, `tool`, `weight` (inverse propensity, clipped), `won`, `lost`; and the
    `menu` and `weights` (m, k) of all that it was chosen from.

    `before`: the tool that was called first, and failed; -1 where nothing was.
    """

    kind: Ints
    tool: Ints
    weight: Floats
    won: Bools
    before: Ints
    menu: Ints
    weights: Floats


def call(
    world: World, kinds: Ints, menus: Ints, chance: Floats, seen: Floats, random: np.random.Generator, clip: float
) -> Calls:
    """The agent calls what it likes best of each menu (requests, k), and once more, another one, where that fails."""
    rows = np.arange(len(kinds))
    liked = utility(world, kinds, menus, seen) + random.gumbel(size=menus.shape)
    order = np.argsort(-liked, axis=1)[:, :2]
    tools = menus[rows[:, None], order]
    won = random.random(tools.shape) < world.success[kinds[:, None], tools]
    weights = np.minimum(1.0 / chance, clip)
    weight = weights[rows[:, None], order]
    again = ~won[:, 0]
    return Calls(
        kind=np.concatenate([kinds, kinds[again]]),
        tool=np.concatenate([tools[:, 0], tools[again, 1]]),
        weight=np.concatenate([weight[:, 0], weight[again, 1]]),
        won=np.concatenate([won[:, 0], won[again, 1]]),
        before=np.concatenate([np.full(len(tools), -1), tools[again, 0]]),
        menu=np.concatenate([menus, menus[again]]),
        weights=np.concatenate([weights, weights[again]]),
    )

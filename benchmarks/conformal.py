"""Menus with a guarantee: how often the right tool is on them, and what they cost against menus of a fixed size.

    python -m benchmarks.conformal --data DIR --cache runs/conformal bfcl=BUNDLE metatool=BUNDLE metatool-cold=BUNDLE

DIR holds the public sets. Every held-out query is decided once and kept in the cache folder. Then, `--splits` times,
a random half of the queries sets the thresholds and the other half is measured. Last, the thresholds that the bundle
brings from its training, on all of them.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import sets
from benchmarks.sets import Set
from data.queries import Query
from serving.bundle import load_bundle, save_arrays
from serving.conformal import MENU_RISK, Bars, MenuRisk, bars, curve, needed, promises, read_menu_risk
from serving.menu import MAX_TOOLS
from serving.selector import Selector
from serving.settings import SelectorSettings
from training.evaluation import unrestricted
from training.metrics import gold_count, ranked_gains

ALPHAS = (0.05, 0.1, 0.2)
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

FIXED = (6, MAX_TOOLS)
DEPTH = 40

SETS: dict[str, Callable[[Path], Set]] = {
    "bfcl": lambda _: sets.bfcl(),
    "metatool": sets.metatool,
    "metatool-cold": lambda data: sets.metatool(data, cold=True),
}


@dataclass(frozen=True)
class Scored:
    """n answered queries, decided: their candidates best first, (n, DEPTH) each; none is a relevance of -1, no gain.

    `lost` (n, 2): right tools, warm and cold, that are not among them. `turned` (n,): away, nothing was shown.
    """

    relevance: Floats
    is_new: Flags
    gain: Flags
    tokens: NDArray[np.int64]
    lost: NDArray[np.int64]
    turned: Flags

    def of(self, which: Flags) -> Scored:
        """Some of the queries."""
        return Scored(**{name: array[which] for name, array in self.__dict__.items()})

    def shares(self, shown: Flags) -> Floats:
        """(n, 3): the share of the right tools in `shown` (n, DEPTH): all, warm, cold; NaN where there is none."""
        columns = []
        for of_kind, lost in (
            (self.gain, self.lost.sum(axis=1)),
            (self.gain & ~self.is_new, self.lost[:, 0]),
            (self.gain & self.is_new, self.lost[:, 1]),
        ):
            total = (of_kind.sum(axis=1) + lost).astype(float)
            total[total == 0] = np.nan
            columns.append((of_kind & shown).sum(axis=1) / total)
        return np.stack(columns, axis=1)

    def needed(self, given: Bars) -> Flags:
        """The menus (n, DEPTH) with these thresholds."""
        return needed(self.relevance.T, self.is_new.T, given).T & (self.relevance >= 0)

    def first(self, size: int) -> Flags:
        """The menus (n, DEPTH) of the `size` best tools."""
        return (np.arange(DEPTH) < size) & (self.relevance >= 0)

    def risk(self) -> MenuRisk:
        """The curves that these queries give."""
        curves = []
        for kind, of_kind in enumerate((self.gain & ~self.is_new, self.gain & self.is_new)):
            shown = np.where(np.arange(DEPTH) < MAX_TOOLS, promises(self.relevance.T).T, -1.0)
            answered = [
                [*row[right].tolist(), *[-1.0] * int(lost)]
                for row, right, lost in zip(shown, of_kind, self.lost[:, kind], strict=True)
            ]
            curves.append(curve(answered))
        return MenuRisk(warm=curves[0], cold=curves[1])

    def smallest(self, alpha: float) -> int:
        """The smallest size for all menus that has the same guarantee; the largest there is, where none has."""
        n = len(self.relevance)
        for size in range(1, MAX_TOOLS):
            risk = 1.0 - float(self.shares(self.first(size))[:, 0].mean())
            if (n * risk + 1) / (n + 1) <= alpha:
                return size
        return MAX_TOOLS


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage and cost of menus with a guarantee.")
    parser.add_argument("bundles", nargs="+", metavar="SET=BUNDLE")
    parser.add_argument("--data", type=Path, required=True, help="the folder with the sets")
    parser.add_argument("--cache", type=Path, default=Path("runs/conformal"))
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--most", type=int, help="so many queries of a set, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("| set | menus | coverage | 5% to 95% | warm | 5% to 95% | cold | 5% to 95% | tools | tokens |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for pair in given.bundles:
        name, _, bundle = pair.partition("=")
        for line in report(name, Path(bundle), given):
            print(line, flush=True)


def report(name: str, bundle: Path, given: argparse.Namespace) -> list[str]:
    """The rows of one set."""
    scored = decided(name, bundle, given)
    lines = [_line(name, f"the first {size}", [_measured(scored, scored.first(size))]) for size in FIXED]
    draw = np.random.default_rng(given.seed)
    halves = [draw.permutation(len(scored.relevance)) % 2 == 0 for _ in range(given.splits)]
    for alpha in ALPHAS:
        guaranteed, fixed = [], []
        for half in halves:
            known, others = scored.of(half), scored.of(~half)
            guaranteed.append(_measured(others, others.needed(bars(known.risk(), alpha))))
            fixed.append(_measured(others, others.first(known.smallest(alpha))))
        lines.append(_line(name, f"alpha {alpha:g}", guaranteed))
        lines.append(_line(name, f"alpha {alpha:g}, one size for all", fixed))
    if (bundle / MENU_RISK).is_file():
        risk, shown = read_menu_risk(bundle / MENU_RISK), scored.of(~scored.turned)
        for alpha in ALPHAS:
            own = bars(risk, alpha)
            lines.append(_line(name, f"alpha {alpha:g}, as trained", [_measured(scored, scored.needed(own))]))
            lines.append(_line(name, "the same, of those with a menu", [_measured(shown, shown.needed(own))]))
    return lines


def decided(name: str, bundle: Path, given: argparse.Namespace) -> Scored:
    """The held-out queries of a set with their candidates, from the cache where they are there."""
    found = load_bundle(bundle)
    file = given.cache / f"{name}-{found.version}-{given.most or 'all'}.npz"
    if file.is_file():
        with np.load(file, allow_pickle=False) as kept:
            return Scored(**dict(kept))
    of = SETS[name](given.data)
    queries = [query for query in of.queries if query.gold]
    if given.most is not None and given.most < len(queries):
        queries = random.Random(given.seed).sample(queries, given.most)
    settings = SelectorSettings(explore_rate=0.0, candidates=DEPTH, rerank_budget_ms=1e6)
    scored = _decide(Selector(found, unrestricted(of.catalog), settings=settings), queries)
    given.cache.mkdir(parents=True, exist_ok=True)
    save_arrays(file, scored.__dict__)
    return scored


def _decide(selector: Selector, queries: Sequence[Query]) -> Scored:
    row, memory, n = selector.catalog.row, selector.memory(""), len(queries)
    assert memory is not None
    scored = Scored(
        relevance=np.full((n, DEPTH), -1.0),
        is_new=np.zeros((n, DEPTH), np.bool_),
        gain=np.zeros((n, DEPTH), np.bool_),
        tokens=np.zeros((n, DEPTH), np.int64),
        lost=np.zeros((n, 2), np.int64),
        turned=np.zeros(n, np.bool_),
    )
    for i, query in enumerate(queries):
        made = selector.select(query.text, request_id="benchmark")
        relevance = next((record.scores for record in made.record if record.stage == "relevance"), {})
        tools = list(relevance)
        k = len(tools)
        gains = ranked_gains(tools, query)
        scored.relevance[i, :k] = list(relevance.values())
        scored.is_new[i, :k] = memory.counts[[row[tool] for tool in tools]] <= 0
        scored.gain[i, :k] = gains > 0
        scored.tokens[i, :k] = [selector.token_cost(tool) for tool in tools]
        missing = gold_count(query) - int(gains.sum())
        scored.lost[i, int(_is_new(query, memory.counts, row))] = missing
        scored.turned[i] = made.abstention.outcome in ("ask", "missing_capability")
    return scored


def _is_new(query: Query, counts: NDArray[np.float32], row: Mapping[str, int]) -> bool:
    """Whether no right tool of the query has a past: what is not among the candidates is taken for like the rest."""
    good = [row[tool] for tool in query.right if tool in row]
    return not bool((counts[good] > 0).any())


def _measured(scored: Scored, shown: Flags) -> Floats:
    """(5,): mean coverage of all, warm and cold right tools, mean tools and tokens of a menu."""
    shares = scored.shares(shown)
    there = [of[~np.isnan(of)] for of in shares.T]
    coverage = [float(of.mean()) if len(of) else np.nan for of in there]
    return np.array([*coverage, shown.sum(axis=1).mean(), (scored.tokens * shown).sum(axis=1).mean()])


def _line(name: str, menus: str, rows: list[Floats]) -> str:
    table = np.stack(rows)
    mean, low, high = table.mean(axis=0), np.quantile(table, 0.05, axis=0), np.quantile(table, 0.95, axis=0)
    cells = []
    for column in range(3):
        known = not np.isnan(mean[column])
        cells.append(f"{mean[column]:.3f}" if known else "")
        cells.append(f"{low[column]:.3f} to {high[column]:.3f}" if known and len(rows) > 1 else "")
    return f"| {name} | {menus} | {' | '.join(cells)} | {mean[3]:.1f} | {mean[4]:.0f} |"


if __name__ == "__main__":
    main()

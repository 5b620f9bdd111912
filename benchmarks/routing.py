"""Two hops against one: first the servers that fit a request, then their tools, beside the flat search that serves.

    python -m benchmarks.routing --data DIR [--bundles RUNS] [--only NAME] [--out report.json]

DIR holds the public sets, RUNS what `benchmarks.quality` wrote for base and livemcpbench. A router scores servers by
the tools that the caller may see and by nothing else, so a masked tool has no say in it. `only` searches the best
servers alone; `first` puts their tools before all others; `boost` adds the servers' ranking to the fused ones; `no
servers` makes every tool a server of its own, and shows what is not the servers' doing. Every line says how far it is
from flat on the same queries, marked + or - where the 95% interval of a paired bootstrap leaves out zero. `decided`:
after the head. `latency`: of scoring and gathering alone.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import sets
from benchmarks.sets import Set, renamed
from data.catalog import Catalog
from data.importers import import_catalog
from data.importers.bfcl import load_bfcl
from data.jsonl import load_queries, load_traces
from data.queries import Query
from serving.bundle import load_bundle
from serving.embedding_cache import EmbeddingCache
from serving.evidence import Evidence, evidence, gather
from serving.index import Index
from serving.memory import UsageMemory
from serving.policy import DEFAULT_POLICY
from serving.retrieval import RRF_K, fuse, top
from serving.selector import Selector
from serving.settings import SelectorSettings
from training.base import base_bundle
from training.evaluation import unrestricted
from training.metrics import paired_difference_interval, ranking_metrics

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]
Router = Callable[[Evidence, Floats | None, Index, Rows], Floats]
Metrics = dict[str, dict[str, list[float]]]

DEPTH = 40
FIGURES = ("recall@5", "recall@40", "ndcg@10")
SERVERS = (1, 3, 5, 10, 20)
SIZES = (1_000, 10_000)


# Routers: evidence, the query's vector, the index and the rows that may be shown -> a score of every server, -inf where
# it has no such row.


def by_best(found: Evidence, vector: Floats | None, index: Index, rows: Rows) -> Floats:
    """The cosine of a server's best tool."""
    return _best_of(_dense(found), index, rows)


def by_words(found: Evidence, vector: Floats | None, index: Index, rows: Rows) -> Floats:
    """The keyword score of a server's best tool."""
    return _best_of(found.lexical.ranking, index, rows)


def by_centre(found: Evidence, vector: Floats | None, index: Index, rows: Rows) -> Floats:
    """The cosine to the mean of a server's tools."""
    assert index.vectors is not None
    assert vector is not None
    middle, missing = centres(index, rows)
    return middle @ vector + missing


def by_votes(found: Evidence, vector: Floats | None, index: Index, rows: Rows) -> Floats:
    """The fused scores of the flat search's first candidates, summed over each server's."""
    chosen, fused = gather(found, DEPTH, rows)
    score = np.full(int(index.domain.max()) + 1, -np.inf, np.float32)
    score[np.unique(index.domain[rows])] = 0.0
    np.add.at(score, index.domain[chosen], fused.astype(np.float32))
    return score


ROUTERS: Mapping[str, Router] = {
    "best": by_best,
    "words": by_words,
    "centre": by_centre,
    "votes": by_votes,
}


def centres(index: Index, rows: Rows) -> tuple[Floats, Floats]:
    """(servers, d) unit means of the given rows' vectors, and (servers,) 0, or -inf for a server without any."""
    assert index.vectors is not None
    sums = np.zeros((int(index.domain.max()) + 1, index.vectors.shape[1]), np.float32)
    np.add.at(sums, index.domain[rows], index.vectors[rows])
    length = np.linalg.norm(sums, axis=1, keepdims=True)
    missing = np.where(length[:, 0] > 0, 0.0, -np.inf).astype(np.float32)
    return np.divide(sums, length, out=sums, where=length > 0), missing


def _dense(found: Evidence) -> Floats:
    """The better of card and past where there is a past."""
    assert found.cosine is not None
    return found.cosine if found.usage is None else np.maximum(found.cosine, found.usage.shrunk)


def _best_of(scores: Floats, index: Index, rows: Rows) -> Floats:
    best = np.full(int(index.domain.max()) + 1, -np.inf, np.float32)
    np.maximum.at(best, index.domain[rows], scores[rows])
    return best


# Ways to use a router.


def best_servers(score: Floats, count: int) -> NDArray[np.int64]:
    """At most `count` servers, best first, equal scores in the catalog's order."""
    order = np.lexsort((np.arange(len(score)), -score))[:count]
    return order[np.isfinite(score[order])]


def only(found: Evidence, score: Floats, index: Index, rows: Rows, count: int) -> Rows:
    """The candidates among the best servers' tools."""
    return gather(found, DEPTH, rows[np.isin(index.domain[rows], best_servers(score, count))])[0]


def first(found: Evidence, score: Floats, index: Index, rows: Rows, count: int) -> Rows:
    """The candidates of the best servers, then those of the others as they come."""
    ahead = only(found, score, index, rows, count)
    flat = gather(found, DEPTH, rows)[0]
    return np.concatenate([ahead, flat[~np.isin(flat, ahead)]])[:DEPTH]


def boost(found: Evidence, score: Floats, index: Index, rows: Rows) -> Rows:
    """The flat candidates by their fused score and their server's 1 / (RRF_K + rank)."""
    chosen, fused = gather(found, DEPTH, rows)
    rank = np.empty(len(score), np.int64)
    rank[np.lexsort((np.arange(len(score)), -score))] = np.arange(1, len(score) + 1)
    total = fused + 1.0 / (RRF_K + rank[index.domain[chosen]])
    return chosen[np.lexsort((chosen, -total))]


def orders(found: Evidence, vector: Floats, index: Index, rows: Rows) -> Iterator[tuple[str, Rows]]:
    """The candidates by line, best first; `flat` is what serves."""
    yield "flat", gather(found, DEPTH, rows)[0]
    for name, router in ROUTERS.items():
        score = router(found, vector, index, rows)
        yield f"{name}: boost", boost(found, score, index, rows)
        for count in SERVERS:
            yield f"{name}: only {count}", only(found, score, index, rows, count)
            yield f"{name}: first {count}", first(found, score, index, rows, count)
    # what is won by words and not by servers
    alone = replace(index, domain=np.arange(len(index.domain)))
    score = by_words(found, vector, alone, rows)
    yield "no servers, words: boost", boost(found, score, alone, rows)
    yield "no servers, words: first 5", first(found, score, alone, rows, 5)


# Measuring.


@dataclass(frozen=True)
class Case:
    """A catalog, the selector on it, and queries."""

    selector: Selector
    queries: tuple[Query, ...]


def loaded(bundle: Path | None, of: Set) -> Case:
    assert bundle is not None, "the base model is not installed"
    settings = SelectorSettings(explore_rate=0.0, allow_foreign_catalog=True)
    catalog = unrestricted(of.catalog)
    selector = Selector(load_bundle(bundle), catalog, DEFAULT_POLICY, settings, EmbeddingCache(100_000_000))
    return Case(selector, tuple(query for query in of.queries if query.gold))


def measured(cases: Sequence[Case], *, decided: bool) -> Metrics:
    """Line -> figure -> one value a query, over all cases: the gathered order, and with `decided` also the order after
    the head, where the tools of all but the best servers are left out."""
    found: Metrics = {}
    for case in cases:
        selector = case.selector
        index, memory = selector.index, selector.memory("")
        every = np.arange(len(index.catalog), dtype=np.int64)
        for query in case.queries:
            vector, seen = seen_by(selector, memory, query.text)
            for line, rows in orders(seen, vector, index, every):
                _add(found, line, [index.catalog.ids[row] for row in rows.tolist()], query)
            if decided:
                _add(found, "decided, flat", selector.ranking(selector.judge(query.text)), query)
                for name in ("best", "words", "votes"):
                    score = ROUTERS[name](seen, vector, index, every)
                    for count in SERVERS:
                        out = every[~np.isin(index.domain, best_servers(score, count))]
                        without = {index.catalog.ids[row]: "another server" for row in out.tolist()}
                        judged = selector.judge(query.text, without=without)
                        _add(found, f"decided, {name}: only {count}", selector.ranking(judged), query)
    return found


def seen_by(selector: Selector, memory: UsageMemory | None, text: str) -> tuple[Floats, Evidence]:
    """The query's vector, and all evidence."""
    assert selector.encoder is not None
    assert selector.bundle is not None
    vector = selector.encoder.encode([text], selector.bundle.manifest.max_query_tokens).vectors[0]
    return vector, evidence(text, vector, selector.index, memory)


def _add(found: Metrics, line: str, ranking: Sequence[str], query: Query) -> None:
    metrics = ranking_metrics(ranking, query)
    for figure in FIGURES:
        found.setdefault(line, {}).setdefault(figure, []).append(metrics[figure])


def compared(found: Metrics) -> dict[str, dict[str, Any]]:
    """Line -> figure -> mean, and the difference to the flat line of its kind with its interval."""
    report: dict[str, dict[str, Any]] = {}
    for line, figures in found.items():
        flat = found["decided, flat" if line.startswith("decided") else "flat"]
        report[line] = {
            figure: {
                "mean": float(np.mean(values)),
                "difference": float(np.mean(values) - np.mean(flat[figure])),
                "interval": paired_difference_interval(values, flat[figure], 0),
            }
            for figure, values in figures.items()
        }
    return report


def show(name: str, report: Mapping[str, Mapping[str, Any]], count: int) -> None:
    """Flat, and every line whose difference in some figure is beyond chance."""
    print(f"== {name}: {count} queries", flush=True)
    for line, figures in report.items():
        cells = []
        for figure, one in figures.items():
            low, high = one["interval"]
            mark = "+" if low > 0 else "-" if high < 0 else " "
            cells.append(f"{figure} {100 * one['mean']:5.1f} ({100 * one['difference']:+5.1f}){mark}")
        print(f"{line:28s} {'  '.join(cells)}", flush=True)


# The sets.


def own_servers(name: str, catalog: Catalog) -> Catalog:
    """The catalog with the set's name before its ids and servers; tools without a server are the set's."""
    return Catalog(
        card.model_copy(update={"tool_id": f"{name}/{card.tool_id}", "domain": f"{name}/{card.domain}"})
        for card in catalog
    )


def together(data: Path, metatool_queries: int = 400) -> Set:
    """All sets but toolbench (whose tools are stabletoolbench's) in one catalog, with the queries of all."""
    live = [sets.livemcpbench(data, fold) for fold in range(sets.FOLDS)]
    seal = sets.sealtools(data)
    parts = {
        "livemcp": Set(live[0].catalog, (), tuple(query for of in live for query in of.queries)),
        "stabletoolbench": sets.stabletoolbench(data),
        "sealtools": Set(seal.catalog, (), tuple(load_queries(data / "sealtools" / "queries.jsonl"))),
        "metatool": Set(sets.metatool(data).catalog, (), sets.metatool(data).queries[:metatool_queries]),
        "github": Set(import_catalog(data / "github-mcp" / "tools_list.json", "mcp", domain="github")[0], (), ()),
        "bfcl": Set(load_bfcl().catalog, (), ()),
    }
    cards = [card for name, of in parts.items() for card in own_servers(name, of.catalog)]
    return Set(Catalog(cards), (), tuple(renamed(query, name) for name, of in parts.items() for query in of.queries))


def searched(data: Path, fold: int) -> Set:
    """What real agents searched for in the tasks of a fold, with the tool that then served it as the answer."""
    of = sets.livemcpbench(data, fold)
    tasks = {query.text for query in of.queries}
    queries = {
        trace.goal: Query(qid=f"{trace.trace_id}-{trace.step}", text=trace.goal, gold=(trace.tool_id,))
        for trace in load_traces(data / "livemcpbench" / "traces.jsonl")
        if trace.request in tasks and trace.tool_id is not None and trace.outcome == "success" and trace.goal
    }
    return Set(of.catalog, (), tuple(queries.values()))


def named_live(of: Set) -> Set:
    """As the bundles of livemcpbench know it."""
    return sets.union([("livemcp", of)])


def comparisons(data: Path, bundles: Path | None) -> dict[str, Callable[[], tuple[list[Case], bool]]]:
    """Name -> what makes the cases, and says whether a head decides."""
    live = [sets.livemcpbench(data, fold) for fold in range(sets.FOLDS)]
    asked = [searched(data, fold) for fold in range(sets.FOLDS)]
    stable = sets.stabletoolbench(data)
    large: dict[Path | None, Case] = {}

    def of_all(bundle: Path | None, name: str, headed: bool) -> tuple[list[Case], bool]:
        if bundle not in large:
            large[bundle] = loaded(bundle, together(data))
        queries = tuple(query for query in large[bundle].queries if query.qid.startswith(f"{name}/"))
        return [Case(large[bundle].selector, queries)], headed

    def every_fold(of: Sequence[Set]) -> Set:
        return Set(of[0].catalog, (), tuple(query for one in of for query in one.queries))

    def of_folds(folder: Path, of: Sequence[Set]) -> list[Case]:
        return [loaded(folder / f"livemcpbench-{n}" / "bundle-0", named_live(one)) for n, one in enumerate(of)]

    def seal() -> Set:
        return Set(sets.sealtools(data).catalog, (), tuple(load_queries(data / "sealtools" / "queries.jsonl")))

    base = base_bundle()
    made: dict[str, Callable[[], tuple[list[Case], bool]]] = {
        "livemcpbench, whole tasks, untrained": lambda: ([loaded(base, every_fold(live))], False),
        "livemcpbench, agents' searches, untrained": lambda: ([loaded(base, every_fold(asked))], False),
        "stabletoolbench, untrained": lambda: ([loaded(base, stable)], False),
        "sealtools, untrained": lambda: ([loaded(base, seal())], False),
    }
    for name in ("livemcp", "stabletoolbench", "sealtools", "metatool"):
        made[f"all sets together, queries of {name}, untrained"] = partial(of_all, base, name, False)
    if bundles is not None:
        trained = bundles / "base" / "bundle-0"
        made |= {
            "livemcpbench, whole tasks": lambda: (of_folds(bundles, live), True),
            "livemcpbench, agents' searches": lambda: (of_folds(bundles, asked), True),
            "stabletoolbench": lambda: ([loaded(trained, stable)], True),
        }
        for name in ("livemcp", "stabletoolbench"):
            made[f"all sets together, queries of {name}"] = partial(of_all, trained, name, True)
    return made


def latencies(data: Path, rounds: int = 300) -> dict[str, dict[str, float]]:
    """p50 and p95 in ms of the processor, of scoring and gathering, by catalog size and line, on the same queries."""
    every = together(data)
    times: dict[str, list[float]] = {}
    draw = np.random.default_rng(0)
    texts = [query.text for query in every.queries]
    texts = [texts[i] for i in draw.choice(len(texts), rounds, replace=False)]
    servers = np.array([card.domain for card in every.catalog])
    for size in SIZES:
        # whole servers, so that they are as large as they are
        order = draw.permutation(list(dict.fromkeys(servers.tolist())))
        place = {name: number for number, name in enumerate(order.tolist())}
        cards = sorted(every.catalog.cards, key=lambda card: place[card.domain])[:size]
        selector = loaded(base_bundle(), Set(Catalog(cards), (), every.queries[:1])).selector
        index, rows = selector.index, np.arange(size, dtype=np.int64)
        middle, missing = centres(index, rows)
        assert index.vectors is not None
        assert selector.encoder is not None
        for number, text in enumerate([*texts[:20], *texts]):
            vector = selector.encoder.encode([text], 64).vectors[0]
            for line in ("flat", "best: only 5", "centre: only 5, kept centres"):
                started = time.process_time()
                if line == "flat":
                    gather(evidence(text, vector, index, None), DEPTH, rows)
                elif line == "best: only 5":
                    seen = evidence(text, vector, index, None)
                    only(seen, by_best(seen, vector, index, rows), index, rows, 5)
                else:  # the first hop spares the second the vectors of all other servers
                    inside = np.flatnonzero(np.isin(index.domain, best_servers(middle @ vector + missing, 5)))
                    dense = inside[np.argsort(-(index.vectors[inside] @ vector), kind="stable")][:DEPTH]
                    fuse([top(index.lexical.scores(text).ranking, DEPTH, inside), dense], DEPTH)
                if number >= 20:
                    ms = (time.process_time() - started) * 1000
                    times.setdefault(f"{size:,} tools, {line}", []).append(ms)
    return {
        line: {"p50": float(np.percentile(ms, 50)), "p95": float(np.percentile(ms, 95))} for line, ms in times.items()
    }


def main() -> None:
    """Print every comparison; with --out also write it."""
    parser = argparse.ArgumentParser(description="Compare two-hop routing with flat search.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--bundles", type=Path)
    parser.add_argument("--only", default="", help="what begins so: a comparison's name, or latency")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    reports: dict[str, Any] = {}
    for name, make in comparisons(given.data, given.bundles).items():
        if name.startswith(given.only):
            cases, decided = make()
            reports[name] = compared(measured(cases, decided=decided))
            show(name, reports[name], sum(len(case.queries) for case in cases))
    if "latency".startswith(given.only):
        reports["latency_ms"] = latencies(given.data)
        for line, ms in reports["latency_ms"].items():
            print(f"{line:40s} p50 {ms['p50']:.2f} ms, p95 {ms['p95']:.2f} ms")
    if given.out is not None:
        given.out.write_text(json.dumps(reports, indent=1))


if __name__ == "__main__":
    main()

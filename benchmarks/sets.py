"""The sets of the quality benchmark: which catalog, which traces may train, which queries measure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from data.catalog import Catalog
from data.importers.bfcl import load_bfcl
from data.jsonl import load_catalog, load_queries, load_traces
from data.queries import Query
from data.traces import Trace

FOLDS = 5


@dataclass(frozen=True)
class Set:
    """A catalog, the traces that may train on it, and the queries that measure."""

    catalog: Catalog
    traces: tuple[Trace, ...]
    queries: tuple[Query, ...]


def sha1(text: str) -> int:
    return int(hashlib.sha1(text.encode()).hexdigest(), 16)


def bfcl() -> Set:
    """BFCL: the 40% of the requests with sha1(qid) % 10 >= 6 measure, the rest trains."""
    source = load_bfcl()
    return Set(
        source.catalog,
        tuple(trace for trace in source.traces if sha1(trace.trace_id) % 10 < 6),
        tuple(query for query in source.queries if sha1(query.qid) % 10 >= 6),
    )


def metatool(data: Path, *, cold: bool = False) -> Set:
    """MetaTool: the last fifth of the queries in sha1 order measures; `cold` keeps 15% of the tools out of training."""
    catalog = load_catalog(data / "metatool" / "tools.jsonl")
    queries = sorted(load_queries(data / "metatool" / "queries.jsonl"), key=lambda query: _hex(query.qid))
    cut = int(len(queries) * 0.8)
    train, test = queries[:cut], queries[cut:]
    if cold:
        tools = sorted(catalog.ids, key=_hex)
        unseen = set(tools[: round(0.15 * len(tools))])
        train = [query for query in train if not unseen & set(query.gold)]
    return Set(catalog, tuple(as_traces(train)), tuple(test))


def sealtools(data: Path) -> Set:
    """Seal-Tools: all of it trains."""
    queries = load_queries(data / "sealtools" / "queries.jsonl")
    return Set(load_catalog(data / "sealtools" / "tools.jsonl"), tuple(as_traces(queries)), ())


def stabletoolbench(data: Path) -> Set:
    """StableToolBench, G1: all of it measures, none of it trains."""
    folder = data / "stabletoolbench"
    return Set(load_catalog(folder / "tools.jsonl"), (), tuple(load_queries(folder / "queries.jsonl")))


def livemcpbench(data: Path, fold: int) -> Set:
    """LiveMCPBench: a fifth of the tasks measures, the real agent traces of the *other* tasks train."""
    folder = data / "livemcpbench"
    queries = load_queries(folder / "queries.jsonl")
    held_out = {query.text for query in queries if sha1(query.text) % FOLDS == fold}
    return Set(
        load_catalog(folder / "tools.jsonl"),
        tuple(trace for trace in load_traces(folder / "traces.jsonl") if trace.request not in held_out),
        tuple(query for query in queries if query.text in held_out),
    )


def as_traces(queries: Iterable[Query]) -> Iterable[Trace]:
    """Queries with known answers as the log of an agent that always chose well: one line a gold tool."""
    for query in queries:
        for step, tool in enumerate(query.gold):
            yield Trace(
                trace_id=query.qid, step=step, request=query.text, goal=query.text, tool_id=tool, outcome="success"
            )


def sample(of: Set, count: int) -> Set:
    """The traces of the first `count` trace ids in sha1 order."""
    ids = set(sorted({trace.trace_id for trace in of.traces}, key=_hex)[:count])
    return Set(of.catalog, tuple(trace for trace in of.traces if trace.trace_id in ids), of.queries)


def union(sets: Sequence[tuple[str, Set]]) -> Set:
    """Several sets as one: tool ids, trace ids and query ids get the set's name before them."""
    cards, traces, queries = [], [], []
    for name, of in sets:
        cards += [card.model_copy(update={"tool_id": f"{name}/{card.tool_id}"}) for card in of.catalog]
        for trace in of.traces:
            menu = (
                None
                if trace.menu is None
                else tuple(shown.model_copy(update={"tool_id": f"{name}/{shown.tool_id}"}) for shown in trace.menu)
            )
            tool = None if trace.tool_id is None else f"{name}/{trace.tool_id}"
            changed = {"trace_id": f"{name}/{trace.trace_id}", "tool_id": tool, "menu": menu}
            traces.append(trace.model_copy(update=changed))
        queries += [renamed(query, name) for query in of.queries]
    return Set(Catalog(cards), tuple(traces), tuple(queries))


def renamed(query: Query, name: str) -> Query:
    """The query with the set's name before every id."""
    alternatives = {f"{name}/{g}": tuple(f"{name}/{a}" for a in others) for g, others in query.gold_alt.items()}
    gold = tuple(f"{name}/{tool}" for tool in query.gold)
    return query.model_copy(update={"qid": f"{name}/{query.qid}", "gold": gold, "gold_alt": alternatives})


def _hex(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()

"""R_decompose: of the tools that a request of several steps needs, the share that its steps find in their top k.

    python -m benchmarks.decompose --data DIR [--bundle BUNDLE|none] [--base] [--limit N] [--stand-in] SET...

DIR holds the sets in the plain jsonl form; only queries with several right tools are asked. `--base` ranks by base
MiniLM and keywords, else `none` is keywords alone. `--remote` measures that endpoint beside the rules; `--stand-in`
starts one here that answers with the steps that people wrote (where a set has them), which is what a remote splitter
could reach at best, through the same HTTP path.

Four ways are compared: the text unsplit, unsplit with as many tools looked at as the steps see together (k a step), the
steps, and the steps beside the whole text. `menu` is the share on one merged menu of 12, where the steps take turns.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from data.jsonl import load_catalog, load_queries
from data.queries import Query
from serving.bundle import load_bundle
from serving.remote_splitter import RemoteSplitter
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.splitting import split
from training.base import base_bundle

CUTOFFS = (10, 40)
MENU = 12
Splitter = Callable[[str], Sequence[str]]
Ranker = Callable[[str], tuple[str, ...]]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what splitting a request finds.")
    parser.add_argument("sets", nargs="+", help="folders of DIR")
    parser.add_argument("--data", type=Path, required=True, help="the folder with the sets")
    parser.add_argument("--bundle", default="none", help="a bundle's folder, or none")
    parser.add_argument("--base", action="store_true", help="rank by base MiniLM and keywords")
    parser.add_argument("--limit", type=int, default=200, help="queries a set")
    parser.add_argument("--remote", help="base URL of an OpenAI-compatible endpoint")
    parser.add_argument("--model", default="stand-in")
    parser.add_argument("--key-variable", default="", help="the environment variable with the endpoint's key")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds")
    parser.add_argument("--stand-in", action="store_true", help="measure a remote splitter against an endpoint here")
    given = parser.parse_args()
    for name in given.sets:
        folder = given.data / name
        queries = [query for query in load_queries(folder / "queries.jsonl") if len(query.gold) > 1][: given.limit]
        rank = ranker(given, folder)
        print(f"== {name}: {len(queries)} requests, {sum(len(query.gold) for query in queries)} tools to find")
        for label, splitter in splitters(given, folder):
            show(label, measure(queries, splitter, rank))


def ranker(given: argparse.Namespace, folder: Path) -> Ranker:
    """The ranking of a text, 200 deep, each text once."""
    path = base_bundle() if given.base else None if given.bundle == "none" else Path(given.bundle)
    settings = SelectorSettings(explore_rate=0.0, allow_foreign_catalog=True, candidates=200)
    bundle = load_bundle(path) if path is not None else None
    selector = Selector(bundle, load_catalog(folder / "tools.jsonl"), settings=settings)
    return lru_cache(maxsize=None)(lambda text: selector.select(text, request_id="r").ranking)


def splitters(given: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Splitter]]:
    """The splitters to compare, with their names."""
    yield "unsplit", lambda text: (text,)
    yield "rules", split
    yield "rules, and the whole", lambda text: with_whole(text, split(text))
    if given.remote:
        yield from remote(f"remote ({given.model})", given, given.remote)
    written = written_steps(folder) if given.stand_in else {}
    if written:
        with stand_in(written) as url:
            yield from remote("remote (stand-in: people's steps)", given, url)


def remote(label: str, given: argparse.Namespace, url: str) -> Iterator[tuple[str, Splitter]]:
    """A remote splitter, with how often the rules stood in for it."""
    splitter = RemoteSplitter(url, given.model, given.key_variable, given.timeout)
    stood_in: list[str] = []

    def steps(text: str) -> Sequence[str]:
        found = splitter.split(text)
        if found.degradation is not None:
            stood_in.append(found.degradation.what)
        return found.steps

    yield label, steps
    print(f"{'':<36} rules stood in {len(stood_in)} times{': ' + stood_in[0] if stood_in else ''}")
    splitter.close()


def with_whole(text: str, steps: Sequence[str]) -> Sequence[str]:
    return steps if len(steps) == 1 else (text, *steps)


def measure(queries: Sequence[Query], splitter: Splitter, rank: Ranker) -> dict[str, float]:
    """Shares of the right tools, an equivalent counting as its gold; and the steps a request."""
    hits: dict[str, int] = {}
    total = parts = 0
    for query in queries:
        steps = splitter(query.text)
        parts += len(steps)
        rankings = [rank(step) for step in steps]
        whole, merged = rank(query.text), in_turns(rankings)
        seen = {f"@{k}": {tool for ranking in rankings for tool in ranking[:k]} for k in CUTOFFS}
        seen |= {f"unsplit, as many, @{k}": set(whole[: k * len(steps)]) for k in CUTOFFS}
        seen["menu"] = set(merged[:MENU])
        for gold in query.gold:
            total += 1
            right = {*query.as_good_as(gold)}
            for name, tools in seen.items():
                hits[name] = hits.get(name, 0) + bool(right & tools)
    return {"steps": parts / len(queries), **{name: count / total for name, count in hits.items()}}


def in_turns(rankings: Sequence[Sequence[str]]) -> list[str]:
    """The rankings' tools, each giving its best remaining one in turn."""
    deepest = max(map(len, rankings))
    return list(dict.fromkeys(r[place] for place in range(deepest) for r in rankings if place < len(r)))


def show(label: str, found: Mapping[str, float]) -> None:
    figures = "  ".join(f"{name} {100 * share:.1f}" for name, share in found.items() if name != "steps")
    print(f"{label:<36} {found['steps']:.2f} steps  {figures}", flush=True)


def written_steps(folder: Path) -> dict[str, list[str]]:
    """Request -> the steps that people wrote for it, as far as a set has them."""
    lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return {row["text"]: row["steps"] for row in rows if row.get("steps")}


@contextmanager
def stand_in(steps: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """A chat-completions endpoint on this machine that knows these requests; its base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            text = asked["messages"][-1]["content"]
            content = json.dumps({"steps": list(steps.get(text, [text]))})
            body = json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()

"""Sessions of 30 turns over a catalog of 527 tools: what tools cost in tokens, what prompts keep, what the cache knows.

    python -m benchmarks.session --data DIR [--bundle none] [--json]

DIR holds LiveMCPBench in the plain jsonl form, as for `benchmarks.quality`. How sessions are made:
`benchmarks/agent_turns.py`; in which prompts: `benchmarks/prompt_layouts.py`. In process, with the service's own
selector, slice cache, search tool and disclosure; the simulated agent calls the best tool of the menu that serves its
task, else the best. Tokens are counted by the bundle's tokenizer, on both sides of each comparison.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.agent_turns import KINDS, Kind, Material, Turn, load_material, moved, session
from benchmarks.prompt_layouts import LAYOUTS, Layout, Segment, Shown, cost, known_share, prompts, tool_tokens
from benchmarks.session_walks import CLIENTS, MISSES, Client, Seen, Walk, walk
from data.cards import ToolCard
from data.jsonl import load_catalog
from serving.disclosure import Format, Level, approximate_tokens, render
from serving.embedding_cache import EmbeddingCache
from serving.search_tool import with_search_tool
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.slice import Slice
from serving.slice_cache import SliceCache
from toolcrib.inputs import read_bundle

TURNS = 30
SEEDS = (0, 1, 2)
SYSTEM_TOKENS = 500
RESULT_CHARACTERS = 4_000
"""Of a result the model sees no more: what the service caps it at."""
CHARACTERS_A_TOKEN = 4
"""Of results, of which the traces tell the size and not the words."""

FORMATS: dict[Layout, Format] = {
    "front": "text",
    "end": "text",
    "references": "anthropic",
    "list": "openai",
    "anew": "openai",
}
LEVELS: tuple[Level, ...] = ("discovery", "selection", "invocation")
PREFIXES = ("goal", "used tools")
"""Clients whose prompts are looked at: without tools of the session in the stable part, and with them."""

Sessions = dict[int, list[list[Turn]]]
"""Seed -> its sessions."""
Walked = list[tuple[Sequence[Turn], Walk]]


class Pages:
    """Tools as segments, each rendered and counted once."""

    def __init__(self, selector: Selector) -> None:
        self._selector = selector
        self.count = approximate_tokens if selector.encoder is None else selector.encoder.count
        self._made: dict[tuple[str, Level, Format], Segment] = {}

    def tool(self, card: ToolCard, level: Level, format: Format) -> Segment:
        key = card.tool_id, level, format
        if key not in self._made:
            text = render((), (card,), level, format).turn
            if format == "anthropic":  # the definition alone: the API puts it where the reference to it stands
                text = json.dumps(json.loads(text)["tools"][0], ensure_ascii=False, separators=(",", ":"))
            self._made[key] = Segment(text, self.count(text))
        return self._made[key]

    def shown(self, turn: Turn, found: Slice, called: str | None, layout: Layout, level: Level) -> Shown:
        """What this turn puts into the prompt."""
        catalog, format = self._selector.catalog, FORMATS[layout]
        entries = [entry for entry in found.menu if entry.verdict != "deny"]
        roles: dict[str, list[ToolCard]] = {"core": [], "used": [], "turn": []}
        for entry in entries:
            roles.get(entry.reason, roles["turn"]).append(catalog[entry.tool_id])
        by_rank = sorted(entries, key=lambda entry: len(catalog) if entry.rank is None else entry.rank)
        in_part = level != "invocation" and called is not None and catalog[called] in roles["turn"]
        result = min(turn.call.result_characters, RESULT_CHARACTERS) // CHARACTERS_A_TOKEN
        return Shown(
            core=tuple(self.tool(card, "invocation", format) for card in roles["core"]),
            session=tuple(self.tool(card, "invocation", format) for card in roles["used"]),
            turn=tuple(self.tool(card, level, format) for card in roles["turn"]),
            ranked=tuple(self.tool(catalog[entry.tool_id], "invocation", format) for entry in by_rank),
            asked=Segment(turn.step.goal, self.count(turn.step.goal)),
            described=(self.tool(catalog[called], "invocation", format),) if in_part and called is not None else (),
            answered=(Segment(turn.call.said, self.count(turn.call.said)), Segment("its result", result)),
        )

    def whole(self, format: Format) -> int:
        """Tokens of every tool of the catalog in full."""
        return cost([self.tool(card, "invocation", format) for card in self._selector.catalog])


def measure(selector: Selector, data: Path, count: int) -> dict[str, Any]:
    """All figures: means over the sessions of all seeds."""
    material, pages = load_material(data), Pages(selector)
    report: dict[str, Any] = {
        "tools": len(selector.catalog),
        "moves": {"real agents": dict(material.moves)},
        "the same tool again, in the same words": material.same_words,
        "whole catalog": {layout: pages.whole(FORMATS[layout]) for layout in LAYOUTS},
        "hits": {},
        "tool tokens": {},
        "known": {},
    }
    seconds: dict[str, list[float]] = {}
    differing = 0
    for kind in KINDS:
        made = sessions_of(material, kind, count)
        report["moves"][kind] = moved([turns for sessions in made.values() for turns in sessions])
        for client in CLIENTS:
            alone = walked(selector, made, client, together=False)
            together = walked(selector, made, client, together=True)
            why = sum((one.why for _, one in alone), Counter[str]())
            report["hits"][f"{kind}, {client}"] = {
                "one session": float(np.mean([one.cached for _, one in alone])),
                "sessions together": float(np.mean([one.cached for _, one in together])),
                "misses": {reason: why[reason] / (len(alone) * TURNS) for reason in MISSES},
            }
            for _, one in (*alone, *together):
                differing += one.differing
                for how, taken in one.seconds:
                    seconds.setdefault(how, []).append(taken)
            if client in PREFIXES:
                report["tool tokens"][f"{kind}, {client}"] = sent(pages, alone)
                report["known"][f"{kind}, {client}"] = kept(pages, alone)
    report["ms"] = {how: float(np.median(taken)) * 1000 for how, taken in seconds.items()}
    report["decisions that differ though all they read is equal"] = differing
    return report


def sessions_of(material: Material, kind: Kind, count: int) -> Sessions:
    return {
        seed: [session(material, kind, TURNS, f"{seed} {number}", workflow=str(seed)) for number in range(count)]
        for seed in SEEDS
    }


def walked(selector: Selector, made: Sessions, client: Client, *, together: bool) -> Walked:
    """Every session, with a cache of its own, or `together` with one cache for all sessions of a seed."""
    found = Walked()
    for seed, sessions in made.items():
        cache, seen = SliceCache(), Seen()
        for number, turns in enumerate(sessions):
            if not together:
                cache, seen = SliceCache(), Seen()
            found.append((turns, walk(selector, turns, client, cache, seen, f"{together} {seed} {number}")))
    return found


def sent(pages: Pages, walks: Walked) -> dict[str, float]:
    """Tokens of tools a turn, by layout and level."""
    figures = {}
    for layout in LAYOUTS:
        for level in LEVELS if layout != "anew" else LEVELS[-1:]:
            each = [tool_tokens(layout, shown) for turns in shown_in(pages, walks, layout, level) for shown in turns]
            figures[f"{layout}, {level}"] = float(np.mean(each))
    return figures


def kept(pages: Pages, walks: Walked) -> dict[str, float]:
    """Share of the prompts that is known from the turn before, by layout; the default level."""
    system = Segment("system", SYSTEM_TOKENS)
    return {
        layout: float(
            np.mean(
                [known_share(prompts(layout, system, turns)) for turns in shown_in(pages, walks, layout, "selection")]
            )
        )
        for layout in LAYOUTS
    }


def shown_in(pages: Pages, walks: Walked, layout: Layout, level: Level) -> list[list[Shown]]:
    """What each turn of each session adds to the prompt."""
    return [
        [
            pages.shown(turn, found, called, layout, level)
            for turn, found, called in zip(turns, one.slices, one.called, strict=True)
        ]
        for turns, one in walks
    ]


def show(report: dict[str, Any], count: int) -> None:
    tools, whole = report["tools"], report["whole catalog"]
    print(f"{tools} tools; {len(SEEDS)} x {count} sessions of {TURNS} turns a kind, seeds {', '.join(map(str, SEEDS))}")
    for who, moves in report["moves"].items():
        print(f"  moves of {who}: " + ", ".join(f"{move} {share:.0%}" for move, share in moves.items()))
    words = report["the same tool again, in the same words"]
    print(f"  real agents called the same tool again in the same words in {words:.0%} of the cases; these always do")
    print("\ntokens of tools a turn, and the cut against the whole catalog in full")
    for of, figures in report["tool tokens"].items():
        if not of.startswith("workflow"):  # the others are alike
            continue
        print(f"  {of}")
        for name, tokens in figures.items():
            catalog = whole[name.partition(",")[0]]
            print(f"    {name:<24}{tokens:>8,.0f} of {catalog:>9,}   cut {1 - tokens / catalog:.1%}")
    print("\nshare of the prompt that is known from the turn before")
    for of, shares in report["known"].items():
        print(f"  {of:<22}" + "".join(f"  {layout} {share:.1%}" for layout, share in shares.items()))
    print("\nhits of the slice cache: one session alone, sessions together; the misses of one session, in all turns")
    for of, hits in report["hits"].items():
        misses = ", ".join(f"{reason} {share:.1%}" for reason, share in hits["misses"].items() if share)
        print(f"  {of:<24}{hits['one session']:>7.1%}{hits['sessions together']:>7.1%}   {misses}")
    print("\nms, median: " + ", ".join(f"{how} {ms:.2f}" for how, ms in report["ms"].items()))
    differing = report["decisions that differ though all they read is equal"]
    print(f"decisions that differ though all they read is equal: {differing}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Walk through sessions.")
    parser.add_argument("--data", type=Path, required=True, help="the folder with livemcpbench")
    parser.add_argument("--bundle", default="none", help="a bundle's folder; none: the untrained base model")
    parser.add_argument("--sessions", type=int, default=10, help="of each kind and seed")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    catalog = with_search_tool(load_catalog(given.data / "livemcpbench" / "tools.jsonl"))
    settings = SelectorSettings(allow_foreign_catalog=True)
    selector = Selector.load(read_bundle(given.bundle), catalog, settings=settings, embeddings=EmbeddingCache())
    report = measure(selector, given.data / "livemcpbench", given.sessions)
    if given.json:
        print(json.dumps(report, indent=1))
    else:
        show(report, given.sessions)


if __name__ == "__main__":
    main()

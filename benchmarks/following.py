"""Following a registry: from one decision there until the changed catalog serves, on 1,000 and 10,000 cards.

    python -m benchmarks.following --run runs/demo [--sizes 1000 10000] [--changes 20]

A larger catalog is the given one with its cards repeated under other ids. Changes are a card whose text is new, one
that is added and one that goes, in turn, each followed by one look; their events are written into the registry's
tables, past the lint that would speak against so many copies. Times are of the clock and, behind the stroke, of the
processor alone, which other work on the machine does not lengthen. `afresh` is the same catalog loaded without what
served before, as at a start; a look at a registry where nothing has happened is timed by itself.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from data.cards import ToolCard
from data.catalog import Catalog
from data.jsonl import load_catalog
from data.registry import Cause, Event, State, content_of
from data.store.approved import Approved
from data.store.database import Database, open_database
from data.store.registry_rows import add_rows
from serving.bundle import Bundle
from serving.following import BundleFolder, Watch
from serving.search_tool import with_search_tool
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.watch import bundle_source

HOW = SelectorSettings(allow_foreign_catalog=True)
KINDS = ("a text that is new", "a tool that is added", "a tool that goes")


def build(catalog: Catalog, bundle: Bundle | None, earlier: Selector | None) -> Selector:
    return Selector(bundle, with_search_tool(catalog), settings=HOW, earlier=earlier)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time how a service follows a registry.")
    parser.add_argument("--run", type=Path, required=True, help="what `toolcrib demo` wrote")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--changes", type=int, default=20, help="of each kind")
    given = parser.parse_args()
    logging.getLogger("toolcrib").setLevel(logging.ERROR)
    catalog = load_catalog(given.run / "catalog.jsonl")
    for size in given.sizes:
        with tempfile.TemporaryDirectory() as folder, closing(open_database(Path(folder) / "registry.db")) as database:
            measure(database, repeated(catalog, size), given.run / "bundle", given.changes)


Times = list[tuple[float, float]]
"""Seconds of the clock and of the processor."""


def measure(database: Database, catalog: Catalog, bundle: Path, changes: int) -> None:
    """Fill the registry, follow it through the changes, print what it took."""
    cards = {card.tool_id: card for card in catalog}
    decide(database, [(card, State.APPROVED) for card in cards.values()])
    first: Times = []
    with timed(first):
        watch = Watch(Approved(database), BundleFolder(bundle_source(bundle)), build)
    took: dict[str, Times] = {kind: [] for kind in KINDS}
    idle: Times = []
    for turn in range(changes):
        for kind in KINDS:
            decide(database, change(cards, kind, turn))
            with timed(took[kind]):
                swap = watch.poll()
            assert swap is not None
            assert swap.accepted, swap.problem
            with timed(idle):
                assert watch.poll() is None
    serving = watch.live.current
    assert {card.tool_id: card for card in serving.catalog.cards[:-1]} == cards
    afresh: Times = []
    with timed(afresh):
        build(Catalog(serving.catalog.cards[:-1]), serving.bundle, None)
    print(f"{len(catalog):,} cards, ms of the clock / of the processor (median; 95th percentile)")
    for name, times in {"start": first, "afresh": afresh, **took, "nothing": idle}.items():
        print(f"  {name:<22} {_ms(times, 50)}; {_ms(times, 95)}")


def repeated(catalog: Catalog, size: int) -> Catalog:
    """`size` cards: the catalog's own, then the same texts again."""
    turns = ((number // len(catalog), catalog.cards[number % len(catalog)]) for number in range(size))
    return Catalog(
        card.model_copy(update={"tool_id": f"{card.tool_id}_{turn}"}) if turn else card for turn, card in turns
    )


@contextmanager
def timed(times: Times) -> Iterator[None]:
    clock, processor = time.perf_counter(), time.process_time()
    yield
    times.append((time.perf_counter() - clock, time.process_time() - processor))


def decide(database: Database, decisions: Sequence[tuple[ToolCard, State]]) -> None:
    """Write what a person decided."""
    now = datetime.now(UTC)
    events = [
        Event(0, now, card.tool_id, content_of(card), state, Cause.PERSON, "anna", "all") for card, state in decisions
    ]
    with database.writing() as connection:
        add_rows(connection, [card for card, _ in decisions], events)


def change(cards: dict[str, ToolCard], kind: str, turn: int) -> list[tuple[ToolCard, State]]:
    """One change somewhere in the catalog, as decisions."""
    tool = list(cards)[(turn * 7919) % len(cards)]
    before = cards[tool]
    if kind == KINDS[0]:
        cards[tool] = before.model_copy(update={"description": f"{before.description} Revised {turn} times."})
        return [(before, State.RETIRED), (cards[tool], State.APPROVED)]
    if kind == KINDS[1]:
        name = f"added_{turn}"
        cards[f"added.{name}"] = before.model_copy(update={"tool_id": f"added.{name}", "name": name})
        return [(cards[f"added.{name}"], State.APPROVED)]
    del cards[tool]
    return [(before, State.RETIRED)]


def _ms(times: Times, percentile: float) -> str:
    clock, processor = np.percentile(np.array(times) * 1000, percentile, axis=0)
    return f"{clock:7.1f} / {processor:6.1f}"


if __name__ == "__main__":
    main()

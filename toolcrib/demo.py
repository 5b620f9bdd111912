"""The demo: the whole loop on BFCL's tools and requests, told step by step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from data.catalog import Catalog
from data.findings import to_text
from data.importers.bfcl import load_bfcl
from data.jsonl import save_catalog, write_jsonl
from data.lint import lint_catalog
from data.mining.miner import mine_to_folder
from data.trace_store import write_traces
from serving.bundle import load_bundle
from serving.selector import Selector
from serving.slice import Slice
from toolcrib.demo_data import EVERYTHING, REQUESTS, guarded, recipe_for, split
from toolcrib.reports import show_evaluation, show_mining
from toolcrib.screen import say
from toolcrib.slices import show_menu, withheld
from training.evaluation import evaluate_loaded
from training.pipeline import train
from training.plots import save_figures
from training.recorded import record_evaluation
from training.report.curves import learning_curve
from training.report.page import save_page

_STEPS = 6
_NOTE = "BFCL's requests, 40% held out of the log that the bundle was trained on."


def demo(out: Path) -> None:
    """Run the loop into the folder `out`, overwriting what an earlier demo left there.

    Writes catalog.jsonl, traces.parquet, queries.jsonl, mined/, bundle/, evaluation.json, report.html and plots/.
    InputError where bfcl-eval is missing.
    """
    with _step(1, "Import BFCL's tools and requests; add permissions; hold out 40% of the requests"):
        source = load_bfcl()
        catalog, sides = guarded(source.catalog), split(source)
        save_catalog(out / "catalog.jsonl", catalog)
        write_traces(out / "traces.parquet", sides.traces)
        write_jsonl(out / "queries.jsonl", (query.model_dump(mode="json") for query in sides.queries))
        say(f"{len(catalog):,} tools, {len(sides.traces):,} traces, {len(sides.queries):,} queries held out")
    with _step(2, "Lint the catalog"):
        say(to_text(lint_catalog(catalog)).splitlines()[-1])
    with _step(3, "Mine the traces"):
        show_mining(mine_to_folder(out / "traces.parquet", catalog, out / "mined"))
    with _step(4, "Train"):
        bundle = train(catalog, out / "traces.parquet", recipe_for(catalog), out / "bundle").bundle
    with _step(5, "Evaluate on the held-out queries, beside the baselines"):
        found = load_bundle(bundle)
        report = evaluate_loaded(found, catalog, sides.queries)
        report["learning_curve"] = learning_curve(found, catalog, sides.queries)
        write_jsonl(out / "evaluation.json", [report])
        save_figures(report, out / "plots")
        page = save_page(report, out / "report.html", "toolcrib demo", _NOTE)
        record_evaluation(report, trained_by=found.manifest.mlflow_run, note=_NOTE)
        show_evaluation(report)
        say(f"the whole report, with what went wrong and where the fix lives: {page}", style="bold")
    with _step(6, "Three requests, as the caller sees them, and what was withheld (operators only)"):
        _show_requests(bundle, catalog)
    say()
    say("Try your own:", style="bold")
    say(f'toolcrib select "book a table for two" --bundle {bundle} --catalog {out / "catalog.jsonl"} --explain')


def _show_requests(bundle: Path, catalog: Catalog) -> None:
    selector = Selector.load(bundle, catalog)
    for number, request in enumerate(REQUESTS, start=1):
        say()
        say(f"{number}. {request.title}", style="bold")
        found = selector.select(request.subgoal, request.caller, request_id=f"demo-{number}")
        show_menu(found)
        _show_withheld(found, selector.select(request.subgoal, EVERYTHING, request_id=f"demo-{number}"))


def _show_withheld(found: Slice, unrestricted: Slice) -> None:
    """What this caller did not get of the menu of a caller who holds everything, and by which rule."""
    rules = withheld(found)
    missed = [f"{entry.tool_id} ({rules[entry.tool_id]})" for entry in unrestricted.menu if entry.tool_id in rules]
    say(f"operators only: {len(rules)} tools were withheld; of an unrestricted menu: {', '.join(missed) or 'none'}")


@contextmanager
def _step(number: int, what: str) -> Iterator[None]:
    say()
    say(f"{number}/{_STEPS} {what}", style="bold")
    started = time.perf_counter()
    yield
    say(f"({time.perf_counter() - started:.1f} s)", style="dim")

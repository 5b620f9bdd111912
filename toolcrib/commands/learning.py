"""`toolcrib mine | train | evaluate | promote`: from traces to a bundle, and whether it is better."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from data.catalog import Catalog
from data.errors import InputError
from data.jsonl import load_catalog, load_queries
from data.queries import Query
from data.trace_store import read_traces
from toolcrib.commands.options import BundleOption, CatalogOption, JsonOption, TracesOption
from toolcrib.inputs import read_bundle
from toolcrib.reports import show_evaluation, show_mining
from toolcrib.screen import print_json, say


def mine_command(
    catalog: CatalogOption,
    traces: TracesOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write the examples to.")],
    engine: Annotated[
        str, typer.Option("--engine", help="duckdb, or spark where one machine is too small.")
    ] = "duckdb",
) -> None:
    """Turn traces into labelled examples.

    By named rules; says what each rule found and what was kept of it.
    """
    from data.mining.miner import mine

    show_mining(mine(traces, load_catalog(catalog), out, engine=engine).report)
    say(f"written to {out}")


def train_command(
    catalog: CatalogOption,
    traces: TracesOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="The bundle folder to write.")],
    recipe: Annotated[Path | None, typer.Option("--recipe", "-r", help="A recipe.yaml; default: the built-in.")] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Throw away what an unfinished training left.")] = False,
) -> None:
    """Train on traces and write a bundle.

    The run is tracked in mlruns/, or where MLFLOW_TRACKING_URI says. The same command finishes a training that was
    stopped.
    """
    from training.pipeline import train
    from training.recipe import load_recipe

    result = train(load_catalog(catalog), traces, load_recipe(recipe), out, restart=restart)
    say(f"bundle written to {result.bundle}")
    if result.run_id:
        say(f"MLflow run {result.run_id}")


def evaluate_command(
    bundle: BundleOption,
    catalog: CatalogOption,
    traces: Annotated[Path | None, typer.Option("--traces", "-t", help="Held-out traces.")] = None,
    queries: Annotated[Path | None, typer.Option("--queries", "-q", help="Held-out queries: a queries.jsonl.")] = None,
    plots: Annotated[Path | None, typer.Option("--plots", help="A folder to draw the figures into.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a bundle beside its baselines.

    With the very selector that serves it, on held-out queries or traces. Traces with menus also tell how often it would
    have succeeded, had it served them.
    """
    if (traces is None) == (queries is None):
        raise InputError("give either --traces or --queries", source="the command line")
    from training.evaluation import evaluate

    tools, folder = load_catalog(catalog), read_bundle(bundle)
    report = evaluate(folder, tools, _questions(traces, queries, tools))
    if traces is not None:
        from training.replayed import evaluate_replayed

        report["counterfactual"] = evaluate_replayed(folder, tools, read_traces(traces))
    if plots is not None:
        from training.plots import save_figures

        save_figures(report, plots)
    if as_json:
        print_json(report)
    else:
        show_evaluation(report)


def promote_command(
    bundle: Annotated[Path | None, typer.Argument(metavar="BUNDLE", help="The bundle's folder.")] = None,
    catalog: Annotated[Path | None, typer.Option("--catalog", "-c", help="The tools: a catalog.jsonl.")] = None,
    traces: Annotated[Path | None, typer.Option("--traces", "-t", help="Held-out traces.")] = None,
    queries: Annotated[Path | None, typer.Option("--queries", "-q", help="Held-out queries: a queries.jsonl.")] = None,
    rollback: Annotated[bool, typer.Option("--rollback", help="Make the champion before this one it again.")] = False,
) -> None:
    """Make a bundle the champion, if not worse.

    Compares it with the present champion on the same queries: those given, or those that both were last evaluated on.
    Exit code 1, and the reason, where it is refused.
    """
    from training.promotion import promote, roll_back

    given = [value for value in (bundle, catalog, traces, queries) if value is not None]
    if rollback and given:
        raise InputError("--rollback takes nothing else", source="the command line")
    if rollback:
        say(roll_back().reason)
        return
    if bundle is None:
        raise InputError("give a bundle, or --rollback", source="the command line")
    if traces is not None and queries is not None:
        raise InputError("give either --traces or --queries", source="the command line")
    if (catalog is None) != (traces is None and queries is None):
        raise InputError("give --catalog with --traces or --queries", source="the command line")
    tools = None if catalog is None else load_catalog(catalog)
    decision = promote(bundle, catalog=tools, queries=[] if tools is None else _questions(traces, queries, tools))
    say(decision.reason)
    if not decision.promoted:
        raise typer.Exit(1)


def _questions(traces: Path | None, queries: Path | None, catalog: Catalog) -> list[Query]:
    if queries is not None:
        return load_queries(queries)
    from training.held_out import queries_from_traces

    return [] if traces is None else queries_from_traces(read_traces(traces), catalog, str(traces))

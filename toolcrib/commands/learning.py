"""`toolcrib mine | train | evaluate | promote`: from traces to a bundle, and whether it is better."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from data.catalog import Catalog
from data.errors import InputError
from data.jsonl import load_catalog, load_queries
from data.queries import Query
from data.trace_store import read_traces
from toolcrib.commands.options import BundleOption, CatalogOption, JsonOption, PartitionOption, TracesOption, partitions
from toolcrib.inputs import read_bundle, read_caller
from toolcrib.reports import show_evaluation, show_mining, show_promotion
from toolcrib.screen import print_json, say

if TYPE_CHECKING:
    from training.pipeline import TrainResult
    from training.recipe import Recipe

log = logging.getLogger("toolcrib")


def mine_command(
    catalog: CatalogOption,
    traces: Annotated[
        str,
        typer.Option(
            "--traces",
            "-t",
            help="What happened: Parquet (a file, folder, pattern or URL), or the plain .jsonl form.",
            show_default=False,
        ),
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", help="The folder, or URL, to write the examples to.", show_default=False)
    ],
    engine: Annotated[
        str, typer.Option("--engine", help="duckdb, or spark where one machine is too small.")
    ] = "duckdb",
    partition_by: PartitionOption = "",
    memory_limit: Annotated[
        str | None, typer.Option("--memory-limit", help="DuckDB's memory, such as 2GB; beyond it, it works on disk.")
    ] = None,
    temp_directory: Annotated[
        Path | None, typer.Option("--temp-directory", help="Where to work on disk; default: the system's folder.")
    ] = None,
    spark_master: Annotated[
        str | None, typer.Option("--spark-master", help="Such as spark://host:7077 or local[2]; default: Spark's own.")
    ] = None,
) -> None:
    """Turn traces into labelled examples.

    By named rules; says what each rule found and what was kept of it.
    """
    from data.mining.engines import Resources
    from data.mining.miner import mine_to_folder

    report = mine_to_folder(
        traces,
        load_catalog(catalog),
        out,
        engine=engine,
        resources=Resources(memory_limit, temp_directory, spark_master),
        partition_by=partitions(partition_by),
    )
    show_mining(report)
    say(f"written to {out}")


def train_command(
    catalog: CatalogOption,
    traces: TracesOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="The bundle folder to write.")],
    recipe: Annotated[Path | None, typer.Option("--recipe", "-r", help="A recipe.yaml; default: the built-in.")] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Throw away what an unfinished training left.")] = False,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write BUNDLE.report.html: how it does on held-out requests.")
    ] = True,
) -> None:
    """Train on traces and write a bundle.

    The run is tracked in mlruns/, or where MLFLOW_TRACKING_URI says. The same command finishes a training that was
    stopped.
    """
    from training.pipeline import train
    from training.recipe import load_recipe

    tools, how = load_catalog(catalog), load_recipe(recipe)
    result = train(tools, traces, how, out, restart=restart)
    say(f"bundle written to {result.bundle}")
    if result.run_id:
        say(f"MLflow run {result.run_id}")
    if report:
        _report_training(result, tools, how)


def _report_training(result: TrainResult, catalog: Catalog, recipe: Recipe) -> None:
    """Write and record the report on the training's own held-out requests, where its log has any."""
    from training.recorded import record_evaluation
    from training.report.own import NOTE, own_report
    from training.report.page import save_page

    found = own_report(result.bundle, catalog, result.held_out, recipe.mining.equivalents, seed=recipe.seed)
    if found is None:
        say("no report: the log leaves no answerable request to hold out")
        return
    place = result.bundle.with_name(f"{result.bundle.name}.report.html")
    say(f"report written to {save_page(found, place, f'training of {result.bundle.name}', NOTE)}")
    record_evaluation(found, trained_by=result.run_id, note=NOTE)


def evaluate_command(
    bundle: BundleOption,
    catalog: CatalogOption,
    traces: Annotated[Path | None, typer.Option("--traces", "-t", help="Held-out traces.")] = None,
    queries: Annotated[Path | None, typer.Option("--queries", "-q", help="Held-out queries: a queries.jsonl.")] = None,
    caller: Annotated[
        Path | None, typer.Option("--caller", help="Ask as this caller, rules in force; else as one who holds all.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="A file to write the report to, as one HTML page.")
    ] = None,
    plots: Annotated[Path | None, typer.Option("--plots", help="A folder to draw the figures into.")] = None,
    record: Annotated[
        bool, typer.Option("--record/--no-record", help="Record the evaluation in MLflow, where a store is.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Measure a bundle beside its baselines.

    With the very selector that serves it, on held-out queries or traces. Traces with menus also tell how often it would
    have succeeded, had it served them.
    """
    if (traces is None) == (queries is None):
        raise InputError("give either --traces or --queries", source="the command line")
    from serving.bundle import load_bundle
    from training.evaluation import evaluate_loaded

    tools, folder = load_catalog(catalog), read_bundle(bundle)
    asked = _questions(traces, queries, tools)
    found = None if folder is None else load_bundle(folder)
    report = evaluate_loaded(found, tools, asked, caller=None if caller is None else read_caller(caller))
    if traces is not None:
        from training.replayed import evaluate_replayed

        report["counterfactual"] = evaluate_replayed(folder, tools, read_traces(traces))
    note = f"Measured on {(traces or queries or Path()).name}."
    if html is not None:
        from training.report.curves import learning_curve
        from training.report.page import save_page

        if found is not None:
            report["learning_curve"] = learning_curve(found, tools, asked)
        save_page(report, html, f"evaluation of {bundle}", note)
    if plots is not None:
        from training.plots import save_figures

        save_figures(report, plots)
    if record:
        _record(report, None if found is None else found.manifest.mlflow_run, note)
    if as_json:
        print_json(report)
    else:
        show_evaluation(report)


def _record(report: Mapping[str, Any], trained_by: str | None, note: str) -> None:
    """Record an evaluation; a store that is not there, or not now, costs the record and never the evaluation."""
    from training.recorded import record_evaluation
    from training.tracking import TrackingError, has_store

    if not has_store():
        log.info("not recorded: there is no mlruns/ here, and MLFLOW_TRACKING_URI is not set")
        return
    try:
        log.info("recorded as MLflow run %s", record_evaluation(report, trained_by=trained_by, note=note))
    except (TrackingError, ModuleNotFoundError) as error:
        log.warning("not recorded: %s", error)


def promote_command(
    bundle: Annotated[Path | None, typer.Argument(metavar="BUNDLE", help="The bundle's folder.")] = None,
    catalog: Annotated[Path | None, typer.Option("--catalog", "-c", help="The tools: a catalog.jsonl.")] = None,
    traces: Annotated[Path | None, typer.Option("--traces", "-t", help="Held-out traces.")] = None,
    queries: Annotated[Path | None, typer.Option("--queries", "-q", help="Held-out queries: a queries.jsonl.")] = None,
    force: Annotated[
        str, typer.Option("--force", metavar="REASON", help="Promote in spite of a refusal; the reason is recorded.")
    ] = "",
    rollback: Annotated[bool, typer.Option("--rollback", help="Make the champion before this one it again.")] = False,
) -> None:
    """Make a bundle the champion, if not worse.

    Compares it with the present champion on the same queries: those given, or those that both were last evaluated on.
    Exit code 1, and the reasons, where it is refused.
    """
    from training.promotion import promote, roll_back

    given = [value for value in (bundle, catalog, traces, queries, force or None) if value is not None]
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
    asked = [] if tools is None else _questions(traces, queries, tools)
    decision = promote(bundle, catalog=tools, queries=asked, force=force.strip())
    show_promotion(decision)
    if not decision.promoted:
        raise typer.Exit(1)


def _questions(traces: Path | None, queries: Path | None, catalog: Catalog) -> list[Query]:
    if queries is not None:
        return load_queries(queries)
    from training.held_out import queries_from_traces

    return [] if traces is None else queries_from_traces(read_traces(traces), catalog, str(traces))

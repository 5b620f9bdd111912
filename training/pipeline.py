"""The pipeline: traces in, a sealed bundle out; read from top to bottom, it is the story of a training."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from data.catalog import Catalog
from data.errors import InputError
from data.mining.miner import Mined, mine
from data.mining.output import TABLES, mining_folder
from data.mining.report import MiningReport
from serving.bundle import Manifest, check_target, publish, seal, write_manifest
from serving.index import save_cards
from serving.selector import Selector
from training import recipe as recipes
from training.arguments import go_on_alone, processes
from training.decisions import Decision, gather_decisions, gather_history, same_names
from training.heads import learn_heads
from training.recipe import Recipe
from training.rerankers import learn_cross_encoder, learn_interaction
from training.stages import learn_retriever, remember_usage, tune_retriever
from training.tracking import DEFAULT_ROOT, Run, SilentRun, track
from training.unfinished import Unfinished, identity_of, unfinished
from training.workshop import Workshop, plain

log = logging.getLogger("toolcrib")

MANY_TOOLS = 2
TIMED = 100
WARM_UP = 5
MINED = "mined"


@dataclass(frozen=True)
class TrainResult:
    """`bundle`: the folder; `metrics`: validation figures, out of fold; `run_id`: the MLflow parent run.

    `held_out`: the logged requests that no fine-tuning has seen.
    """

    bundle: Path
    metrics: dict[str, Any]
    run_id: str | None
    held_out: tuple[Decision, ...] = ()


def train(
    catalog: Catalog,
    traces: Path,
    recipe: Recipe,
    out: Path,
    *,
    tracking_root: Path = DEFAULT_ROOT,
    restart: bool = False,
) -> TrainResult:
    """Train on `traces` for `catalog` and write the bundle to `out`, all or nothing.

    Under `accelerate launch` the processes share the retriever's fine-tuning, which is most of the work; the first one
    alone tracks, trains what is small, and publishes.

    A training that was stopped, even killed, is finished by the same call: its finished stages are not repeated, and
    fine-tuning goes on from its last checkpoint. `restart` starts over.

    Raises RecipeError, InputError, BundleError or TrackingError before anything slow starts.
    """
    recipes.check(recipe)
    check_target(out)
    if len(catalog) < MANY_TOOLS:
        raise InputError(
            f"the catalog has {len(catalog)} tool(s); there is nothing to choose between",
            hint="train on a catalog of two tools or more; a single tool needs no model",
        )
    first = processes().is_main_process
    identity = identity_of(catalog, traces, recipe) if first else {}
    tracked = track(tracking_root, name=out.name) if first else nullcontext(SilentRun())
    with tracked as run, unfinished(out, identity, restart=restart) as making:
        run.parameters(recipe.model_dump(mode="json", exclude={"mining": {"equivalents"}}))
        run.document(recipe.model_dump(mode="json"), "recipe.json")
        if traces.is_file():
            run.dataset("traces", str(traces), identity.get("traces", ""))
        run.tags({"catalog_version": catalog.version})

        with run.stage("mine") as stage:
            mined = _mined(traces, catalog, recipe, making)
            stage.document(mined.report.model_dump(mode="json"), "mining.json")
            stage.metrics(mined.report.model_dump(mode="json"))
            decisions = gather_decisions(
                mined, valid_share=recipe.split.valid_share, cold_share=recipe.split.cold_share, seed=recipe.seed
            )
            history = gather_history(mined, decisions)
        shop = Workshop(catalog, recipe, making.bundle, making.scratch, decisions, same_names(catalog), history)
        if making.values:
            shop.restore(making.values, making.finished)
        with run.stage("retriever") as stage:
            if "tuning" not in making.finished:
                tune_retriever(shop)
            if not go_on_alone():
                return TrainResult(out, {}, None)
            _once("tuning", shop, making, stage, lambda *_: None)
            _once("retriever", shop, making, stage, learn_retriever)
        with run.stage("cross_encoder") as stage:
            _once("cross_encoder", shop, making, stage, learn_cross_encoder)
        with run.stage("usage") as stage:
            remember_usage(shop, stage)
        with run.stage("interaction") as stage:
            _once("interaction", shop, making, stage, learn_interaction)
        with run.stage("heads") as stage:
            _once("heads", shop, making, stage, learn_heads)

        manifest = _sealed(shop, run)
        publish(shop.folder, out)
        run.metrics(shop.figures["validation"])
        run.register(out, manifest.version, shop.figures["validation"])
        log.info("bundle %s written to %s", manifest.version, out)
        held_out = tuple(decision for decision in decisions if decision.asked and decision.side != "train")
        return TrainResult(out, shop.figures, run.run_id, held_out)


def _mined(traces: Path, catalog: Catalog, recipe: Recipe, making: Unfinished) -> Mined:
    """What the log teaches; read back where an interrupted training has mined it."""
    folder = making.scratch / MINED
    if "mine" in making.finished and folder.is_dir():
        report = MiningReport.model_validate_json((folder / "report.json").read_text(encoding="utf-8"))
        tables = {name: pq.read_table(folder / f"{name}.parquet") for name in TABLES}
        return Mined(**tables, report=report)
    log.info("mining %s", traces)
    mined = mine(traces, catalog, options=recipe.mining)
    if processes().is_main_process:
        with mining_folder(folder) as kept:
            for name in TABLES:
                table = getattr(mined, name)
                kept.add(name, table.schema, table.to_batches())
            kept.report(mined.report.model_dump_json(indent=2))
        making.finish("mine", {})
    return mined


def _sealed(shop: Workshop, run: Run) -> Manifest:
    """Write the cards as the encoder sees them, then the manifest over everything; time the bundle as it will serve."""
    recipe = shop.recipe
    assert shop.index is not None
    assert shop.index.vectors is not None
    save_cards(shop.folder, shop.catalog, shop.index.vectors, shop.card_tokens)
    manifest = seal(
        shop.folder,
        Manifest(
            base_model=recipe.base_model,
            catalog_version=shop.catalog.version,
            retriever_graph=shop.retriever_graph,
            reranker_graph=shop.reranker_graph,
            max_query_tokens=recipe.retriever.max_query_tokens,
            max_card_tokens=recipe.retriever.max_card_tokens,
            max_pair_tokens=recipe.cross_encoder.max_pair_tokens,
            reranker=shop.reranker,
            rerank_depth=recipe.cross_encoder.depth,
            missing_below=shop.missing_below,
            widen_below=shop.widen_below,
            mlflow_run=run.run_id,
        ),
    )
    shop.figures["validation"] |= _latency(shop)
    manifest = manifest.model_copy(update={"metrics": plain(shop.figures)})
    write_manifest(shop.folder, manifest)
    return manifest


def _latency(shop: Workshop) -> dict[str, float]:
    """p50 and p95 in milliseconds of whole selections with the bundle as sealed, on goals of the log; one thread."""
    selector = Selector.load(shop.folder, shop.catalog)
    goals = [decision.goal for decision in shop.decisions if decision.goal.strip()][: TIMED + WARM_UP]
    times = []
    for number, goal in enumerate(goals):
        started = time.perf_counter()
        selector.select(goal, request_id=f"timing-{number}")
        times.append((time.perf_counter() - started) * 1000)
    settled = times[WARM_UP:] or times
    return {"p50_ms": float(np.percentile(settled, 50)), "p95_ms": float(np.percentile(settled, 95))}


def _once(name: str, shop: Workshop, making: Unfinished, run: Run, learn: Callable[[Workshop, Run], None]) -> None:
    """Do a stage and write down that it is done; of one that is, only the figures are logged again."""
    if name in making.finished:
        run.metrics(shop.figures.get("validation" if name == "heads" else name, {}))
        run.tags({"finished_before": "true"})
        return
    learn(shop, run)
    making.finish(name, shop.kept())

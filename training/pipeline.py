"""The pipeline: traces in, a sealed bundle out; read from top to bottom, it is the story of a training."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from data.catalog import Catalog
from data.errors import InputError
from data.mining.miner import mine
from serving.bundle import Manifest, check_target, publish, seal
from serving.index import save_cards
from serving.selector import Selector
from training import recipe as recipes
from training.arguments import go_on_alone, processes
from training.decisions import gather_decisions, same_names
from training.heads import learn_heads
from training.recipe import Recipe
from training.rerankers import learn_cross_encoder, learn_interaction
from training.stages import learn_retriever, remember_usage, tune_retriever
from training.tracking import DEFAULT_ROOT, Run, SilentRun, file_digest, track
from training.workshop import Workshop

log = logging.getLogger("toolcrib")

MANY_TOOLS = 2
TIMED = 100
WARM_UP = 5


@dataclass(frozen=True)
class TrainResult:
    """`bundle`: the folder; `metrics`: validation figures, out of fold; `run_id`: the MLflow parent run."""

    bundle: Path
    metrics: dict[str, Any]
    run_id: str | None


def train(
    catalog: Catalog, traces: Path, recipe: Recipe, out: Path, *, tracking_root: Path = DEFAULT_ROOT
) -> TrainResult:
    """Train on `traces` for `catalog` and write the bundle to `out`, all or nothing.

    Under `accelerate launch` the processes share the retriever's fine-tuning, which is most of the work; the first one
    alone tracks, trains what is small, and publishes.

    Raises RecipeError, InputError, BundleError or TrackingError before anything slow starts. An interrupt leaves
    nothing behind.
    """
    recipes.check(recipe)
    check_target(out)
    if len(catalog) < MANY_TOOLS:
        raise InputError(
            f"the catalog has {len(catalog)} tool(s); there is nothing to choose between",
            hint="train on a catalog of two tools or more; a single tool needs no model",
        )
    first = processes().is_main_process
    tracked = track(tracking_root, name=out.name) if first else nullcontext(SilentRun())
    with _staging(out) as folder, _scratch() as scratch, tracked as run:
        run.parameters(recipe.model_dump(mode="json", exclude={"mining": {"equivalents"}}))
        run.document(recipe.model_dump(mode="json"), "recipe.json")
        if traces.is_file():
            run.dataset("traces", str(traces), file_digest(traces))
        run.tags({"catalog_version": catalog.version})

        with run.stage("mine") as stage:
            log.info("mining %s", traces)
            mined = mine(traces, catalog, options=recipe.mining)
            stage.document(mined.report.model_dump(mode="json"), "mining.json")
            stage.metrics(mined.report.model_dump(mode="json"))
            decisions = gather_decisions(
                mined, valid_share=recipe.split.valid_share, cold_share=recipe.split.cold_share, seed=recipe.seed
            )
        shop = Workshop(catalog, recipe, folder, scratch, decisions, same_names(catalog))
        with run.stage("retriever") as stage:
            model = tune_retriever(shop)
            if not go_on_alone():
                return TrainResult(out, {}, None)
            learn_retriever(shop, model, stage)
        with run.stage("cross_encoder") as stage:
            learn_cross_encoder(shop, stage)
        with run.stage("usage") as stage:
            remember_usage(shop, stage)
        with run.stage("interaction") as stage:
            learn_interaction(shop, stage)
        with run.stage("heads") as stage:
            learn_heads(shop, stage)

        _sealed(shop, run)
        shop.figures["validation"] |= _latency(shop)
        manifest = _sealed(shop, run)
        publish(folder, out)
        run.metrics(shop.figures["validation"])
        run.register(out, manifest.version, shop.figures["validation"])
        log.info("bundle %s written to %s", manifest.version, out)
        return TrainResult(out, shop.figures, run.run_id)


def _sealed(shop: Workshop, run: Run) -> Manifest:
    """Write the cards as the encoder sees them, then the manifest over everything."""
    recipe = shop.recipe
    assert shop.index is not None
    assert shop.index.vectors is not None
    save_cards(shop.folder, shop.catalog, shop.index.vectors, shop.card_tokens)
    return seal(
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
            metrics=_plain(shop.figures),
        ),
    )


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


@contextmanager
def _staging(out: Path) -> Iterator[Path]:
    """A folder beside `out` in which the bundle is made; gone afterwards, whatever happens."""
    out.parent.mkdir(parents=True, exist_ok=True)
    folder = out.with_name(f".{out.name}.making-{os.getpid()}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="toolcrib-") as folder:
        yield Path(folder)


def _plain(value: Any) -> Any:
    """Figures as plain JSON values."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value

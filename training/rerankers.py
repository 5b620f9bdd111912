"""The reranker stages: the interaction and the cross-encoder, trained on the retriever's mistakes and measured."""

from __future__ import annotations

import logging
import random
from collections.abc import Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.card_text import query_text
from serving.bundle import INTERACTION, RERANKER, TOKENIZER, Reranker, int8_name, save_arrays
from serving.cross_encoder import RERANKER_TOKENIZER, CrossEncoderReranker, corrected
from serving.evidence import Floats, reading_order
from serving.interaction import InteractionWeights
from training.cross_encoder import (
    CrossEncoderSettings,
    ScoredPair,
    export_cross_encoder,
    mistakes,
    train_cross_encoder,
)
from training.head import Request
from training.interaction import InteractionSettings, as_arrays, train_interaction
from training.material import interaction_examples
from training.tracking import Run
from training.workshop import PARITY_TEXTS, Workshop, check_parity, first_ndcg, good_rows, workers

log = logging.getLogger("toolcrib")


def learn_interaction(shop: Workshop, run: Run) -> None:
    """Train the late interaction on cached card tokens; stop early on requests for tools that nothing was tuned on."""
    part, recipe = shop.recipe.interaction, shop.recipe
    assert shop.encoder is not None
    assert shop.material is not None
    train = [i for i in shop.chosen("train") if shop.decisions[i].asked]
    random.Random(recipe.seed).shuffle(train)
    train, held_out = train[: part.max_requests], shop.chosen("cold")[: part.max_requests]
    if part.epochs == 0 or not train or not held_out:
        return
    cards = (
        shop.encoder.encode(shop.card_texts, recipe.retriever.max_card_tokens, states=True, workers=workers()).states
        or []
    )
    made = []
    for chosen, excluded in ((train, shop.cold_tools), (held_out, frozenset[str]())):
        goals = [query_text(shop.decisions[i].goal) for i in chosen]
        states = (
            shop.encoder.encode(goals, recipe.retriever.max_query_tokens, states=True, workers=workers()).states or []
        )
        made.append(interaction_examples(shop.material, chosen, states, part.candidates, excluded))
    settings = InteractionSettings(
        projected=part.projected,
        epochs=part.epochs,
        learning_rate=part.learning_rate,
        weight_decay=part.weight_decay,
        patience=part.patience,
        seed=recipe.seed,
    )
    log.info("interaction: %d requests, %d of held-out tools", len(made[0]), len(made[1]))
    model, curve = train_interaction(cards, made[0], made[1], settings)
    save_arrays(shop.folder / INTERACTION, as_arrays(model))
    shop.weights = InteractionWeights.load(shop.folder / INTERACTION)
    shop.card_tokens = shop.weights.card_tokens(cards)
    shop.keep_interaction()
    shop.figures["interaction"] = {
        "requests": len(made[0]),
        "held_out_mrr_before": curve[0],
        "held_out_mrr": max(curve),
    }
    run.metrics(shop.figures["interaction"])
    for epoch, value in enumerate(curve):
        run.metrics({"held_out_mrr_by_epoch": value}, step=epoch)


def learn_cross_encoder(shop: Workshop, run: Run) -> None:
    """Train the cross-encoder from the retriever's weights on the retriever's own mistakes, export it, measure it."""
    part, recipe = shop.recipe.cross_encoder, shop.recipe
    assert shop.index is not None
    assert shop.index.vectors is not None
    assert shop.vectors is not None
    train = [i for i in shop.chosen("train") if shop.decisions[i].asked]
    if part.epochs == 0 or not train:
        return
    random.Random(recipe.seed).shuffle(train)
    train = train[: max(1, part.max_pairs // (part.negatives + 1))]
    cards, texts = shop.index.vectors, shop.card_texts
    excluded = frozenset(shop.catalog.row[tool] for tool in shop.cold_tools)
    good = [good_rows(shop, shop.decisions[i]) for i in train]
    wrong = mistakes(shop.vectors[train], cards, good, part.negatives, excluded=excluded)
    pairs = []
    for i, rows in zip(train, wrong, strict=True):
        goal = query_text(shop.decisions[i].goal)
        served = [shop.catalog.row[tool] for tool, _ in shop.decisions[i].tools]
        labelled = [(row, 1.0) for row in served] + [(row, 0.0) for row in rows]
        pairs += [ScoredPair(goal, texts[row], label) for row, label in labelled]
    settings = CrossEncoderSettings(
        layers=part.layers,
        epochs=part.epochs,
        batch_size=part.batch_size,
        learning_rate=part.learning_rate,
        max_pair_tokens=part.max_pair_tokens,
        max_pairs=part.max_pairs,
        seed=recipe.seed,
        bf16=recipe.bf16,
    )
    log.info("cross-encoder: %d requests, %d pairs, %d layers", len(train), len(pairs), part.layers)
    model = train_cross_encoder(shop.checkpoint, pairs, settings, checkpoints=shop.scratch / "cross_encoder")
    figures = export_cross_encoder(model, shop.folder, [(p.query, p.card) for p in pairs[:PARITY_TEXTS]])
    check_parity("cross-encoder", float(figures["max_difference"]))
    shop.reranker_graph = int8_name(RERANKER) if recipe.export.int8 else RERANKER
    figures |= _cross_quality(shop)
    shop.figures["cross_encoder"] = {"pairs": len(pairs), **figures}
    run.metrics(shop.figures["cross_encoder"])


def _cross_quality(shop: Workshop) -> dict[str, float]:
    """nDCG@10 of the retriever's first 24 on held-out requests: as they come, and in the cross-encoder's order."""
    assert shop.index is not None
    assert shop.index.vectors is not None
    assert shop.vectors is not None
    held_out = shop.chosen("valid", "cold")[:100]
    if not held_out:
        return {}
    texts, before, after = shop.card_texts, [], []
    reranker = cross_encoder_of(shop)
    for i in held_out:
        decision, cosine = shop.decisions[i], shop.index.vectors @ shop.vectors[i]
        rows = np.argsort(-cosine, kind="stable")[:24]
        logits, _ = reranker.scores(query_text(decision.goal), [texts[row] for row in rows])
        good = good_rows(shop, decision)
        placed = {place for place, row in enumerate(rows.tolist()) if row in good}
        before.append(first_ndcg(cosine[rows], frozenset(placed)))
        after.append(first_ndcg(corrected(cosine[rows], logits, np.arange(len(rows))), frozenset(placed)))
    return {"first_stage_ndcg@10": float(np.mean(before)), "reranked_ndcg@10": float(np.mean(after))}


def cross_encoder_of(shop: Workshop) -> CrossEncoderReranker:
    """The exported cross-encoder, as serving will load it."""
    own = shop.folder / RERANKER_TOKENIZER
    return CrossEncoderReranker(
        shop.folder / shop.reranker_graph,
        own if own.is_file() else shop.folder / TOKENIZER,
        max_pair_tokens=shop.recipe.cross_encoder.max_pair_tokens,
    )


class Readings:
    """What the rerankers say of requests and candidates. The views of a request share most pairs: each is read once."""

    def __init__(self, shop: Workshop) -> None:
        assert shop.encoder is not None
        self._shop, self._encoder, self._texts = shop, shop.encoder, shop.card_texts
        self._reader = cross_encoder_of(shop) if shop.reranker_graph else None
        self._states: dict[str, Floats] = {}
        self._logits: dict[tuple[str, int], float] = {}

    def add(
        self,
        chosen: Sequence[int],
        requests: list[Request],
        candidates: Sequence[NDArray[np.int64]],
        wanted: Container[Reranker] = frozenset[Reranker](["interaction", "cross_encoder"]),
    ) -> list[Request]:
        """The requests, those of the `chosen` decisions in order, with the scores of the `wanted` that were trained."""
        shop = self._shop
        goals = [query_text(shop.decisions[i].goal) for i in chosen]
        if "interaction" in wanted and shop.weights is not None and shop.card_tokens is not None:
            scored = [
                shop.weights.scores(state, shop.card_tokens, rows, request.signals.cosine)
                for state, rows, request in zip(self._states_of(goals), candidates, requests, strict=True)
            ]
            requests = [_with(request, "interaction", scores) for request, scores in zip(requests, scored, strict=True)]
        if "cross_encoder" in wanted and self._reader is not None:
            depth = shop.recipe.cross_encoder.depth
            read = [reading_order(request.signals, depth) for request in requests]
            logits = self._logits_of(goals, [rows[places] for rows, places in zip(candidates, read, strict=True)])
            requests = [
                _with(request, "cross", corrected(request.signals.cosine, of, places))
                for request, of, places in zip(requests, logits, read, strict=True)
            ]
        return requests

    def _states_of(self, goals: Sequence[str]) -> list[Floats]:
        fresh = [goal for goal in dict.fromkeys(goals) if goal not in self._states]
        most = self._shop.recipe.retriever.max_query_tokens
        made = self._encoder.encode(fresh, most, states=True, workers=workers()).states or []
        self._states |= zip(fresh, made, strict=True)
        return [self._states[goal] for goal in goals]

    def _logits_of(self, goals: Sequence[str], rows: Sequence[NDArray[np.int64]]) -> list[Floats]:
        """A logit (k,) for each of a goal's rows."""
        reader, pairs = self._reader, [[(goal, int(row)) for row in of] for goal, of in zip(goals, rows, strict=True)]
        assert reader is not None
        fresh: dict[str, list[int]] = {}
        for goal, row in dict.fromkeys(pair for of in pairs for pair in of):
            if (goal, row) not in self._logits:
                fresh.setdefault(goal, []).append(row)
        with ThreadPoolExecutor(workers()) as pool:
            read = pool.map(lambda goal: reader.scores(goal, [self._texts[row] for row in fresh[goal]])[0], fresh)
            for (goal, of), logits in zip(fresh.items(), read, strict=True):
                self._logits |= zip([(goal, row) for row in of], logits.tolist(), strict=True)
        return [np.array([self._logits[pair] for pair in of], np.float32) for of in pairs]


def _with(request: Request, name: str, scores: Floats) -> Request:
    changed: dict[str, Any] = {name: scores}
    return replace(request, signals=replace(request.signals, **changed))


def drop_reranker_files(shop: Workshop) -> None:
    """Leave out of the bundle what its reranker does not need."""
    if shop.reranker != "interaction":
        (shop.folder / INTERACTION).unlink(missing_ok=True)
        shop.card_tokens = shop.weights = None
    if shop.reranker_graph:
        unused = RERANKER if shop.reranker_graph != RERANKER else int8_name(RERANKER)
        (shop.folder / unused).unlink(missing_ok=True)

"""The stages of a training: each reads the workshop, adds its part to the bundle folder, and logs its figures."""

from __future__ import annotations

import logging
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from data.card_text import card_text, query_text
from data.catalog import Catalog
from data.errors import RecipeError
from serving.bundle import INTERACTION, RERANKER, RETRIEVER, TOKENIZER, Reranker, int8_name, save_arrays, save_usage
from serving.cross_encoder import RERANKER_TOKENIZER, CrossEncoderReranker, corrected
from serving.encoder import Encoder
from serving.evidence import Floats
from serving.index import Index, index_of
from serving.interaction import CardTokens, InteractionWeights
from training.cross_encoder import (
    CrossEncoderSettings,
    ScoredPair,
    export_cross_encoder,
    mistakes,
    train_cross_encoder,
)
from training.decisions import Decision, Side
from training.encoders import export_encoder
from training.interaction import InteractionSettings, as_arrays, train_interaction
from training.material import Material, interaction_examples, remember
from training.recipe import Recipe, base_path
from training.retriever import Key, Pair, RetrieverSettings, train_retriever
from training.tracking import Run

log = logging.getLogger("toolcrib")

CHECKPOINT = "checkpoint"
PARITY_TEXTS = 64
SAMPLED_REQUESTS = 300
SAMPLED_CARDS = 1000
PARITY_BOUND = 1e-3
"""Largest difference to PyTorch that an exported graph may show; beyond it the export is broken, not imprecise."""


@dataclass
class Workshop:
    """What the stages hand on. `folder` becomes the bundle; `scratch` does not survive the training."""

    catalog: Catalog
    recipe: Recipe
    folder: Path
    scratch: Path
    decisions: Sequence[Decision]
    same_name: dict[str, frozenset[str]]
    figures: dict[str, Any] = field(default_factory=dict)
    retriever_graph: str = RETRIEVER
    reranker_graph: str = ""
    reranker: Reranker = "none"
    missing_below: float = 0.0
    widen_below: float = 0.0
    encoder: Encoder | None = None
    index: Index | None = None
    vectors: Floats | None = None
    card_tokens: CardTokens | None = None
    weights: InteractionWeights | None = None
    material: Material | None = None

    def chosen(self, *sides: Side, answered: bool = True) -> list[int]:
        """Positions of the decisions of some sides that have (or have not) a right tool."""
        return [i for i, d in enumerate(self.decisions) if d.side in sides and bool(d.tools) == answered]

    @property
    def equivalents(self) -> dict[str, frozenset[str]]:
        return {tool: frozenset(others) for tool, others in self.recipe.mining.equivalents.items()}

    @property
    def card_texts(self) -> list[str]:
        return [card_text(card) for card in self.catalog]

    @property
    def cold_tools(self) -> frozenset[str]:
        return frozenset(tool for i in self.chosen("cold") for tool, _ in self.decisions[i].tools)


# Retriever


def learn_retriever(shop: Workshop, run: Run) -> None:
    """Fine-tune the bi-encoder, export it, choose the graph that serves, embed cards and requests with that graph."""
    part = shop.recipe.retriever
    model = _load_base(shop.recipe.base_model)
    pairs = _pairs(shop, model)
    log.info("retriever: %d pairs, %g epochs", len(pairs), part.epochs)
    if part.epochs > 0 and pairs:
        settings = RetrieverSettings(
            epochs=part.epochs,
            batch_size=part.batch_size,
            learning_rate=part.learning_rate,
            max_tokens=max(part.max_query_tokens, part.max_card_tokens),
            freeze_layers=part.freeze_layers,
            scale=part.scale,
            seed=shop.recipe.seed,
            bf16=shop.recipe.bf16,
        )
        train_retriever(model, pairs, settings)
    checkpoint = (shop.folder if shop.recipe.keep_checkpoint else shop.scratch) / CHECKPOINT
    model.save(str(checkpoint))
    figures = export_encoder(
        checkpoint, shop.folder, shop.card_texts[:PARITY_TEXTS], part.max_card_tokens, int8=shop.recipe.export.int8
    )
    _check_parity("retriever", figures["max_difference"])
    figures |= _choose_graph(shop)
    shop.encoder = Encoder(shop.folder / shop.retriever_graph, shop.folder / TOKENIZER)
    shop.vectors = _embed_goals(shop, shop.encoder)
    card_vectors = shop.encoder.encode(shop.card_texts, part.max_card_tokens, workers=workers()).vectors
    shop.index = index_of(shop.catalog, card_vectors, None)
    shop.figures["retriever"] = {"pairs": len(pairs), **figures}
    run.metrics(shop.figures["retriever"])
    run.tags({"served_graph": shop.retriever_graph})


def _load_base(base_model: str) -> SentenceTransformer:
    try:
        return SentenceTransformer(base_path(base_model), device=None)
    except (OSError, ValueError, KeyError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise RecipeError(f"base_model {base_model}: cannot be loaded: {reason}") from error


def _pairs(shop: Workshop, model: SentenceTransformer) -> list[Pair]:
    texts = dict(zip(shop.catalog.ids, shop.card_texts, strict=True))
    decisions = [shop.decisions[i] for i in shop.chosen("train")]
    negatives = _hard_negatives(shop, decisions, model)
    draw = random.Random(shop.recipe.seed)
    pairs = []
    for decision, wrong in zip(decisions, negatives, strict=True):
        # A weak positive is taken as often as it weighs.
        served = {tool for tool, weight in decision.tools if draw.random() < weight}
        clash = {tool for tool, _ in decision.tools}.union(
            *(shop.same_name[t] | shop.equivalents.get(t, frozenset()) for t, _ in decision.tools)
        )
        keys: frozenset[Key] = frozenset([("group", decision.group), *(("tool", tool) for tool in clash)])
        pairs += [
            Pair(query_text(decision.goal), texts[tool], keys, tuple(texts[w] for w in wrong))
            for tool in sorted(served)
        ]
    draw.shuffle(pairs)
    return _packable(pairs[: shop.recipe.retriever.max_pairs], shop.recipe.retriever.batch_size)


def _packable(pairs: Sequence[Pair], batch_size: int) -> list[Pair]:
    """The pairs without what popular tools have too many of: no tool more often than there are batches.

    A tool stands in a batch once. One with more pairs than batches would end the epoch in batches of its own, in
    which there is nothing to tell it from. (A catalog smaller than a batch fills batches of its own size.)
    """
    tools = {key for pair in pairs for key in pair.keys if key[0] == "tool"}
    most = math.ceil(len(pairs) / max(1, min(batch_size, len(tools))))
    seen: Counter[Key] = Counter()
    kept = []
    for pair in pairs:
        if all(seen[key] < most for key in pair.keys):
            seen.update(pair.keys)
            kept.append(pair)
    return kept


def _hard_negatives(shop: Workshop, decisions: Sequence[Decision], model: SentenceTransformer) -> list[list[str]]:
    """For each decision the tools that were shown and passed over, then the base model's own mistakes, screened."""
    count = shop.recipe.retriever.hard_negatives
    if not count or not decisions:
        return [[] for _ in decisions]
    ids = shop.catalog.ids
    cards = model.encode(shop.card_texts, normalize_embeddings=True, show_progress_bar=False)
    goals = model.encode([query_text(d.goal) for d in decisions], normalize_embeddings=True, show_progress_bar=False)
    excluded = frozenset(shop.catalog.row[tool] for tool in shop.cold_tools)
    found = mistakes(goals, cards, [_good_rows(shop, d) for d in decisions], count, excluded=excluded)
    return [
        list(dict.fromkeys([*d.wrong, *(ids[row] for row in rows)]))[:count]
        for d, rows in zip(decisions, found, strict=True)
    ]


def _good_rows(shop: Workshop, decision: Decision) -> frozenset[int]:
    """Rows of the tools that served a decision and of all that may be as good."""
    served = {tool for tool, _ in decision.tools}
    good = served.union(*(shop.same_name[t] | shop.equivalents.get(t, frozenset()) for t in served))
    return frozenset(shop.catalog.row[tool] for tool in good if tool in shop.catalog)


def _choose_graph(shop: Workshop) -> dict[str, float]:
    """int8 if nDCG@10 of the retriever alone falls by no more than the recipe allows.

    Measured on a sample: held-out requests, against the cards that served them and others drawn at random.
    """
    if not shop.recipe.export.int8:
        return {}
    draw = random.Random(shop.recipe.seed)
    held_out = shop.chosen("valid", "cold") or shop.chosen("train")
    held_out = draw.sample(held_out, min(SAMPLED_REQUESTS, len(held_out)))
    good = [_good_rows(shop, shop.decisions[i]) for i in held_out]
    others = draw.sample(range(len(shop.catalog)), min(SAMPLED_CARDS, len(shop.catalog)))
    rows = sorted(set(others).union(*good))
    place = {row: at for at, row in enumerate(rows)}
    texts, goals = shop.card_texts, [query_text(shop.decisions[i].goal) for i in held_out]
    quality = {}
    for graph in (RETRIEVER, int8_name(RETRIEVER)):
        encoder = Encoder(shop.folder / graph, shop.folder / TOKENIZER)
        cards = encoder.encode(
            [texts[row] for row in rows], shop.recipe.retriever.max_card_tokens, workers=workers()
        ).vectors
        vectors = encoder.encode(goals, shop.recipe.retriever.max_query_tokens, workers=workers()).vectors
        gains = [_ndcg(cards @ v, frozenset(place[row] for row in of)) for v, of in zip(vectors, good, strict=True)]
        quality[graph] = float(np.mean(gains))
    loss = quality[RETRIEVER] - quality[int8_name(RETRIEVER)]
    if loss <= shop.recipe.export.max_quality_loss:
        shop.retriever_graph = int8_name(RETRIEVER)
        (shop.folder / RETRIEVER).unlink()
    else:
        (shop.folder / int8_name(RETRIEVER)).unlink()
    return {
        "sample_ndcg@10": quality[RETRIEVER],
        "int8_sample_ndcg@10": quality[int8_name(RETRIEVER)],
        "int8_loss": loss,
    }


def _ndcg(scores: Floats, good: frozenset[int]) -> float:
    """nDCG@10 of the first good row: any of them answers the request."""
    order = np.argsort(-scores, kind="stable")[:10].tolist()
    return next((1.0 / np.log2(place + 2) for place, row in enumerate(order) if row in good), 0.0)


def _embed_goals(shop: Workshop, encoder: Encoder) -> Floats:
    goals = [query_text(decision.goal) for decision in shop.decisions]
    return encoder.encode(goals, shop.recipe.retriever.max_query_tokens, workers=workers()).vectors


# Usage memory


def remember_usage(shop: Workshop, run: Run) -> None:
    """Put every past request, as the served encoder sees it, into the usage memory."""
    assert shop.index is not None
    assert shop.vectors is not None
    used = shop.decisions if shop.recipe.usage else []
    usage = remember(used, shop.vectors[: len(used)], shop.recipe.usage_half_life_days)
    if shop.recipe.usage:
        save_usage(shop.folder, usage)
    shop.material = Material(
        catalog=shop.catalog,
        index=shop.index,
        decisions=shop.decisions,
        vectors=shop.vectors,
        usage=usage,
        equivalents=shop.equivalents,
        same_name=shop.same_name,
        candidates=40,
    )
    shop.figures["usage"] = {"links": len(usage.tool), "subgoals": len(usage.vectors), "tools": len(usage.tools)}
    run.metrics(shop.figures["usage"])


# Rerankers


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
    good = [_good_rows(shop, shop.decisions[i]) for i in train]
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
    checkpoint = (shop.folder if recipe.keep_checkpoint else shop.scratch) / CHECKPOINT
    model = train_cross_encoder(checkpoint, pairs, settings)
    figures = export_cross_encoder(model, shop.folder, [(p.query, p.card) for p in pairs[:PARITY_TEXTS]])
    _check_parity("cross-encoder", float(figures["max_difference"]))
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
        good = _good_rows(shop, decision)
        placed = {place for place, row in enumerate(rows.tolist()) if row in good}
        before.append(_ndcg(cosine[rows], frozenset(placed)))
        after.append(_ndcg(corrected(cosine[rows], logits, np.arange(len(rows))), frozenset(placed)))
    return {"first_stage_ndcg@10": float(np.mean(before)), "reranked_ndcg@10": float(np.mean(after))}


def cross_encoder_of(shop: Workshop) -> CrossEncoderReranker:
    """The exported cross-encoder, as serving will load it."""
    own = shop.folder / RERANKER_TOKENIZER
    return CrossEncoderReranker(
        shop.folder / shop.reranker_graph,
        own if own.is_file() else shop.folder / TOKENIZER,
        max_pair_tokens=shop.recipe.cross_encoder.max_pair_tokens,
    )


def drop_reranker_files(shop: Workshop) -> None:
    """Leave out of the bundle what its reranker does not need."""
    if shop.reranker != "interaction":
        (shop.folder / INTERACTION).unlink(missing_ok=True)
        shop.card_tokens = shop.weights = None
    if shop.reranker_graph:
        unused = RERANKER if shop.reranker_graph != RERANKER else int8_name(RERANKER)
        (shop.folder / unused).unlink(missing_ok=True)


def _check_parity(what: str, difference: float) -> None:
    if not difference <= PARITY_BOUND:
        raise RuntimeError(
            f"{what}: the exported graph differs from PyTorch by {difference:.2g} (bound {PARITY_BOUND})"
        )


def workers() -> int:
    """How many texts are embedded at once: as many as torch would use threads."""
    return int(torch.get_num_threads())

"""The first stages: the retriever fine-tuned, exported and chosen; the past as the served encoder sees it."""

from __future__ import annotations

import logging
import math
import random
import shutil
from collections import Counter
from collections.abc import Sequence

import numpy as np
from sentence_transformers import SentenceTransformer

from data.card_text import query_text
from data.errors import RecipeError
from serving.bundle import RETRIEVER, TOKENIZER, int8_name, save_usage
from serving.card_vectors import encode_cards
from serving.encoder import Encoder
from serving.evidence import Floats
from serving.index import index_of
from serving.memory import LOST, SERVED
from training.arguments import processes
from training.cross_encoder import mistakes
from training.decisions import Decision, Ended, times
from training.encoders import export_encoder
from training.material import Material, remember
from training.recipe import Recipe, base_path
from training.retriever import Key, Pair, RetrieverSettings, train_retriever
from training.tracking import Run
from training.workshop import PARITY_TEXTS, Workshop, check_parity, first_ndcg, good_rows, workers

log = logging.getLogger("toolcrib")

SAMPLED_REQUESTS = 300
SAMPLED_CARDS = 1000


def tune_retriever(shop: Workshop) -> None:
    """Fine-tune the base model on the requests of the training side; the part that several processes share."""
    part = shop.recipe.retriever
    model = _load_base(shop.recipe.base_model)
    _check_room(shop.recipe, model)
    pairs = _pairs(shop, model)
    log.info("retriever: %d pairs, %g epochs", len(pairs), part.epochs)
    if part.epochs > 0 and pairs:
        settings = RetrieverSettings(
            epochs=part.epochs,
            batch_size=part.batch_size,
            learning_rate=part.learning_rate,
            max_tokens=part.max_tuning_tokens,
            freeze_layers=part.freeze_layers,
            scale=part.scale,
            seed=shop.recipe.seed,
            bf16=shop.recipe.bf16,
        )
        train_retriever(model, pairs, settings, checkpoints=shop.scratch / "tuning")
    if processes().is_main_process:
        model.save(str(shop.checkpoint))
        shutil.rmtree(shop.scratch / "tuning", ignore_errors=True)
    shop.figures["retriever"] = {"pairs": len(pairs)}


def learn_retriever(shop: Workshop, run: Run) -> None:
    """Export the tuned bi-encoder, choose the graph that serves, embed cards and requests with that graph."""
    part = shop.recipe.retriever
    figures = export_encoder(
        shop.checkpoint, shop.folder, shop.card_texts[:PARITY_TEXTS], part.max_card_tokens, int8=shop.recipe.export.int8
    )
    check_parity("retriever", figures["max_difference"])
    figures |= _choose_graph(shop)
    shop.encoder = Encoder(shop.folder / shop.retriever_graph, shop.folder / TOKENIZER)
    shop.vectors = _embed_goals(shop, shop.encoder)
    card_vectors = encode_cards(shop.encoder, shop.catalog.cards, part.max_card_tokens, workers=workers()).vectors
    shop.index = index_of(shop.catalog, card_vectors, None)
    shop.keep_vectors()
    shop.figures["retriever"] |= figures
    run.metrics(shop.figures["retriever"])
    run.tags({"served_graph": shop.retriever_graph})


def _load_base(base_model: str) -> SentenceTransformer:
    try:
        return SentenceTransformer(base_path(base_model), device=None)
    except (OSError, ValueError, KeyError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise RecipeError(f"base_model {base_model}: cannot be loaded: {reason}") from error


def _check_room(recipe: Recipe, model: SentenceTransformer) -> None:
    """Raise RecipeError for limits above the base's positions: a served encoder would fail, on long texts alone."""
    bert = model[0].auto_model
    positions = getattr(bert.config, "max_position_embeddings", None)
    if positions is None:
        return
    room = positions - (getattr(bert.embeddings, "padding_idx", -1) + 1)  # RoBERTa and MPNet count from there
    limits = {
        "retriever.max_query_tokens": recipe.retriever.max_query_tokens,
        "retriever.max_card_tokens": recipe.retriever.max_card_tokens,
        "retriever.max_tuning_tokens": recipe.retriever.max_tuning_tokens,
        "cross_encoder.max_pair_tokens": recipe.cross_encoder.max_pair_tokens if recipe.cross_encoder.epochs else 0,
    }
    over = [f"'{name}' is {limit}" for name, limit in limits.items() if limit > room]
    if over:
        raise RecipeError(f"base_model {recipe.base_model} reads at most {room} tokens, but {' and '.join(over)}")


def _pairs(shop: Workshop, model: SentenceTransformer) -> list[Pair]:
    texts = dict(zip(shop.catalog.ids, shop.card_texts, strict=True))
    decisions = [shop.decisions[i] for i in shop.chosen("train")]
    negatives = _hard_negatives(shop, decisions, model)
    draw = random.Random(shop.recipe.seed)
    pairs = []
    for decision, wrong in zip(decisions, negatives, strict=True):
        clash = {tool for tool, _ in decision.tools}.union(
            *(shop.same_name[t] | shop.equivalents.get(t, frozenset()) for t, _ in decision.tools)
        )
        keys: frozenset[Key] = frozenset([("group", decision.group), *(("tool", tool) for tool in clash)])
        pairs += [
            Pair(query_text(decision.goal), texts[tool], keys, tuple(texts[w] for w in wrong))
            for tool, weight in sorted(decision.tools)
            for _ in range(times(weight, draw))
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
    found = mistakes(goals, cards, [good_rows(shop, d) for d in decisions], count, excluded=excluded)
    return [
        list(dict.fromkeys([*(tool for tool, _ in d.wrong), *(ids[row] for row in rows)]))[:count]
        for d, rows in zip(decisions, found, strict=True)
    ]


def _choose_graph(shop: Workshop) -> dict[str, float]:
    """int8 if nDCG@10 of the retriever alone falls by no more than the recipe allows.

    Measured on a sample: held-out requests, against the cards that served them and others drawn at random.
    """
    if not shop.recipe.export.int8:
        return {}
    draw = random.Random(shop.recipe.seed)
    held_out = shop.chosen("valid", "cold") or shop.chosen("train")
    held_out = draw.sample(held_out, min(SAMPLED_REQUESTS, len(held_out)))
    good = [good_rows(shop, shop.decisions[i]) for i in held_out]
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
        gains = [
            first_ndcg(cards @ v, frozenset(place[row] for row in of)) for v, of in zip(vectors, good, strict=True)
        ]
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


def _embed_goals(shop: Workshop, encoder: Encoder) -> Floats:
    goals = [query_text(decision.goal) for decision in shop.decisions]
    return encoder.encode(goals, shop.recipe.retriever.max_query_tokens, workers=workers()).vectors


def _embed_history(shop: Workshop, ended: Sequence[Ended]) -> Floats:
    """Vectors (n, d) of what calls were for; a goal that is a decision's too is not embedded again."""
    assert shop.vectors is not None
    known = {query_text(decision.goal): row for row, decision in enumerate(shop.decisions)}
    goals = [query_text(one.goal) for one in ended]
    fresh = [goal for goal in dict.fromkeys(goals) if goal not in known]
    if not fresh:
        return shop.vectors[[known[goal] for goal in goals]]
    assert shop.encoder is not None
    made = shop.encoder.encode(fresh, shop.recipe.retriever.max_query_tokens, workers=workers()).vectors
    place = known | {goal: len(shop.vectors) + row for row, goal in enumerate(fresh)}
    return np.concatenate([shop.vectors, made])[[place[goal] for goal in goals]]


def remember_usage(shop: Workshop, run: Run) -> None:
    """Put every past request, as the served encoder sees it, into the usage memory."""
    assert shop.index is not None
    assert shop.vectors is not None
    used, ended = (shop.decisions, shop.history) if shop.recipe.usage else ([], [])
    usage = remember(
        used, shop.vectors[: len(used)], shop.recipe.usage_half_life_days, (ended, _embed_history(shop, ended))
    )
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
        unshown_weight=shop.recipe.head.unshown_weight,
    )
    shop.figures["usage"] = {
        "links": int((usage.kind == SERVED).sum()),
        "calls": int((usage.kind != SERVED).sum()),
        "failed_calls": int((usage.kind == LOST).sum()),
        "subgoals": len(usage.vectors),
        "tools": len(usage.tools),
    }
    run.metrics(shop.figures["usage"])

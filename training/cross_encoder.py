"""The cross-encoder: a transformer that reads query and card together, trained on the retriever's own mistakes."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers.cross_encoder import (
    CrossEncoder,
    CrossEncoderTrainer,
    CrossEncoderTrainingArguments,
)
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import set_seed

from serving.bundle import RERANKER, TOKENIZER, int8_name
from serving.cross_encoder import RERANKER_TOKENIZER, CrossEncoderReranker, bare
from training.arguments import WholeCheckpoints, common_arguments, last_checkpoint
from training.batches import plan_batches
from training.export import export_graph, fuse, quantize
from training.pair_model import GAIN, ScoreGraph, pair_logits, pair_model
from training.quiet import quiet_loading

HEAD_RATE = 10.0
"""Learning rate of the new head, in those of the transformer, which is already trained."""
CENTRED_ON = 16
"""Requests whose first scores the head is centred on."""
TWINS = 0.95
"""Cosine from which two cards may well be the same tool twice."""


@dataclass(frozen=True)
class ScoredPair:
    """A request, a card's text, and how well the card serves it: `label` in [0, 1]; a weight of 2 is the pair twice."""

    query: str
    card: str
    label: float
    weight: float = 1.0


@dataclass(frozen=True)
class CrossEncoderSettings:
    """`layers` lowest layers of the base are kept (as many as it has); `batch_size` counts requests, each with all its
    cards; `max_pairs` takes requests in the order given until the next one would not fit."""

    layers: int = 6
    epochs: float = 1.0
    batch_size: int = 4
    learning_rate: float = 5e-5
    max_pair_tokens: int = 96
    max_pairs: int = 20_000
    seed: int = 0
    bf16: bool = False


class CandidatesLoss(nn.Module):
    """Softmax cross-entropy over the cards of one request, plus the binary cross-entropy of each of its pairs.

    The softmax learns most from few steps: each step compares a request's right card with the wrong ones that the
    retriever mistook for it, and nothing is spent on what they share. It is blind to a request's level, so the binary
    part sets it, and is all there is for a request that no card serves. Of the library's own losses, binary
    cross-entropy alone first learns the base rate; ListNet takes the softmax of 0/1 labels, an almost flat target;
    LambdaLoss compares, but leaves the level open; and none of the three takes weights.

    With scores s, labels l and weights w: -sum(w l log(e^s / sum(w e^s))) + sum(w bce(s, l)) / sum(w), so that in the
    softmax a weight counts as copies of the pair.
    """

    def __init__(self, model: CrossEncoder, max_pair_tokens: int) -> None:
        super().__init__()
        self.model = model
        self.max_pair_tokens = max_pair_tokens
        self.tokenizer = bare(model.tokenizer.backend_tokenizer)

    def forward(self, inputs: list[Any], labels: list[Tensor], **_: Any) -> Tensor:
        """`inputs`: requests, the list of cards of each, the list of their weights; `labels`: a tensor a request."""
        queries, cards, weights = inputs
        requests = list(zip(queries, cards, strict=True))
        together = pair_logits(self.model, self.tokenizer, requests, self.max_pair_tokens)
        logits = torch.split(together, [len(offered) for offered in cards])
        losses = []
        for score, label, weight in zip(logits, labels, weights, strict=True):
            weighed = score.new_tensor(weight)
            right = label.to(score)
            ranked = (weighed * right * ((score + weighed.log()).logsumexp(0) - score)).sum()
            levelled = nn.functional.binary_cross_entropy_with_logits(score, right, weighed, reduction="sum")
            losses.append(ranked + levelled / weighed.sum())
        return torch.stack(losses).mean()


def train_cross_encoder(
    base: str | Path,
    pairs: Sequence[ScoredPair],
    settings: CrossEncoderSettings,
    callbacks: Sequence[Any] = (),
    checkpoints: Path | None = None,
) -> CrossEncoder:
    """Train a cross-encoder on `pairs` (those of one request form its list) by CandidatesLoss, word embeddings frozen.

    `base` is a folder or hub name; of a saved SentenceTransformer the transformer's weights load; the head is
    a new SegmentHead. The result's `max_seq_length` is `max_pair_tokens`; its scores are raw logits, before training
    zero on average.

    The score is to be added to the retriever's cosine (times 10 to 20), not to replace it. Base MiniLM, metatool, 200
    requests over the 24 nearest cards, one core, int8, nDCG@10 (tools that training never saw): cosine 69.6 (65.9);
    6 layers, 1,200 pairs, 84 s: alone 71.0 (64.4), 20 cosine + score 75.8 (68.3); 3 layers, 2,000 pairs, 68 s: alone
    62.5 (62.1), together 76.8 (72.3); 2 layers, 3,000 pairs, 70 s: alone 57.7 (56.7), together 76.0 (72.7).

    With a folder for `checkpoints` it goes on from the last one there.

    Raises ValueError where no request fits `max_pairs`.
    """
    rows = _by_request(pairs, settings.max_pairs)
    if not rows["query"]:
        raise ValueError(f"no request's pairs fit max_pairs = {settings.max_pairs} ({len(pairs)} pairs given)")
    set_seed(settings.seed)
    model = pair_model(base, layers=settings.layers, max_pair_tokens=settings.max_pair_tokens)
    _centre(model, rows, settings)
    plan = plan_batches([frozenset()] * len(rows["query"]), settings.batch_size, settings.epochs, seed=settings.seed)
    with tempfile.TemporaryDirectory() as scratch:
        arguments = CrossEncoderTrainingArguments(
            **common_arguments(checkpoints or Path(scratch), settings, plan, keep=checkpoints is not None),
            learning_rate_mapping={r"\.(importance|level)$": HEAD_RATE * settings.learning_rate},
            disable_tqdm=bool(callbacks),
        )
        trainer = CrossEncoderTrainer(
            model=model,
            args=arguments,
            train_dataset=Dataset.from_dict(rows),
            loss=CandidatesLoss(model, settings.max_pair_tokens),
            callbacks=[*callbacks, WholeCheckpoints()],
        )
        with quiet_loading():
            trainer.train(resume_from_checkpoint=last_checkpoint(checkpoints) if checkpoints else None)
        # Mixed precision wraps the forward pass; the export traces it as it is without.
        trainer.accelerator.unwrap_model(trainer.model, keep_fp32_wrapper=False)
    model.eval()
    return model


def mistakes(
    query_vectors: NDArray[np.float32],
    card_vectors: NDArray[np.float32],
    positives: Sequence[frozenset[int]],
    count: int,
    margin: float = 0.05,
    rank_from: int = 0,
    excluded: frozenset[int] = frozenset(),
) -> list[list[int]]:
    """Rows of each query's `count` hardest wrong cards by cosine, hardest first, ties in row order.

    Vectors (q, d) and (n, d) of unit length; `positives[i]` holds the right rows of query i and their equivalents.
    Left out: those; `excluded` (tools that training must not see); and likely false negatives, which are cards that
    score above (1 - margin) of a positive's cosine and whose vector is nearly that positive's (0.95 or more). One sign
    alone is no reason: a wrong card above the right one is the very mistake to learn from. `rank_from` passes over that
    many of what is left.
    """
    found: list[list[int]] = []
    never = sorted(excluded)
    for query, right_set in zip(query_vectors, positives, strict=True):
        right = sorted(right_set)
        cosine = card_vectors @ query
        out = np.zeros(len(card_vectors), np.bool_)
        out[never] = True
        for row in right:
            near = card_vectors @ card_vectors[row] >= TWINS
            out |= near & (cosine > (1.0 - margin) * cosine[row])
        out[right] = True
        ranked = np.argsort(-cosine, kind="stable")
        found.append([int(row) for row in ranked[~out[ranked]][rank_from : rank_from + count]])
    return found


def export_cross_encoder(model: CrossEncoder, folder: Path, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Write `reranker.onnx` and `reranker.int8.onnx`; compare both, as served, with `model` on real pairs.

    Writes `reranker.tokenizer.json` too unless `folder` holds a `tokenizer.json` that is the same. Only BERT graphs are
    fused; others serve as they are. Figures: `pairs`; `fused`; `max_difference` and `int8_max_difference` (logits,
    against PyTorch); `int8_rank_correlation` (Spearman over all pairs); `int8_same_best` (share of the requests with
    several cards whose best card stays).
    """
    tokenizer = bare(model.tokenizer.backend_tokenizer)
    limit = int(model.max_seq_length)
    requests = _requests(pairs)
    model.eval()
    with torch.inference_mode():
        expected = pair_logits(model, tokenizer, requests, limit).cpu().numpy()

    fused = model[0].model.config.model_type == "bert"
    graph = folder / RERANKER
    _export(model, graph, fused=fused)
    quantize(graph, folder / int8_name(RERANKER))
    tokenizer_file = folder / TOKENIZER
    if not tokenizer_file.is_file() or bare(Tokenizer.from_file(str(tokenizer_file))).to_str() != tokenizer.to_str():
        tokenizer_file = folder / RERANKER_TOKENIZER
        tokenizer.save(str(tokenizer_file))

    full, small = (
        np.concatenate([served.scores(query, cards)[0] for query, cards in requests])
        for served in (
            CrossEncoderReranker(file, tokenizer_file, max_pair_tokens=limit)
            for file in (graph, folder / int8_name(RERANKER))
        )
    )
    return {
        "pairs": len(expected),
        "fused": fused,
        "max_difference": float(np.abs(full - expected).max()),
        "int8_max_difference": float(np.abs(small - expected).max()),
        "int8_rank_correlation": float(np.corrcoef(_ranks(small), _ranks(expected))[0, 1]),
        "int8_same_best": _same_best(small, expected, [len(cards) for _, cards in requests]),
    }


def _export(model: CrossEncoder, target: Path, *, fused: bool) -> None:
    transformer = model[0].model
    names = ("input_ids", "attention_mask", "token_type_ids")
    attention = transformer.config._attn_implementation
    transformer.set_attn_implementation("eager")  # the one form of attention that ONNX Runtime's fusion knows
    try:
        with tempfile.TemporaryDirectory() as scratch:
            traced = Path(scratch) / "graph.onnx" if fused else target
            export_graph(
                ScoreGraph(model),
                {name: torch.ones(2, 8, dtype=torch.long, device=model.device) for name in names},
                {"score": {0: "n"}},
                {name: {0: "n", 1: "length"} for name in names},
                traced,
            )
            if fused:
                config = transformer.config
                fuse(traced, target, heads=config.num_attention_heads, hidden=config.hidden_size)
    finally:
        transformer.set_attn_implementation(attention)


def _centre(model: CrossEncoder, rows: dict[str, list[Any]], settings: CrossEncoderSettings) -> None:
    """Start the head's level at the mean of the first scores: they are near zero, and no step is spent on a shift."""
    first = list(zip(rows["query"][:CENTRED_ON], rows["cards"][:CENTRED_ON], strict=True))
    with torch.inference_mode():
        mean = pair_logits(
            model.eval(), bare(model.tokenizer.backend_tokenizer), first, settings.max_pair_tokens
        ).mean()
    with torch.no_grad():
        model[1].level.fill_(float(mean) / GAIN)


def _by_request(pairs: Sequence[ScoredPair], most: int) -> dict[str, list[Any]]:
    """The trainer's columns, in the order the loss reads them; a weight of zero is no pair."""
    grouped: dict[str, list[ScoredPair]] = {}
    for pair in pairs:
        if pair.weight > 0.0:
            grouped.setdefault(pair.query, []).append(pair)
    rows: dict[str, list[Any]] = {"query": [], "cards": [], "weight": [], "label": []}
    taken = 0
    for query, offered in grouped.items():
        taken += len(offered)
        if taken > most:
            break
        rows["query"].append(query)
        rows["cards"].append([pair.card for pair in offered])
        rows["weight"].append([pair.weight for pair in offered])
        rows["label"].append([pair.label for pair in offered])
    return rows


def _requests(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    grouped: dict[str, list[str]] = {}
    for query, card in pairs:
        grouped.setdefault(query, []).append(card)
    return list(grouped.items())


def _ranks(scores: NDArray[np.float32]) -> NDArray[np.int64]:
    return np.argsort(np.argsort(scores, kind="stable"), kind="stable")


def _same_best(ours: NDArray[np.float32], theirs: NDArray[np.float32], sizes: Sequence[int]) -> float:
    ends = np.cumsum(sizes)
    several = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True) if size > 1]
    same = sum(int(np.argmax(ours[part]) == np.argmax(theirs[part])) for part in several)
    return same / len(several) if several else 1.0
